// The operations of element-wise and broadcasting instructions, on single elements.
#ifndef PTO_SIM_ARITHMETIC_HPP_
#define PTO_SIM_ARITHMETIC_HPP_

#include "pto/sim/fault.hpp"
#include "pto/sim/math.hpp"

namespace pto::sim {

template <class T>
struct Add {
  static T apply(compute_t<T> a, compute_t<T> b) noexcept {
    if constexpr (is_float<T>) {
      return Element<T>::store(a + b);
    } else {
      using U = typename Element<T>::Wrapping;
      return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    }
  }
};

template <class T>
struct Sub {
  static T apply(compute_t<T> a, compute_t<T> b) noexcept {
    if constexpr (is_float<T>) {
      return Element<T>::store(a - b);
    } else {
      using U = typename Element<T>::Wrapping;
      return static_cast<T>(static_cast<U>(a) - static_cast<U>(b));
    }
  }
};

template <class T>
struct Mul {
  static T apply(compute_t<T> a, compute_t<T> b) noexcept {
    if constexpr (is_float<T>) {
      return Element<T>::store(a * b);
    } else {
      using U = typename Element<T>::Wrapping;
      return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
    }
  }
};

// Integers truncate toward zero; the lowest value divided by -1 wraps to itself.
template <class T>
struct Div {
  static T apply(compute_t<T> a, compute_t<T> b) {
    if constexpr (is_float<T>) {
      return Element<T>::store(a / b);
    } else {
      if (b == 0) fault_value("TDIV", "integer division by zero");
      if constexpr (Element<T>::is_signed) {
        if (b == -1) return Sub<T>::apply(0, a);
      }
      return static_cast<T>(a / b);
    }
  }
};

template <class T>
struct Max {
  static T apply(compute_t<T> a, compute_t<T> b) noexcept {
    return Element<T>::store(maximum(a, b));
  }
};

template <class T>
struct Min {
  static T apply(compute_t<T> a, compute_t<T> b) noexcept {
    return Element<T>::store(minimum(a, b));
  }
};

}  // namespace pto::sim

#endif  // PTO_SIM_ARITHMETIC_HPP_
