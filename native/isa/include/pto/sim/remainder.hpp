// The remainder of a division that truncates: it has the sign of the dividend.
#ifndef PTO_SIM_REMAINDER_HPP_
#define PTO_SIM_REMAINDER_HPP_

#include "pto/sim/elementwise.hpp"

namespace pto {
namespace sim {

// x - trunc(x / y) * y without rounding. NaN where x is infinite, y is 0 or either is NaN.
inline float fmod_f32(float x, float y) noexcept {
  const uint32_t sign = float_bits(x) & 0x80000000u;
  const uint32_t dividend = float_bits(x) & 0x7fffffffu;
  const uint32_t divisor = float_bits(y) & 0x7fffffffu;
  if (dividend >= 0x7f800000u || divisor > 0x7f800000u || divisor == 0) return __builtin_nanf("");
  if (dividend < divisor) return x;
  // Both as mantissa * 2^exponent; subnormals have the exponent of the smallest normal number.
  const auto exponent = [](uint32_t bits) { return bits < 0x00800000u ? 1u : bits >> 23; };
  const auto mantissa = [](uint32_t bits) {
    return (bits & 0x007fffffu) | (bits < 0x00800000u ? 0u : 0x00800000u);
  };
  const uint64_t by = mantissa(divisor);
  uint64_t rest = mantissa(dividend) % by;
  // A rest has 24 bits at most, so that 40 more fit.
  for (uint32_t shift = exponent(dividend) - exponent(divisor); shift > 0;) {
    const uint32_t step = shift < 40 ? shift : 40;
    rest = (rest << step) % by;
    shift -= step;
  }
  // The rest is below 2^24 and a multiple of the unit of y: exact in both factors.
  const uint32_t scale = exponent(divisor);
  const float unit = scale > 23 ? bits_float((scale - 23) << 23) : bits_float(1u << (scale - 1));
  const float magnitude = static_cast<float>(static_cast<int32_t>(rest)) * unit;
  return bits_float(float_bits(magnitude) | sign);
}

template <class T>
struct Fmod {
  static T apply(compute_t<T> a, compute_t<T> b) {
    if constexpr (is_float<T>) {
      return Element<T>::store(fmod_f32(a, b));
    } else {
      if (b == 0) fault_value("TFMOD", "integer division by zero");
      if constexpr (Element<T>::is_signed) {
        if (b == -1) return 0;
      }
      return static_cast<T>(a % b);
    }
  }
};

}  // namespace sim

template <class Dst, class A, class B>
inline void TFMOD(Dst& dst, const A& a, const B& b) {
  sim::binary<sim::Fmod>("TFMOD", dst, a, b);
}
template <class Dst, class A, class S>
inline void TFMODS(Dst& dst, const A& a, S scalar) {
  sim::with_scalar<sim::Fmod, false>("TFMODS", dst, a, scalar);
}

}  // namespace pto

#endif  // PTO_SIM_REMAINDER_HPP_
