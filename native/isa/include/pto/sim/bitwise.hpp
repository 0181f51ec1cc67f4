// Bitwise instructions, on integers; and, or, xor and not also on truth values.
#ifndef PTO_SIM_BITWISE_HPP_
#define PTO_SIM_BITWISE_HPP_

#include "pto/sim/elementwise.hpp"

namespace pto {
namespace sim {

template <class T>
struct And {
  static T apply(T a, T b) noexcept { return static_cast<T>(a & b); }
};
template <class T>
struct Or {
  static T apply(T a, T b) noexcept { return static_cast<T>(a | b); }
};
template <class T>
struct Xor {
  static T apply(T a, T b) noexcept { return static_cast<T>(a ^ b); }
};
struct Not {
  template <class T>
  static T apply(T x) noexcept {
    if constexpr (same_type<T, bool>) {
      return !x;
    } else {
      return static_cast<T>(~x);
    }
  }
};

// A count outside 0 ... width - 1 leaves nothing but, to the right, the sign.
template <class T>
struct Shl {
  static T apply(T a, T count) noexcept {
    using U = typename Element<T>::Wrapping;
    const U by = static_cast<U>(count);
    const U inside = by & (sizeof(T) * 8 - 1);
    return inside == by ? static_cast<T>(static_cast<U>(a) << inside) : T{0};
  }
};
template <class T>
struct Shr {
  static T apply(T a, T count) noexcept {
    using U = typename Element<T>::Wrapping;
    const U by = static_cast<U>(count);
    const U inside = by & (sizeof(T) * 8 - 1);
    const T rest = a < 0 ? static_cast<T>(-1) : T{0};
    return inside == by ? static_cast<T>(a >> inside) : rest;
  }
};

template <class TileT>
constexpr void require_integers() {
  static_assert(!is_float<typename TileT::DType>, "this instruction needs an integer tile");
}

template <template <class> class Op, class Dst, class A, class B>
inline void bits(const char* op, const Dst& dst, const A& a, const B& b) {
  require_integers<Dst>();
  binary<Op>(op, dst, a, b);
}
template <template <class> class Op, class Dst, class A, class S>
inline void bits_with(const char* op, const Dst& dst, const A& a, S scalar) {
  require_integers<Dst>();
  with_scalar<Op, false>(op, dst, a, scalar);
}

}  // namespace sim

template <class Dst, class A, class B>
inline void TAND(Dst& dst, const A& a, const B& b) {
  sim::bits<sim::And>("TAND", dst, a, b);
}
template <class Dst, class A, class B>
inline void TOR(Dst& dst, const A& a, const B& b) {
  sim::bits<sim::Or>("TOR", dst, a, b);
}
template <class Dst, class A, class B>
inline void TXOR(Dst& dst, const A& a, const B& b) {
  sim::bits<sim::Xor>("TXOR", dst, a, b);
}
template <class Dst, class A, class B>
inline void TSHL(Dst& dst, const A& a, const B& b) {
  sim::bits<sim::Shl>("TSHL", dst, a, b);
}
template <class Dst, class A, class B>
inline void TSHR(Dst& dst, const A& a, const B& b) {
  sim::bits<sim::Shr>("TSHR", dst, a, b);
}

template <class Dst, class A, class S>
inline void TANDS(Dst& dst, const A& a, S scalar) {
  sim::bits_with<sim::And>("TANDS", dst, a, scalar);
}
template <class Dst, class A, class S>
inline void TORS(Dst& dst, const A& a, S scalar) {
  sim::bits_with<sim::Or>("TORS", dst, a, scalar);
}
template <class Dst, class A, class S>
inline void TXORS(Dst& dst, const A& a, S scalar) {
  sim::bits_with<sim::Xor>("TXORS", dst, a, scalar);
}
template <class Dst, class A, class S>
inline void TSHLS(Dst& dst, const A& a, S scalar) {
  sim::bits_with<sim::Shl>("TSHLS", dst, a, scalar);
}
template <class Dst, class A, class S>
inline void TSHRS(Dst& dst, const A& a, S scalar) {
  sim::bits_with<sim::Shr>("TSHRS", dst, a, scalar);
}

template <class Dst, class A>
inline void TNOT(Dst& dst, const A& a) {
  sim::require_integers<Dst>();
  sim::unary<sim::Not>("TNOT", dst, a);
}

}  // namespace pto

#endif  // PTO_SIM_BITWISE_HPP_
