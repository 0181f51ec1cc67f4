// Powers of scalars, the same for kernels and for orchestration code, without any library.
#ifndef PYPTO_RT_SCALAR_POWER_H_
#define PYPTO_RT_SCALAR_POWER_H_

#include <stdint.h>

namespace pypto_rt {

// base to a power that is not negative; overflow wraps.
template <class T>
constexpr T integer_power(T base, T exponent) noexcept {
  uint64_t result = 1;
  auto factor = static_cast<uint64_t>(base);
  for (auto rest = static_cast<uint64_t>(exponent); rest != 0; rest >>= 1) {
    if ((rest & 1) != 0) result *= factor;
    factor *= factor;
  }
  return static_cast<T>(result);
}

// The base-2 logarithm of a positive finite number, to about 2^-50.
inline double log2_positive(double x) noexcept {
  const auto bits = __builtin_bit_cast(uint64_t, x);
  // Mantissa in [sqrt(1/2), sqrt(2)).
  constexpr uint64_t kRootHalf = 0x3fe6a09e667f3bcd;
  const uint64_t moved = bits - kRootHalf;
  const auto exponent = static_cast<int64_t>(moved) >> 52;
  const double m = __builtin_bit_cast(double, (moved & 0x000fffffffffffff) + kRootHalf);
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;
  double series = 0.0;
  for (int k = 21; k >= 1; k -= 2) series = series * z + 1.0 / k;
  return static_cast<double>(exponent) + series * s * 2.8853900817779268;
}

// 2^t for |t| <= 1000.
inline double exp2_small(double t) noexcept {
  constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
  const double n = (t + kRound) - kRound;
  const double r = (t - n) * 0.6931471805599453;
  double p = 1.0;
  for (int k = 14; k >= 1; --k) p = p * r / k + 1.0;
  const auto exponent = static_cast<uint64_t>(static_cast<int64_t>(n) + 1023);
  return p * __builtin_bit_cast(double, exponent << 52);
}

// base^exponent as IEEE 754 has it: 1 where the exponent is 0 or the base 1, NaN for a negative
// base with an exponent that is no whole number. Correct to the last bit but for rare ties.
inline float float_power(float base, float exponent) noexcept {
  constexpr float kInfinity = __builtin_inff();
  if (exponent == 0.0f || base == 1.0f) return 1.0f;
  if (base != base || exponent != exponent) return __builtin_nanf("");
  const float size = __builtin_fabsf(base);
  const float reach = __builtin_fabsf(exponent);
  // From 2^24 on every float is an even whole number.
  const bool whole =
      reach >= 16777216.0f || static_cast<float>(static_cast<int64_t>(exponent)) == exponent;
  const bool odd = whole && reach < 16777216.0f && (static_cast<int64_t>(exponent) & 1) != 0;
  if (reach == kInfinity) {
    if (size == 1.0f) return 1.0f;
    return (size > 1.0f) == (exponent > 0.0f) ? kInfinity : 0.0f;
  }
  if (size == 0.0f || size == kInfinity) {
    const float end = (size == 0.0f) == (exponent < 0.0f) ? kInfinity : 0.0f;
    return odd && __builtin_signbit(base) ? -end : end;
  }
  if (base < 0.0f && !whole) return __builtin_nanf("");
  double t = static_cast<double>(exponent) * log2_positive(size);
  t = t > 1000.0 ? 1000.0 : t < -1000.0 ? -1000.0 : t;
  const auto result = static_cast<float>(exp2_small(t));
  return odd && base < 0.0f ? -result : result;
}

}  // namespace pypto_rt

#endif  // PYPTO_RT_SCALAR_POWER_H_
