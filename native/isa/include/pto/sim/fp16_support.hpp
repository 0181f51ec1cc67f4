// What compilers call for fp16 where the CPU has no instruction for it. Kernels are not linked with
// the compiler's own library (see kernel_abi.h), so these take its place.
#ifndef PTO_SIM_FP16_SUPPORT_HPP_
#define PTO_SIM_FP16_SUPPORT_HPP_

#include <stdint.h>

#if defined(__x86_64__)
#define PTO_SUPPORT __attribute__((weak, visibility("hidden")))

extern "C" {
// 0 if equal. Not by comparing as floats: gcc turns that back into a call of this.
PTO_SUPPORT int __nehf2(_Float16 a, _Float16 b) {
  const uint32_t x = __builtin_bit_cast(uint16_t, a);
  const uint32_t y = __builtin_bit_cast(uint16_t, b);
  const bool unordered = (x & 0x7fffu) > 0x7c00u || (y & 0x7fffu) > 0x7c00u;
  const bool both_zero = ((x | y) & 0x7fffu) == 0;
  return unordered || (x != y && !both_zero);
}
PTO_SUPPORT int __eqhf2(_Float16 a, _Float16 b) { return __nehf2(a, b); }

#if !defined(__F16C__)
PTO_SUPPORT float __extendhfsf2(_Float16 value) {
  const uint32_t bits = __builtin_bit_cast(uint16_t, value);
  const uint32_t sign = (bits & 0x8000u) << 16;
  const uint32_t magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) {  // infinity; NaN, made quiet
    const uint32_t quiet = magnitude > 0x7c00u ? 0x400000u : 0u;
    return __builtin_bit_cast(float, sign | 0x7f800000u | quiet | (magnitude & 0x3ffu) << 13);
  }
  if (magnitude >= 0x400u) {
    return __builtin_bit_cast(float, sign | ((magnitude << 13) + (112u << 23)));
  }
  const float subnormal = static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f;
  return sign != 0 ? -subnormal : subnormal;
}

PTO_SUPPORT _Float16 __truncsfhf2(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t half = 0;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u | (magnitude >> 13 & 0x3ffu);
  } else if (magnitude >= 0x47800000u) {  // 65536 and more
    half = 0x7c00u;
  } else if (magnitude >= 0x38800000u) {  // normal; rounding may carry into infinity, as it should
    half = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  } else {  // adding 0.5 moves the rounding to the last bit of a subnormal fp16
    const float shifted = __builtin_bit_cast(float, magnitude) + 0.5f;
    half = __builtin_bit_cast(uint32_t, shifted) - 0x3f000000u;
  }
  return __builtin_bit_cast(_Float16, static_cast<uint16_t>(sign | half));
}
#endif
}

#undef PTO_SUPPORT
#endif

#endif  // PTO_SIM_FP16_SUPPORT_HPP_
