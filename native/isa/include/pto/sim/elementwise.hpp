// Element-wise instructions: tile with tile, tile with scalar, and of one tile.
#ifndef PTO_SIM_ELEMENTWISE_HPP_
#define PTO_SIM_ELEMENTWISE_HPP_

#include "pto/sim/arithmetic.hpp"

namespace pto {
namespace sim {

template <template <class> class Op, class Dst, class A, class B>
inline void binary(const char* op, const Dst& dst, const A& a, const B& b) {
  require_one_type<Dst, A, B>();
  using T = typename Dst::DType;
  walk_two(op, run_pairs<Op, T>, dst.view(), a.view(), b.view(), sizeof(T));
}

// Op(element, scalar), or Op(scalar, element) when reversed. The scalar is taken in the compute
// type: next to fp16 and bf16 tiles a float scalar keeps its precision.
template <template <class> class Op, bool Reversed, class Dst, class A, class S>
inline void with_scalar(const char* op, const Dst& dst, const A& a, S scalar) {
  require_one_type<Dst, A>();
  using T = typename Dst::DType;
  using C = compute_t<T>;
  const C value = static_cast<C>(scalar);
  walk_one(op, run_with<Op, T, C, Reversed>, dst.view(), a.view(), &value, sizeof(T), sizeof(T));
}

template <class F, class Dst, class A>
inline void unary(const char* op, const Dst& dst, const A& a) {
  require_one_type<Dst, A>();
  using T = typename Dst::DType;
  walk_one(op, run_each<F, T>, dst.view(), a.view(), nullptr, sizeof(T), sizeof(T));
}

template <class F, class Dst, class A>
inline void float_unary(const char* op, const Dst& dst, const A& a) {
  static_assert(is_float<typename Dst::DType>, "this instruction needs a floating-point tile");
  unary<F>(op, dst, a);
}

struct Exp {
  static float apply(float x) noexcept { return exp_f32(x); }
};
struct Log {
  static float apply(float x) noexcept { return log_f32(x); }
};
struct Sqrt {
  static float apply(float x) noexcept { return sqrt_f32(x); }
};
struct Rsqrt {
  static float apply(float x) noexcept { return 1.0f / sqrt_f32(x); }
};
struct Recip {
  static float apply(float x) noexcept { return 1.0f / x; }
};
struct Neg {
  static float apply(float x) noexcept { return -x; }
  template <class C>
  static C apply(C x) noexcept {
    return Sub<C>::apply(0, x);
  }
};
struct Abs {
  static float apply(float x) noexcept { return __builtin_fabsf(x); }
  template <class C>
  static C apply(C x) noexcept {
    return x < 0 ? Sub<C>::apply(0, x) : x;
  }
};
struct Relu {
  template <class C>
  static C apply(C x) noexcept {
    return x <= 0 ? static_cast<C>(0) : x;
  }
};

// a where it is positive, a * slope elsewhere.
template <class T>
struct Leak {
  static_assert(is_float<T>, "this instruction needs a floating-point tile");
  static T apply(float a, float slope) noexcept {
    return Element<T>::store(a > 0.0f ? a : a * slope);
  }
};

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
  sim::float_unary<sim::Exp>("TEXP", dst, a);
}
template <class Dst, class A>
inline void TLOG(Dst& dst, const A& a) {
  sim::float_unary<sim::Log>("TLOG", dst, a);
}
template <class Dst, class A>
inline void TSQRT(Dst& dst, const A& a) {
  sim::float_unary<sim::Sqrt>("TSQRT", dst, a);
}
template <class Dst, class A>
inline void TRSQRT(Dst& dst, const A& a) {
  sim::float_unary<sim::Rsqrt>("TRSQRT", dst, a);
}
template <class Dst, class A>
inline void TRECIP(Dst& dst, const A& a) {
  sim::float_unary<sim::Recip>("TRECIP", dst, a);
}
template <class Dst, class A>
inline void TNEG(Dst& dst, const A& a) {
  sim::unary<sim::Neg>("TNEG", dst, a);
}
template <class Dst, class A>
inline void TABS(Dst& dst, const A& a) {
  sim::unary<sim::Abs>("TABS", dst, a);
}
template <class Dst, class A>
inline void TRELU(Dst& dst, const A& a) {
  sim::unary<sim::Relu>("TRELU", dst, a);
}

template <class Dst, class A, class S>
inline void TLRELU(Dst& dst, const A& a, S slope) {
  sim::with_scalar<sim::Leak, false>("TLRELU", dst, a, slope);
}
template <class Dst, class A, class B, class Tmp>
inline void TPRELU(Dst& dst, const A& a, const B& slope, const Tmp&) {
  sim::binary<sim::Leak>("TPRELU", dst, a, slope);
}

// Fills the valid region.
template <class Dst, class S>
inline void TEXPANDS(Dst& dst, S scalar) {
  using T = typename Dst::DType;
  const T value = sim::Element<T>::store(static_cast<sim::compute_t<T>>(scalar));
  sim::walk_one("TEXPANDS", sim::run_fill<T>, dst.view(), dst.view(), &value, sizeof(T), sizeof(T));
}

}  // namespace pto

#endif  // PTO_SIM_ELEMENTWISE_HPP_
