// TCVT against exact arithmetic: every pair of types, every mode, ties, limits and NaN.
#include <limits>

#include "on_core.h"

using namespace pto;
using namespace pto::test;

namespace {

constexpr RoundMode kModes[] = {RoundMode::CAST_NONE,  RoundMode::CAST_RINT, RoundMode::CAST_ROUND,
                                RoundMode::CAST_FLOOR, RoundMode::CAST_CEIL, RoundMode::CAST_TRUNC,
                                RoundMode::CAST_ODD};

// Of the values below and above x, which are neighbours, the one that the mode picks.
template <class Number>
Number pick(Number x, Number below, Number above, bool below_is_even, RoundMode mode) {
  if (x == below) return below;
  const bool negative = x < 0;
  switch (mode) {
    case RoundMode::CAST_NONE:
    case RoundMode::CAST_RINT:
      if (x - below != above - x) return x - below < above - x ? below : above;
      return below_is_even ? below : above;
    case RoundMode::CAST_ROUND:
      if (x - below != above - x) return x - below < above - x ? below : above;
      return negative ? below : above;
    case RoundMode::CAST_FLOOR:
      return below;
    case RoundMode::CAST_CEIL:
      return above;
    case RoundMode::CAST_TRUNC:
      return negative ? above : below;
    case RoundMode::CAST_ODD:
      return below_is_even ? above : below;
  }
  return 0;
}

template <class To>
double to_integer(double x, RoundMode mode) {
  if (std::isnan(x)) return 0;
  const double low = static_cast<double>(std::numeric_limits<To>::min());
  const double high = static_cast<double>(std::numeric_limits<To>::max());
  if (x <= low) return low;
  if (x >= high) return high;
  const double below = std::floor(x);
  return pick<double>(x, below, below + 1, std::fmod(below, 2) == 0, mode);
}

// A 16-bit float's next value up.
template <class T>
T next_up(T value) {
  const auto bits = __builtin_bit_cast(uint16_t, value);
  const uint16_t next = bits == 0x8000u ? 1 : (bits & 0x8000u) != 0 ? bits - 1 : bits + 1;
  return __builtin_bit_cast(T, next);
}

template <class T>
double finite_or_beyond(T value) {
  const float x = static_cast<float>(value);
  if (!std::isinf(x)) return x;
  const double beyond = std::ldexp(1.0, std::is_same_v<T, half> ? 16 : 128);
  return x > 0 ? beyond : -beyond;
}

// x in a 16-bit float format, by walking to its neighbours.
template <class T>
double to_narrow(double x, RoundMode mode) {
  if (std::isnan(x) || std::isinf(x)) return x;
  // Beyond the largest finite value every number is as the last one before the next step.
  const double beyond = std::ldexp(1.0, std::is_same_v<T, half> ? 16 : 128);
  if (std::fabs(x) >= beyond) x = std::copysign(beyond * (1 - std::ldexp(1.0, -12)), x);
  T below = static_cast<T>(static_cast<float>(x));
  while (finite_or_beyond(below) > x) {
    const auto bits = __builtin_bit_cast(uint16_t, below);
    const uint16_t previous = bits == 0 ? 0x8001u : (bits & 0x8000u) != 0 ? bits + 1 : bits - 1;
    below = __builtin_bit_cast(T, previous);
  }
  const T above = next_up(below);
  const bool even = (__builtin_bit_cast(uint16_t, below) & 1u) == 0;
  const double picked =
      pick<double>(x, finite_or_beyond(below), finite_or_beyond(above), even, mode);
  return picked == finite_or_beyond(below) ? static_cast<double>(static_cast<float>(below))
                                           : static_cast<double>(static_cast<float>(above));
}

// A whole number in fp32, by its neighbours; long double holds every integer of 64 bits.
template <class From>
float to_single(From value, RoundMode mode) {
  const auto x = static_cast<long double>(value);
  float below = static_cast<float>(value);
  if (static_cast<long double>(below) > x) below = std::nextafter(below, -HUGE_VALF);
  const float above = std::nextafter(below, HUGE_VALF);
  if (static_cast<long double>(below) == x) return below;
  const bool even = (__builtin_bit_cast(uint32_t, below) & 1u) == 0;
  return static_cast<float>(pick<long double>(x, below, above, even, mode));
}

template <class To, class From>
double expected(From value, RoundMode mode) {
  const double x = number(value);
  if constexpr (std::is_same_v<To, float> && !sim::is_float<From>) {
    return to_single(value, mode);
  } else if constexpr (std::is_same_v<To, float>) {
    return static_cast<float>(x);
  } else if constexpr (std::is_same_v<To, half> || std::is_same_v<To, bfloat16_t>) {
    if constexpr (!sim::is_float<From>) {
      // To nearest even as torch does it, by way of fp32; other modes round the exact number, of
      // which its neighbour with an odd last bit in fp32 tells everything that a narrow type asks.
      const bool nearest = mode == RoundMode::CAST_NONE || mode == RoundMode::CAST_RINT;
      return to_narrow<To>(to_single(value, nearest ? mode : RoundMode::CAST_ODD), mode);
    }
    return to_narrow<To>(x, mode);
  } else if constexpr (sim::is_float<From>) {
    return to_integer<To>(x, mode);
  } else {
    return std::min(std::max(x, static_cast<double>(std::numeric_limits<To>::min())),
                    static_cast<double>(std::numeric_limits<To>::max()));
  }
}

template <class From>
std::vector<From> samples() {
  std::vector<From> values;
  if constexpr (sim::is_float<From>) {
    for (const float x :
         {0.0f,          0.5f,          1.5f,        2.5f,           0.49999997f,    126.5f,
          127.0f,        127.5f,        128.0f,      200.0f,         255.5f,         1e6f,
          2147483520.0f, 2147483648.0f, 1e20f,       1e38f,          HUGE_VALF,      65504.0f,
          65519.9f,      65520.0f,      65535.0f,    1e-5f,          1e-8f,          6e-8f,
          3e-8f,         1e-30f,        1e-40f,      1.00048828125f, 1.00146484375f, 1.001f,
          3.14159f,      1.00390625f,   1.01171875f, 3.3895e38f,     3.4e38f}) {
      values.push_back(static_cast<From>(x));
      values.push_back(static_cast<From>(-x));
    }
    values.push_back(static_cast<From>(NAN));
    Random random(7);
    for (int i = 0; i < 300; ++i) {
      values.push_back(static_cast<From>(sim::bits_float(random.next() << 1 ^ random.next())));
      values.push_back(random.value<From>());
    }
  } else {
    values = {
        0, 1, 2, 100, 127, std::numeric_limits<From>::min(), std::numeric_limits<From>::max()};
    Random random(8);
    for (int i = 0; i < 300; ++i) {
      values.push_back(random.value<From>());
      values.push_back(static_cast<From>(random.value<int16_t>()));
    }
  }
  while (values.size() % 8 != 0) values.push_back(values.front());
  return values;
}

template <class To, class From>
void check_pair() {
  using Source = Rows<From, 1, 8>;
  using Target = Rows<To, 1, 8>;
  const std::vector<From> values = samples<From>();
  for (const RoundMode mode : kModes) {
    for (size_t i = 0; i < values.size(); i += 8) {
      Image<Source> source(0);
      Image<Target> target(0);
      for (int64_t c = 0; c < 8; ++c) source.at(0, c) = values[i + static_cast<size_t>(c)];
      CHECK_RUNS([&] {
        Source s(1, 8);
        Target t(1, 8);
        TASSIGN(s, 0);
        TASSIGN(t, kSlot);
        source.put(s);
        TCVT(t, s, mode);
        target.get(t);
      });
      for (int64_t c = 0; c < 8; ++c) {
        const double want = expected<To, From>(source.at(0, c), mode);
        double got = number(target.at(0, c));
        // Two 64-bit integers may be one double; their difference does not matter here.
        if (got == want || (std::isnan(got) && std::isnan(want))) continue;
        fail(__FILE__, __LINE__,
             std::string(sim::Element<From>::name) + " " + std::to_string(number(source.at(0, c))) +
                 " to " + sim::Element<To>::name + " in mode " +
                 std::to_string(static_cast<int>(mode)) + ": " + std::to_string(got) + ", not " +
                 std::to_string(want));
      }
    }
  }
}

}  // namespace

int main() {
  for_types([]<class From>() {
    for_types([]<class To>() {
      if constexpr (!std::is_same_v<From, To>) check_pair<To, From>();
    });
  });
  CHECK_FAULTS(OnChipBounds, "TCVT", "overlap", [] {
    Rows<float, 1, 8> source(1, 8);
    Rows<half, 1, 8> target(1, 8);
    TASSIGN(source, 0);
    TASSIGN(target, 16);
    TCVT(target, source, RoundMode::CAST_RINT);
  });
  return result();
}
