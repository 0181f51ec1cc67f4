// Scalar arithmetic of generated kernels. C++ leaves overflow, division by zero and oversized
// conversions undefined, which would let a compiler drop the bounds checks that follow; here each
// has one meaning. 16-bit floats compute in fp32 and round once.
#ifndef PTO_SIM_SCALAR_OPS_HPP_
#define PTO_SIM_SCALAR_OPS_HPP_

#include "pto/sim/dtypes.hpp"
#include "pto/sim/fault.hpp"
#include "pypto_rt/scalar_power.h"

namespace pto::scalar {

namespace detail {

template <class T>
struct Unsigned;
template <>
struct Unsigned<bool> {
  using type = uint8_t;
};
template <>
struct Unsigned<int8_t> {
  using type = uint8_t;
};
template <>
struct Unsigned<uint8_t> {
  using type = uint8_t;
};
template <>
struct Unsigned<int16_t> {
  using type = uint16_t;
};
template <>
struct Unsigned<int32_t> {
  using type = uint32_t;
};
template <>
struct Unsigned<int64_t> {
  using type = uint64_t;
};
template <>
struct Unsigned<uint16_t> {
  using type = uint16_t;
};
template <>
struct Unsigned<uint32_t> {
  using type = uint32_t;
};
template <>
struct Unsigned<uint64_t> {
  using type = uint64_t;
};

template <class T>
inline constexpr bool is_minus_one(T value) noexcept {
  return static_cast<T>(-1) < static_cast<T>(1) && value == static_cast<T>(-1);
}

template <class T>
inline constexpr T lowest = static_cast<T>(uint64_t{1} << (sizeof(T) * 8 - 1));

inline void require_divisor(const char* op, bool is_zero) {
  if (__builtin_expect(is_zero, 0)) {
    sim::fault(sim::FaultCode::Value, op, sim::Message() << "integer division by zero");
  }
}

}  // namespace detail

// The bits of an integer, as a number that is never negative.
template <class T>
constexpr typename detail::Unsigned<T>::type bits(T value) noexcept {
  return static_cast<typename detail::Unsigned<T>::type>(value);
}

// The number a float element computes as.
template <class T>
constexpr float real(T value) noexcept {
  return static_cast<float>(value);
}

// Overflow wraps. Narrow types are computed in 64 bits, for C++ would promote them to a signed int.
template <class T>
constexpr T addi(T a, T b) noexcept {
  return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
template <class T>
constexpr T subi(T a, T b) noexcept {
  return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
template <class T>
constexpr T muli(T a, T b) noexcept {
  return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

namespace detail {

// C++ division, but the lowest value divided by -1 wraps to itself. The divisor is not zero.
template <class T>
constexpr T quotient(T a, T b) noexcept {
  return is_minus_one(b) ? subi<T>(0, a) : static_cast<T>(a / b);
}
template <class T>
constexpr T remainder(T a, T b) noexcept {
  return is_minus_one(b) ? T{0} : static_cast<T>(a % b);
}

}  // namespace detail

// Rounds toward zero.
template <class T>
inline T divsi(T a, T b) {
  detail::require_divisor("divsi", b == 0);
  return detail::quotient<T>(a, b);
}
// Has the sign of the dividend.
template <class T>
inline T remsi(T a, T b) {
  detail::require_divisor("remsi", b == 0);
  return detail::remainder<T>(a, b);
}
// Rounds down, as Python's // does.
template <class T>
inline T floordivsi(T a, T b) {
  detail::require_divisor("floordivsi", b == 0);
  const bool past = detail::remainder<T>(a, b) != 0 && (a < 0) != (b < 0);
  return static_cast<T>(detail::quotient<T>(a, b) - (past ? 1 : 0));
}
// Rounds up.
template <class T>
inline T ceildivsi(T a, T b) {
  detail::require_divisor("ceildivsi", b == 0);
  const bool short_of = detail::remainder<T>(a, b) != 0 && (a < 0) == (b < 0);
  return static_cast<T>(detail::quotient<T>(a, b) + (short_of ? 1 : 0));
}

// Shifting by the width or more leaves nothing but the sign.
template <class T>
constexpr T shli(T a, T count) noexcept {
  if (bits<T>(count) >= sizeof(T) * 8) return 0;
  return static_cast<T>(static_cast<uint64_t>(a) << bits<T>(count));
}
template <class T>
constexpr T shrsi(T a, T count) noexcept {
  if (bits<T>(count) >= sizeof(T) * 8) return static_cast<T>(a < 0 ? -1 : 0);
  return static_cast<T>(a >> bits<T>(count));
}

// Overflow wraps; a negative exponent has no whole number as its result.
template <class T>
inline T ipowi(T base, T exponent) {
  if (__builtin_expect(exponent < 0, 0)) {
    sim::fault(sim::FaultCode::Value, "ipowi",
               sim::Message() << "integer power with the negative exponent "
                              << static_cast<int64_t>(exponent));
  }
  return pypto_rt::integer_power<T>(base, exponent);
}

template <class T>
constexpr T minsi(T a, T b) noexcept {
  return b < a ? b : a;
}
template <class T>
constexpr T maxsi(T a, T b) noexcept {
  return a < b ? b : a;
}

// Keeps the low bits; of a bool, the lowest.
template <class T, class S>
constexpr T trunci(S value) noexcept {
  if constexpr (sim::same_type<T, bool>) {
    return (value & 1) != 0;
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
inline T addf(T a, T b) noexcept {
  return static_cast<T>(real<T>(a) + real<T>(b));
}
template <class T>
inline T subf(T a, T b) noexcept {
  return static_cast<T>(real<T>(a) - real<T>(b));
}
template <class T>
inline T mulf(T a, T b) noexcept {
  return static_cast<T>(real<T>(a) * real<T>(b));
}
template <class T>
inline T divf(T a, T b) noexcept {
  return static_cast<T>(real<T>(a) / real<T>(b));
}
template <class T>
inline T negf(T a) noexcept {
  return static_cast<T>(-real<T>(a));
}

template <class T>
inline T powf(T base, T exponent) noexcept {
  return static_cast<T>(pypto_rt::float_power(real<T>(base), real<T>(exponent)));
}

// NaN if either is; -0 is less than +0.
template <class T>
inline T minimumf(T a, T b) noexcept {
  const float x = real<T>(a);
  const float y = real<T>(b);
  if (x != x || y != y) return x != x ? a : b;
  if (x == y) return __builtin_signbit(x) ? a : b;
  return x < y ? a : b;
}
template <class T>
inline T maximumf(T a, T b) noexcept {
  const float x = real<T>(a);
  const float y = real<T>(b);
  if (x != x || y != y) return x != x ? a : b;
  if (x == y) return __builtin_signbit(x) ? b : a;
  return x < y ? b : a;
}

template <class T, class S>
inline T sitofp(S value) noexcept {
  return static_cast<T>(static_cast<float>(value));
}

// Toward zero; a number outside T becomes T's nearest, NaN becomes 0.
template <class T, class S>
inline T fptosi(S value) noexcept {
  const float x = static_cast<float>(value);
  constexpr T low = detail::lowest<T>;
  constexpr T high = static_cast<T>(~static_cast<uint64_t>(low));
  // -low is a power of two, so it is exact in float where high may not be.
  constexpr float bound = -static_cast<float>(low);
  if (x != x) return 0;
  if (x >= bound) return high;
  if (x < -bound) return low;
  return static_cast<T>(x);
}

inline int64_t loop_step(int64_t step) {
  if (__builtin_expect(step <= 0, 0)) {
    sim::fault(sim::FaultCode::Value, "scf.for",
               sim::Message() << "the step of a loop is " << step << ", it must be positive");
  }
  return step;
}

// i + step, or the highest value where that would wrap round and never end.
inline int64_t loop_next(int64_t i, int64_t step) noexcept {
  int64_t next = 0;
  return __builtin_add_overflow(i, step, &next) ? INT64_MAX : next;
}

}  // namespace pto::scalar

#endif  // PTO_SIM_SCALAR_OPS_HPP_
