// Element-wise instructions: tile with tile, tile with scalar, and of one tile.
#ifndef PTO_SIM_ELEMENTWISE_HPP_
#define PTO_SIM_ELEMENTWISE_HPP_

#include "pto/sim/arithmetic.hpp"
#include "pto/sim/loops.hpp"

namespace pto {
namespace sim {

template <template <class> class Op, class Dst, class A, class B>
__attribute__((always_inline)) inline void binary(const char* op, const Dst& dst, const A& a,
                                                  const B& b) {
  using T = typename Dst::DType;
  static_assert(same_type<T, typename A::DType> && same_type<T, typename B::DType>,
                "operands of an element-wise instruction have one element type");
  require_bound(op, dst);
  require_valid(op, "the first source", a, dst.GetValidRow(), dst.GetValidCol());
  require_valid(op, "the second source", b, dst.GetValidRow(), dst.GetValidCol());
  map_elements(
      dst, [](T x, T y) { return Op<T>::apply(Element<T>::load(x), Element<T>::load(y)); }, a, b);
}

// Op(element, scalar), or Op(scalar, element) when reversed.
template <template <class> class Op, bool Reversed, class Dst, class A, class S>
__attribute__((always_inline)) inline void with_scalar(const char* op, const Dst& dst, const A& a,
                                                       S scalar) {
  using T = typename Dst::DType;
  static_assert(same_type<T, typename A::DType>,
                "operands of an element-wise instruction have one element type");
  require_bound(op, dst);
  require_valid(op, "the source", a, dst.GetValidRow(), dst.GetValidCol());
  const compute_t<T> s = scalar_operand<T>(scalar);
  map_elements(
      dst,
      [s](T x) {
        return Reversed ? Op<T>::apply(s, Element<T>::load(x)) : Op<T>::apply(Element<T>::load(x), s);
      },
      a);
}

template <class F, class Dst, class A>
__attribute__((always_inline)) inline void unary(const char* op, const Dst& dst, const A& a, F f) {
  using T = typename Dst::DType;
  static_assert(same_type<T, typename A::DType>,
                "operands of an element-wise instruction have one element type");
  require_bound(op, dst);
  require_valid(op, "the source", a, dst.GetValidRow(), dst.GetValidCol());
  map_elements(dst, [f](T x) { return Element<T>::store(f(Element<T>::load(x))); }, a);
}

template <class Dst>
constexpr void require_float() {
  static_assert(is_float<typename Dst::DType>, "this instruction needs a floating-point tile");
}

// Tells a tile operand from a scalar one.
template <class T>
concept TileOperand = requires { T::ByColumns; };

}  // namespace sim

template <class Dst, class A, class B>
inline void TADD(Dst& dst, const A& a, const B& b) {
  sim::binary<sim::Add>("TADD", dst, a, b);
}
template <class Dst, class A, class B>
inline void TSUB(Dst& dst, const A& a, const B& b) {
  sim::binary<sim::Sub>("TSUB", dst, a, b);
}
template <class Dst, class A, class B>
inline void TMUL(Dst& dst, const A& a, const B& b) {
  sim::binary<sim::Mul>("TMUL", dst, a, b);
}
template <class Dst, class A, class B>
inline void TDIV(Dst& dst, const A& a, const B& b) {
  sim::binary<sim::Div>("TDIV", dst, a, b);
}
template <class Dst, class A, class B>
inline void TMAX(Dst& dst, const A& a, const B& b) {
  sim::binary<sim::Max>("TMAX", dst, a, b);
}
template <class Dst, class A, class B>
inline void TMIN(Dst& dst, const A& a, const B& b) {
  sim::binary<sim::Min>("TMIN", dst, a, b);
}

template <class Dst, class A, class S>
inline void TADDS(Dst& dst, const A& a, S scalar) {
  sim::with_scalar<sim::Add, false>("TADDS", dst, a, scalar);
}
template <class Dst, sim::TileOperand A, class S>
inline void TSUBS(Dst& dst, const A& a, S scalar) {
  sim::with_scalar<sim::Sub, false>("TSUBS", dst, a, scalar);
}
// scalar - element
template <class Dst, class S, sim::TileOperand A>
inline void TSUBS(Dst& dst, S scalar, const A& a) {
  sim::with_scalar<sim::Sub, true>("TSUBS", dst, a, scalar);
}
template <class Dst, class A, class S>
inline void TMULS(Dst& dst, const A& a, S scalar) {
  sim::with_scalar<sim::Mul, false>("TMULS", dst, a, scalar);
}
template <class Dst, sim::TileOperand A, class S>
inline void TDIVS(Dst& dst, const A& a, S scalar) {
  sim::with_scalar<sim::Div, false>("TDIVS", dst, a, scalar);
}
// scalar / element
template <class Dst, class S, sim::TileOperand A>
inline void TDIVS(Dst& dst, S scalar, const A& a) {
  sim::with_scalar<sim::Div, true>("TDIVS", dst, a, scalar);
}
template <class Dst, class A, class S>
inline void TMAXS(Dst& dst, const A& a, S scalar) {
  sim::with_scalar<sim::Max, false>("TMAXS", dst, a, scalar);
}
template <class Dst, class A, class S>
inline void TMINS(Dst& dst, const A& a, S scalar) {
  sim::with_scalar<sim::Min, false>("TMINS", dst, a, scalar);
}

template <class Dst, class A>
inline void TEXP(Dst& dst, const A& a) {
  sim::require_float<Dst>();
  sim::unary("TEXP", dst, a, [](float x) { return sim::exp_f32(x); });
}
template <class Dst, class A>
inline void TLOG(Dst& dst, const A& a) {
  sim::require_float<Dst>();
  sim::unary("TLOG", dst, a, [](float x) { return sim::log_f32(x); });
}
template <class Dst, class A>
inline void TSQRT(Dst& dst, const A& a) {
  sim::require_float<Dst>();
  sim::unary("TSQRT", dst, a, [](float x) { return sim::sqrt_f32(x); });
}
template <class Dst, class A>
inline void TRSQRT(Dst& dst, const A& a) {
  sim::require_float<Dst>();
  sim::unary("TRSQRT", dst, a, [](float x) { return 1.0f / sim::sqrt_f32(x); });
}
template <class Dst, class A>
inline void TRECIP(Dst& dst, const A& a) {
  sim::require_float<Dst>();
  sim::unary("TRECIP", dst, a, [](float x) { return 1.0f / x; });
}
template <class Dst, class A>
inline void TNEG(Dst& dst, const A& a) {
  using T = typename Dst::DType;
  sim::unary("TNEG", dst, a, [](sim::compute_t<T> x) {
    if constexpr (sim::is_float<T>) {
      return -x;
    } else {
      return sim::Sub<T>::apply(0, x);
    }
  });
}
template <class Dst, class A>
inline void TABS(Dst& dst, const A& a) {
  using T = typename Dst::DType;
  sim::unary("TABS", dst, a, [](sim::compute_t<T> x) {
    if constexpr (sim::is_float<T>) {
      return __builtin_fabsf(x);
    } else {
      return x < 0 ? sim::Sub<T>::apply(0, x) : x;
    }
  });
}
template <class Dst, class A>
inline void TRELU(Dst& dst, const A& a) {
  using C = sim::compute_t<typename Dst::DType>;
  sim::unary("TRELU", dst, a, [](C x) { return x <= 0 ? static_cast<C>(0) : x; });
}

// Fills the valid region.
template <class Dst, class S>
inline void TEXPANDS(Dst& dst, S scalar) {
  using T = typename Dst::DType;
  sim::require_bound("TEXPANDS", dst);
  const T value = sim::Element<T>::store(sim::scalar_operand<T>(scalar));
  sim::map_elements(dst, [value]() { return value; });
}

}  // namespace pto

#endif  // PTO_SIM_ELEMENTWISE_HPP_
