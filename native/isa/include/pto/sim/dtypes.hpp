// Element types, and the arithmetic each computes in.
#ifndef PTO_SIM_DTYPES_HPP_
#define PTO_SIM_DTYPES_HPP_

#include <stdint.h>

#include "pto/sim/fp16_support.hpp"

namespace pto {

#if defined(__aarch64__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
using half = __fp16;
#else
using half = _Float16;
#endif

namespace sim {

inline uint32_t float_bits(float value) noexcept { return __builtin_bit_cast(uint32_t, value); }
inline float bits_float(uint32_t bits) noexcept { return __builtin_bit_cast(float, bits); }

// By its bits: gcc turns `x != x` on a converted fp16 into a call of the fp16 comparison.
inline bool is_nan(float value) noexcept {
  return static_cast<int32_t>(float_bits(value) & 0x7fffffffu) > 0x7f800000;
}
template <class T>
constexpr bool is_nan(T) noexcept {
  return false;
}

// To nearest, ties to even; NaN stays NaN (quiet, sign and leading payload kept).
inline uint16_t bf16_from_float(float value) noexcept {
  const uint32_t bits = float_bits(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t quiet = (bits >> 16) | 0x40u;
  return static_cast<uint16_t>(is_nan(value) ? quiet : rounded);
}

}  // namespace sim

// The upper half of an IEEE binary32. Arithmetic happens in float.
struct bfloat16_t {
  uint16_t bits;

  bfloat16_t() = default;
  bfloat16_t(float value) noexcept : bits(sim::bf16_from_float(value)) {}  // NOLINT: as a number
  operator float() const noexcept {                                        // NOLINT: as a number
    return sim::bits_float(static_cast<uint32_t>(bits) << 16);
  }
};
static_assert(sizeof(bfloat16_t) == 2);

namespace sim {

template <class A, class B>
inline constexpr bool same_type = false;
template <class A>
inline constexpr bool same_type<A, A> = true;

// What an element type computes in, and the limits of its values.
template <class T>
struct Element;

template <class T, class C>
struct FloatElement {
  static constexpr bool is_float = true;
  using Compute = C;
  static Compute load(T value) noexcept { return static_cast<C>(value); }
  static T store(Compute value) noexcept { return static_cast<T>(value); }
};
// Integers compute in an unsigned type, where overflow is defined to wrap.
template <class T, class U>
struct IntElement {
  static constexpr bool is_float = false;
  using Compute = T;
  using Wrapping = U;
  static Compute load(T value) noexcept { return value; }
  static T store(Compute value) noexcept { return value; }
  static constexpr bool is_signed = static_cast<T>(-1) < static_cast<T>(0);
  static constexpr T highest =
      is_signed ? static_cast<T>((uint64_t{1} << (sizeof(T) * 8 - 1)) - 1) : static_cast<T>(-1);
  static constexpr T lowest = is_signed ? static_cast<T>(-highest - 1) : static_cast<T>(0);
};

template <>
struct Element<float> : FloatElement<float, float> {
  static constexpr const char* name = "fp32";
  static float highest_value() noexcept { return bits_float(0x7f7fffffu); }
};
template <>
struct Element<half> : FloatElement<half, float> {
  static constexpr const char* name = "fp16";
  static half highest_value() noexcept { return static_cast<half>(65504.0f); }
};
template <>
struct Element<bfloat16_t> : FloatElement<bfloat16_t, float> {
  static constexpr const char* name = "bfloat16";
  static bfloat16_t highest_value() noexcept { return bits_float(0x7f7f0000u); }
};
template <>
struct Element<int8_t> : IntElement<int8_t, uint32_t> {
  static constexpr const char* name = "int8";
};
template <>
struct Element<uint8_t> : IntElement<uint8_t, uint32_t> {
  static constexpr const char* name = "uint8";
};
template <>
struct Element<int16_t> : IntElement<int16_t, uint32_t> {
  static constexpr const char* name = "int16";
};
template <>
struct Element<int32_t> : IntElement<int32_t, uint32_t> {
  static constexpr const char* name = "int32";
};
template <>
struct Element<int64_t> : IntElement<int64_t, uint64_t> {
  static constexpr const char* name = "int64";
};
template <>
struct Element<uint16_t> : IntElement<uint16_t, uint32_t> {
  static constexpr const char* name = "uint16";
};
template <>
struct Element<uint32_t> : IntElement<uint32_t, uint32_t> {
  static constexpr const char* name = "uint32";
};
template <>
struct Element<uint64_t> : IntElement<uint64_t, uint64_t> {
  static constexpr const char* name = "uint64";
};
// A truth value takes a byte, 0 or 1. Masks are read as "not 0".
template <>
struct Element<bool> : IntElement<bool, uint32_t> {
  static constexpr const char* name = "bool";
};

template <class T>
inline constexpr bool is_float = Element<T>::is_float;
template <class T>
using compute_t = typename Element<T>::Compute;

// The largest and smallest finite value of T.
template <class T>
inline T highest() noexcept {
  if constexpr (is_float<T>) {
    return Element<T>::highest_value();
  } else {
    return Element<T>::highest;
  }
}
template <class T>
inline T lowest() noexcept {
  if constexpr (is_float<T>) {
    return static_cast<T>(-static_cast<float>(Element<T>::highest_value()));
  } else {
    return Element<T>::lowest;
  }
}

}  // namespace sim
}  // namespace pto

// Generated code names them like the built-in types.
using pto::bfloat16_t;
using pto::half;

#endif  // PTO_SIM_DTYPES_HPP_
