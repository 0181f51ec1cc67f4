// Sine and cosine, of every finite argument.
#ifndef PTO_SIM_TRIGONOMETRY_HPP_
#define PTO_SIM_TRIGONOMETRY_HPP_

#include "pto/sim/elementwise.hpp"

namespace pto {
namespace sim {

// An angle as `quarter` quarter turns and a rest of at most an eighth turn to either side.
struct Turn {
  float rest;
  uint32_t quarter;
};

// Of a finite number that is 2^20 or more, whose whole quarter turns a double cannot hold beside
// its rest: m * 2^e times 2 / pi, modulo 4, from the 96 bits of 2 / pi that matter.
inline Turn turn_of_large(float x) noexcept {
  constexpr uint32_t kTwoByPi[] = {0,           0xa2f9836eu, 0x4e441529u, 0xfc2757d1u,
                                   0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu};
  const uint32_t bits = float_bits(x);
  const uint32_t mantissa = (bits & 0x007fffffu) | 0x00800000u;
  const int exponent = static_cast<int>(bits >> 23) - 150;
  // The first bit whose product is not a multiple of 4; the table starts 32 bits before the point.
  const int first = exponent + 30;
  const int word = first / 32;
  const int shift = first % 32;
  unsigned __int128 window = 0;
  for (int i = 0; i < 4; ++i) window = window << 32 | kTwoByPi[word + i];
  window = window << shift >> 32;
  // Units of 2^-94 quarter turns; the nearest whole one and what remains, of which 63 bits do.
  const unsigned __int128 rounded = window * mantissa + (static_cast<unsigned __int128>(1) << 93);
  const auto quarter = static_cast<uint32_t>(rounded >> 94) & 3u;
  const auto above = static_cast<int64_t>(static_cast<uint64_t>(rounded >> 31) & (UINT64_MAX >> 1));
  constexpr double kUnit = 1.57079632679489661923 / 9223372036854775808.0;  // 2^63
  const int64_t rest = above - (int64_t{1} << 62);
  return {static_cast<float>(static_cast<double>(rest) * kUnit), quarter};
}

inline Turn turn_of(float magnitude) noexcept {
  if (magnitude >= 1048576.0f) return turn_of_large(magnitude);
  constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
  const double x = static_cast<double>(magnitude);
  const double n = (x * 0.636619772367581343076 + kRound) - kRound;
  // pi / 2 in two parts, the first with 33 bits, so that its product is exact.
  const double rest = (x - n * 1.57079632673412561417) - n * 6.07710050650619224932e-11;
  return {static_cast<float>(rest), static_cast<uint32_t>(static_cast<int32_t>(n)) & 3u};
}

// sin(turn) for quarter turns from 0; a quarter turn ahead it is the cosine.
inline float sin_of(float rest, uint32_t quarter) noexcept {
  const float z = rest * rest;
  const float sine =
      ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * rest + rest;
  const float cosine =
      ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * z * z -
      0.5f * z + 1.0f;
  const float value = (quarter & 1u) != 0 ? cosine : sine;
  return (quarter & 2u) != 0 ? -value : value;
}

// Within 2 ulp; NaN of what is not finite.
inline float sin_f32(float x) noexcept {
  const float magnitude = __builtin_fabsf(x);
  if (!(magnitude < __builtin_inff())) return __builtin_nanf("");
  const Turn turn = turn_of(magnitude);
  const uint32_t sign = float_bits(x) & 0x80000000u;
  return bits_float(float_bits(sin_of(turn.rest, turn.quarter)) ^ sign);
}
inline float cos_f32(float x) noexcept {
  const float magnitude = __builtin_fabsf(x);
  if (!(magnitude < __builtin_inff())) return __builtin_nanf("");
  const Turn turn = turn_of(magnitude);
  return sin_of(turn.rest, turn.quarter + 1u);
}

struct Sin {
  static float apply(float x) noexcept { return sin_f32(x); }
};
struct Cos {
  static float apply(float x) noexcept { return cos_f32(x); }
};

}  // namespace sim

template <class Dst, class A>
inline void TSIN(Dst& dst, const A& a) {
  sim::float_unary<sim::Sin>("TSIN", dst, a);
}
template <class Dst, class A>
inline void TCOS(Dst& dst, const A& a) {
  sim::float_unary<sim::Cos>("TCOS", dst, a);
}

}  // namespace pto

#endif  // PTO_SIM_TRIGONOMETRY_HPP_
