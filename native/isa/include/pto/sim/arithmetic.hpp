// The operations of element-wise and broadcasting instructions, and the runs made of them.
#ifndef PTO_SIM_ARITHMETIC_HPP_
#define PTO_SIM_ARITHMETIC_HPP_

#include "pto/sim/fp16_rows.hpp"
#include "pto/sim/loops.hpp"
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

// Op(a[i], b[i])
template <template <class> class Op, class T>
void run_pairs(void* out, const void* a, const void* b, int64_t count) {
  if constexpr (same_type<T, half>) {
    for_pieces(out, a, count, [b](float* x, int64_t at, int64_t size) {
      float y[kPiece];
      widen(y, static_cast<const half*>(b) + at, size);
      run_pairs<Op, float>(x, x, y, size);
    });
  } else {
    auto* o = static_cast<T*>(out);
    const auto* x = static_cast<const T*>(a);
    const auto* y = static_cast<const T*>(b);
    PTO_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) {
      o[i] = Op<T>::apply(Element<T>::load(x[i]), Element<T>::load(y[i]));
    }
  }
}

// Op(a[i], *b), or Op(*b, a[i]) if reversed; b is a B.
template <template <class> class Op, class T, class B, bool Reversed>
void run_with(void* out, const void* a, const void* b, int64_t count) {
  if constexpr (same_type<T, half>) {
    const float value = Element<B>::load(*static_cast<const B*>(b));
    for_pieces(out, a, count, [&value](float* x, int64_t, int64_t size) {
      run_with<Op, float, float, Reversed>(x, x, &value, size);
    });
  } else {
    auto* o = static_cast<T*>(out);
    const auto* x = static_cast<const T*>(a);
    const compute_t<T> value = Element<B>::load(*static_cast<const B*>(b));
    PTO_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) {
      const compute_t<T> element = Element<T>::load(x[i]);
      o[i] = Reversed ? Op<T>::apply(value, element) : Op<T>::apply(element, value);
    }
  }
}

// F(a[i])
template <class F, class T>
void run_each(void* out, const void* a, const void*, int64_t count) {
  if constexpr (same_type<T, half>) {
    for_pieces(out, a, count,
               [](float* x, int64_t, int64_t size) { run_each<F, float>(x, x, nullptr, size); });
  } else {
    auto* o = static_cast<T*>(out);
    const auto* x = static_cast<const T*>(a);
    PTO_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) o[i] = Element<T>::store(F::apply(Element<T>::load(x[i])));
  }
}

// a[i]
template <class T>
void run_copy(void* out, const void* a, const void*, int64_t count) {
  __builtin_memmove(out, a, static_cast<size_t>(count) * sizeof(T));
}

// *b
template <class T>
void run_fill(void* out, const void*, const void* b, int64_t count) {
  auto* o = static_cast<T*>(out);
  const T value = *static_cast<const T*>(b);
  PTO_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) o[i] = value;
}

template <class A, class... Rest>
constexpr void require_one_type() {
  static_assert((same_type<typename A::DType, typename Rest::DType> && ...),
                "the operands of this instruction have one element type");
}

}  // namespace pto::sim

#endif  // PTO_SIM_ARITHMETIC_HPP_
