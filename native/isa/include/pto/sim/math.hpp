// Scalar functions that vectorize: no branch, no call, no table.
#ifndef PTO_SIM_MATH_HPP_
#define PTO_SIM_MATH_HPP_

#include "pto/sim/dtypes.hpp"

namespace pto::sim {

// e^x, within 1.5 ulp; overflows to infinity and underflows through the subnormals to zero.
inline float exp_f32(float x) noexcept {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  float z = x < -104.0f ? -104.0f : x;
  z = z > 89.0f ? 89.0f : z;
  const float shifted = z * 1.44269504088896341f + kRound;
  const float n = shifted - kRound;
  const float r = (z - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  // 2^n in two factors, so that neither leaves the normal range.
  const int32_t exponent = static_cast<int32_t>(float_bits(shifted) - float_bits(kRound));
  const int32_t first = exponent >> 1;
  const int32_t second = exponent - first;
  const float a = bits_float(static_cast<uint32_t>(first + 127) << 23);
  const float b = bits_float(static_cast<uint32_t>(second + 127) << 23);
  return p * a * b;
}

// Natural logarithm, within 2 ulp; log(0) = -inf, of a negative number NaN.
inline float log_f32(float x) noexcept {
  const bool subnormal = x < 1.17549435e-38f;
  const float scaled = subnormal ? x * 8388608.0f : x;
  const uint32_t bits = float_bits(scaled);
  // Mantissa in [sqrt(1/2), sqrt(2)).
  const uint32_t moved = bits - 0x3f3504f3u;
  const int32_t exponent = static_cast<int32_t>(moved) >> 23;
  const float m = bits_float((moved & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  const float e = static_cast<float>(exponent) - (subnormal ? 23.0f : 0.0f);
  const float z = m * m;
  float p = 7.0376836292e-2f;
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  p = p * m * z;
  p = p + e * -2.12194440e-4f - 0.5f * z;
  float result = m + p + e * 0.693359375f;
  result = x == __builtin_inff() ? x : result;
  result = x == 0.0f ? -__builtin_inff() : result;
  return ((x < 0.0f) | is_nan(x)) ? __builtin_nanf("") : result;
}

inline float sqrt_f32(float x) noexcept { return __builtin_sqrtf(x); }

// Of two values, the larger; NaN if either is.
template <class C>
inline C maximum(C a, C b) noexcept {
  return (a > b) | is_nan(a) ? a : b;
}
template <class C>
inline C minimum(C a, C b) noexcept {
  return (a < b) | is_nan(a) ? a : b;
}

}  // namespace pto::sim

#endif  // PTO_SIM_MATH_HPP_
