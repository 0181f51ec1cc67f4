// Conversion between element types.
#ifndef PTO_SIM_CONVERT_HPP_
#define PTO_SIM_CONVERT_HPP_

#include "pto/sim/arithmetic.hpp"

namespace pto {

enum class RoundMode {
  CAST_NONE,   // as CAST_RINT
  CAST_RINT,   // to nearest, ties to even
  CAST_ROUND,  // to nearest, ties away from zero
  CAST_FLOOR,
  CAST_CEIL,
  CAST_TRUNC,
  CAST_ODD,  // toward zero; the magnitude of an inexact result gets its lowest bit set
};

namespace sim {

inline float round_away(float x) noexcept {
  const float whole = __builtin_truncf(x);
  const float step = __builtin_fabsf(x - whole) >= 0.5f ? 1.0f : 0.0f;
  return whole + __builtin_copysignf(step, x);
}

// x as a whole number, for conversion to integers.
template <RoundMode Mode>
inline float round_whole(float x) noexcept {
  if constexpr (Mode == RoundMode::CAST_ROUND) {
    return round_away(x);
  } else if constexpr (Mode == RoundMode::CAST_FLOOR) {
    return __builtin_floorf(x);
  } else if constexpr (Mode == RoundMode::CAST_CEIL) {
    return __builtin_ceilf(x);
  } else if constexpr (Mode == RoundMode::CAST_TRUNC) {
    return __builtin_truncf(x);
  } else if constexpr (Mode == RoundMode::CAST_ODD) {
    const float whole = __builtin_truncf(x);
    const float half = whole * 0.5f;
    const bool even = half == __builtin_truncf(half);
    return whole + (((whole != x) & even) ? __builtin_copysignf(1.0f, x) : 0.0f);
  } else {
    return __builtin_rintf(x);
  }
}

// The largest float that is not above the highest value of integer type T.
template <class T>
constexpr float highest_float() noexcept {
  if constexpr (sizeof(T) == 8) {
    return Element<T>::is_signed ? 9223371487098961920.0f : 18446742974197923840.0f;
  } else if constexpr (sizeof(T) == 4) {
    return Element<T>::is_signed ? 2147483520.0f : 4294967040.0f;
  } else {
    return static_cast<float>(Element<T>::highest);
  }
}

// Out of range saturates; NaN becomes 0.
template <class To, RoundMode Mode>
inline To float_to_int(float x) noexcept {
  constexpr float top = highest_float<To>();
  constexpr float bottom = static_cast<float>(Element<To>::lowest);
  const float whole = round_whole<Mode>(x);
  float inside = is_nan(whole) ? 0.0f : whole;
  inside = inside > top ? top : inside;
  inside = inside < bottom ? bottom : inside;
  const To value = static_cast<To>(inside);
  return whole > top ? Element<To>::highest : value;
}

template <class To, class From>
inline To int_to_int(From value) noexcept {
  if constexpr (Element<From>::is_signed) {
    if (value < 0) {
      const auto wide = static_cast<int64_t>(value);
      if constexpr (!Element<To>::is_signed) return To{0};
      return wide < static_cast<int64_t>(Element<To>::lowest) ? Element<To>::lowest
                                                              : static_cast<To>(wide);
    }
  }
  const auto magnitude = static_cast<uint64_t>(value);
  return magnitude > static_cast<uint64_t>(Element<To>::highest) ? Element<To>::highest
                                                                 : static_cast<To>(magnitude);
}

// An integer of more than 24 bits as the float next to it in a mode other than to-nearest-even.
template <RoundMode Mode, class From>
inline float int_to_float(From value) noexcept {
  bool negative = false;
  if constexpr (Element<From>::is_signed) negative = value < 0;
  const auto bits = static_cast<uint64_t>(value);
  const uint64_t magnitude = negative ? 0 - bits : bits;
  const int width = magnitude == 0 ? 0 : 64 - __builtin_clzll(magnitude);
  if (width <= 24) return static_cast<float>(value);
  const int shift = width - 24;
  uint64_t kept = magnitude >> shift;
  const uint64_t rest = magnitude & ((uint64_t{1} << shift) - 1);
  if constexpr (Mode == RoundMode::CAST_ROUND) {
    kept += rest >> (shift - 1);
  } else if constexpr (Mode == RoundMode::CAST_FLOOR) {
    kept += negative && rest != 0;
  } else if constexpr (Mode == RoundMode::CAST_CEIL) {
    kept += !negative && rest != 0;
  } else if constexpr (Mode == RoundMode::CAST_ODD) {
    kept |= rest != 0;
  }
  const float scale = bits_float(static_cast<uint32_t>(shift + 127) << 23);
  const float result = static_cast<float>(kept) * scale;
  return negative ? -result : result;
}

// A 16-bit float by its magnitude bits.
template <class T>
inline T from_bits16(uint32_t bits) noexcept {
  return __builtin_bit_cast(T, static_cast<uint16_t>(bits));
}

// Float to fp16 or bf16 in a mode other than to-nearest-even.
template <class To, RoundMode Mode>
inline To narrow_directed(float x) noexcept {
  if (is_nan(x)) return static_cast<To>(x);
  const float magnitude = __builtin_fabsf(x);
  const bool negative = (float_bits(x) >> 31) != 0;
  const auto value = [](uint32_t bits) { return static_cast<float>(from_bits16<To>(bits)); };
  uint32_t down = __builtin_bit_cast(uint16_t, static_cast<To>(magnitude));
  if (value(down) > magnitude) --down;  // now the largest value not above the magnitude
  const float low = value(down);
  uint32_t bits = down;
  if (low != magnitude) {
    if constexpr (Mode == RoundMode::CAST_FLOOR) {
      bits += negative;
    } else if constexpr (Mode == RoundMode::CAST_CEIL) {
      bits += !negative;
    } else if constexpr (Mode == RoundMode::CAST_ODD) {
      bits |= 1u;
    } else if constexpr (Mode == RoundMode::CAST_ROUND) {
      // Past the largest finite value the next step is as wide as the last one.
      const float step = low - value(down - (down != 0));
      const float up = value(down + 1);
      const float half_way = up - up == 0.0f ? (up - low) * 0.5f : step * 0.5f;
      bits += magnitude - low >= half_way;
    }
  }
  return from_bits16<To>(bits | (negative ? 0x8000u : 0u));
}

template <class To, RoundMode Mode, class From>
inline To convert_element(From value) noexcept {
  if constexpr (same_type<To, From>) {
    return value;
  } else if constexpr (same_type<To, bool>) {
    if constexpr (is_float<From>) {
      return Element<From>::load(value) != 0.0f;
    } else {
      return value != 0;
    }
  } else if constexpr (is_float<From> && is_float<To>) {
    const float x = Element<From>::load(value);
    if constexpr (same_type<To, float> || Mode == RoundMode::CAST_NONE ||
                  Mode == RoundMode::CAST_RINT) {
      return Element<To>::store(x);
    } else {
      return narrow_directed<To, Mode>(x);
    }
  } else if constexpr (is_float<From>) {
    return float_to_int<To, Mode>(Element<From>::load(value));
  } else if constexpr (is_float<To>) {
    if constexpr (Mode == RoundMode::CAST_NONE || Mode == RoundMode::CAST_RINT) {
      return Element<To>::store(static_cast<float>(value));
    } else if constexpr (same_type<To, float>) {
      return int_to_float<Mode>(value);
    } else {
      // Rounding to odd first keeps what decides how the narrower type rounds.
      return narrow_directed<To, Mode>(int_to_float<RoundMode::CAST_ODD>(value));
    }
  } else {
    return int_to_int<To>(value);
  }
}

// convert(a[i])
template <class To, class From, RoundMode Mode>
void run_convert(void* out, const void* a, const void*, int64_t count) {
  constexpr bool nearest = Mode == RoundMode::CAST_NONE || Mode == RoundMode::CAST_RINT;
  if constexpr (same_type<From, half> && same_type<To, float>) {
    widen(static_cast<float*>(out), static_cast<const half*>(a), count);
  } else if constexpr (same_type<From, float> && same_type<To, half> && nearest) {
    narrow(static_cast<half*>(out), static_cast<const float*>(a), count);
  } else {
    auto* o = static_cast<To*>(out);
    const auto* x = static_cast<const From*>(a);
    PTO_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) o[i] = convert_element<To, Mode>(x[i]);
  }
}

// The run that moves elements from one tile to another in the default mode.
template <class To, class From>
constexpr Run move_run() noexcept {
  if constexpr (same_type<To, From>) {
    return run_copy<To>;
  } else {
    return run_convert<To, From, RoundMode::CAST_RINT>;
  }
}

template <int Bytes>
struct BitsOf;
template <>
struct BitsOf<1> {
  using Type = uint8_t;
};
template <>
struct BitsOf<2> {
  using Type = uint16_t;
};
template <>
struct BitsOf<4> {
  using Type = uint32_t;
};

template <class T>
inline T sum_of(T a, T b) noexcept {
  if constexpr (is_float<T>) {
    return Element<T>::store(Element<T>::load(a) + Element<T>::load(b));
  } else {
    using Wrapping = typename Element<T>::Wrapping;
    return static_cast<T>(static_cast<Wrapping>(a) + static_cast<Wrapping>(b));
  }
}

// out[i] += a[i], converted first. Each element is read and written in one step as far as other
// cores can see; which of several additions comes first is open.
template <class To, class From>
void run_add_atomically(void* out, const void* a, const void*, int64_t count) {
  typedef typename BitsOf<sizeof(To)>::Type __attribute__((may_alias)) Bits;
  auto* o = static_cast<Bits*>(out);
  const auto* x = static_cast<const From*>(a);
  for (int64_t i = 0; i < count; ++i) {
    const To addend = convert_element<To, RoundMode::CAST_RINT>(x[i]);
    Bits seen = __atomic_load_n(&o[i], __ATOMIC_RELAXED);
    Bits wanted;
    do {
      To value;
      __builtin_memcpy(&value, &seen, sizeof value);
      value = sum_of(value, addend);
      __builtin_memcpy(&wanted, &value, sizeof wanted);
    } while (!__atomic_compare_exchange_n(&o[i], &seen, wanted, true, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
  }
}

template <class To, class From>
__attribute__((always_inline)) inline Run convert_run(RoundMode mode) noexcept {
  switch (mode) {
    case RoundMode::CAST_NONE:
    case RoundMode::CAST_RINT:
      break;
    case RoundMode::CAST_ROUND:
      return run_convert<To, From, RoundMode::CAST_ROUND>;
    case RoundMode::CAST_FLOOR:
      return run_convert<To, From, RoundMode::CAST_FLOOR>;
    case RoundMode::CAST_CEIL:
      return run_convert<To, From, RoundMode::CAST_CEIL>;
    case RoundMode::CAST_TRUNC:
      return run_convert<To, From, RoundMode::CAST_TRUNC>;
    case RoundMode::CAST_ODD:
      return run_convert<To, From, RoundMode::CAST_ODD>;
  }
  return move_run<To, From>();
}

PTO_SHARED inline void require_apart(const char* op, const TileView& dst, int64_t dst_element,
                                     const TileView& src, int64_t src_element) {
  if (dst_element != src_element && overlaps(dst, dst_element, src, src_element)) {
    fault(FaultCode::OnChipBounds, op, "destination and source overlap but differ in element size");
  }
}

}  // namespace sim

// Float to integer rounds as `mode` says; out of range saturates and NaN becomes 0. Integer to
// integer saturates. To a float, a number that the float cannot hold rounds as `mode` says;
// overflow goes to infinity (or, toward zero, to the largest finite value). To a truth value: true
// unless 0. From one: 0 or 1.
template <class Dst, class Src>
__attribute__((always_inline)) inline void TCVT(Dst& dst, const Src& src, RoundMode mode) {
  using To = typename Dst::DType;
  using From = typename Src::DType;
  sim::require_apart("TCVT", dst.view(), sizeof(To), src.view(), sizeof(From));
  sim::walk_one("TCVT", sim::convert_run<To, From>(mode), dst.view(), src.view(), nullptr,
                sizeof(To), sizeof(From));
}

namespace scalar {

// One number converted as TCVT converts an element.
template <class To, RoundMode Mode, class From>
inline To cast(From value) noexcept {
  return sim::convert_element<To, Mode>(value);
}

}  // namespace scalar
}  // namespace pto

#endif  // PTO_SIM_CONVERT_HPP_
