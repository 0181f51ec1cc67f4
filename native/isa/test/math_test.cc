// exp, log, sqrt, sin, cos and the fp16 and bf16 formats, against the C library and by exhaustion.
#include "on_core.h"

using namespace pto;
using namespace pto::test;

namespace {

// Distance in representable values; 0 for two NaNs.
int64_t ulps(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) == std::isnan(b) ? 0 : INT64_MAX;
  const auto order = [](float x) {
    const auto bits = static_cast<int32_t>(sim::float_bits(x));
    return static_cast<int64_t>(bits < 0 ? INT32_MIN - bits : bits);
  };
  return std::abs(order(a) - order(b));
}

void check_function(const char* name, float (*got)(float) noexcept, double (*want)(double),
                    int64_t limit) {
  int64_t worst = 0;
  float at = 0;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 4093) {
    const float x = sim::bits_float(static_cast<uint32_t>(bits));
    const int64_t error = ulps(got(x), static_cast<float>(want(static_cast<double>(x))));
    if (error > worst) {
      worst = error;
      at = x;
    }
  }
  if (worst > limit) {
    fail(__FILE__, __LINE__,
         std::string(name) + " is " + std::to_string(worst) + " ulp off at " + std::to_string(at));
  }
}

void exact_values() {
  CHECK(sim::exp_f32(0.0f) == 1.0f);
  CHECK(sim::exp_f32(-HUGE_VALF) == 0.0f);
  CHECK(sim::exp_f32(HUGE_VALF) == HUGE_VALF);
  CHECK(sim::exp_f32(88.8f) == HUGE_VALF);
  CHECK(sim::exp_f32(88.7f) < HUGE_VALF);
  CHECK(sim::exp_f32(-103.0f) > 0.0f);
  CHECK(sim::exp_f32(-104.5f) == 0.0f);
  CHECK(std::isnan(sim::exp_f32(NAN)));
  CHECK(sim::log_f32(1.0f) == 0.0f);
  CHECK(sim::log_f32(0.0f) == -HUGE_VALF);
  CHECK(sim::log_f32(-0.0f) == -HUGE_VALF);
  CHECK(sim::log_f32(HUGE_VALF) == HUGE_VALF);
  CHECK(std::isnan(sim::log_f32(-1.0f)));
  CHECK(same_bits(sim::sin_f32(-0.0f), -0.0f));
  CHECK(sim::cos_f32(-0.0f) == 1.0f);
  CHECK(std::isnan(sim::sin_f32(HUGE_VALF)));
  CHECK(std::isnan(sim::cos_f32(NAN)));
}

// The nearest bf16, ties to even, by search among neighbours in exact arithmetic.
uint16_t nearest_bf16(float x) {
  const auto value = [](uint32_t bits) { return static_cast<double>(sim::bits_float(bits << 16)); };
  const uint32_t sign = sim::float_bits(x) >> 16 & 0x8000u;
  const double magnitude = std::fabs(static_cast<double>(x));
  uint32_t low = (sim::float_bits(x) & 0x7fffffffu) >> 16;
  const double below = value(low);
  // Beyond the largest finite value: as if the format went on.
  const double above = low == 0x7f7fu ? std::ldexp(1.0, 128) : value(low + 1);
  const double middle = (below + above) / 2;
  if (magnitude > middle || (magnitude == middle && (low & 1u) != 0)) ++low;
  return static_cast<uint16_t>(sign | low);
}

void bf16_rounds_to_nearest_even() {
  const uint32_t tails[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
  for (uint32_t high = 0; high < 0x10000u; ++high) {
    for (const uint32_t tail : tails) {
      const float x = sim::bits_float(high << 16 | tail);
      const bfloat16_t y(x);
      if (std::isnan(x)) {
        CHECK(std::isnan(static_cast<float>(y)));
      } else if (!std::isinf(x)) {
        CHECK(y.bits == nearest_bf16(x));
      } else {
        CHECK(static_cast<float>(y) == x);
      }
    }
    const bfloat16_t same = __builtin_bit_cast(bfloat16_t, static_cast<uint16_t>(high));
    const float wide = same;
    if (!std::isnan(wide)) CHECK(bfloat16_t(wide).bits == high);
  }
}

void fp16_round_trips() {
  for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const half x = __builtin_bit_cast(half, static_cast<uint16_t>(bits));
    const float wide = static_cast<float>(x);
    if (std::isnan(wide)) continue;
    CHECK(same_bits(static_cast<half>(wide), x));
    // Half a step further is a tie, which goes to the even neighbour.
    if (std::isinf(wide) || bits == 0x7bffu || bits == 0xfbffu) continue;
    const float next =
        static_cast<float>(__builtin_bit_cast(half, static_cast<uint16_t>(bits + 1)));
    const uint32_t even = (bits & 1u) == 0 ? bits : bits + 1;
    CHECK(same_bits(static_cast<half>((wide + next) / 2),
                    __builtin_bit_cast(half, static_cast<uint16_t>(even))));
  }
  CHECK(std::isinf(static_cast<float>(static_cast<half>(65520.0f))));
  CHECK(static_cast<float>(static_cast<half>(65519.0f)) == 65504.0f);
}

// Against the C library's power in double precision, which is exact to far more than a float.
void float_powers() {
  const float numbers[] = {0.0f,      -0.0f,  1.0f,       -1.0f,        0.5f,       2.0f,
                           -2.0f,     3.0f,   1.0000001f, 1e-30f,       1e30f,      -1e30f,
                           1e-40f,    10.25f, -7.0f,      16777216.0f,  0.3333333f, INFINITY,
                           -INFINITY, NAN,    127.0f,     -0.99999994f, 33554432.0f};
  for (const float base : numbers) {
    for (const float exponent : numbers) {
      const auto want = static_cast<float>(std::pow(double{base}, double{exponent}));
      const float have = pypto_rt::float_power(base, exponent);
      const bool same = want != want ? have != have : std::memcmp(&want, &have, sizeof want) == 0;
      if (!same) std::printf("%a ** %a: %a, not %a\n", base, exponent, have, want);
      CHECK(same);
    }
  }
}

}  // namespace

int main() {
  check_function("exp", sim::exp_f32, std::exp, 2);
  check_function("log", sim::log_f32, std::log, 2);
  check_function("sqrt", sim::sqrt_f32, std::sqrt, 0);
  check_function("sin", sim::sin_f32, std::sin, 2);
  check_function("cos", sim::cos_f32, std::cos, 2);
  exact_values();
  bf16_rounds_to_nearest_even();
  fp16_round_trips();
  float_powers();
  return result();
}
