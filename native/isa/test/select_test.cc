// Comparisons, selections, operations on truth values, and conversion of unsigned integers.
#include "on_core.h"

using namespace pto;
using namespace pto::test;

namespace {

constexpr CmpMode kModes[] = {CmpMode::EQ, CmpMode::NE, CmpMode::LT,
                              CmpMode::LE, CmpMode::GT, CmpMode::GE};

bool holds(CmpMode mode, double a, double b) {
  switch (mode) {
    case CmpMode::EQ:
      return a == b;
    case CmpMode::NE:
      return a != b;
    case CmpMode::LT:
      return a < b;
    case CmpMode::LE:
      return a <= b;
    case CmpMode::GT:
      return a > b;
    case CmpMode::GE:
      return a >= b;
  }
  return false;
}

// Values of few kinds, so that many are equal; NaN among the floats.
template <class T>
T few(Random& random) {
  const uint32_t kind = random.next() % 5;
  if constexpr (sim::is_float<T>) {
    if (kind == 4) return static_cast<T>(__builtin_nanf(""));
    return static_cast<T>(static_cast<float>(kind) - 2.0f);
  } else {
    return kind == 4 ? sim::Element<T>::highest : static_cast<T>(kind);
  }
}

template <class T, template <class, int, int> class Shape>
void check_masks(int64_t rows, int64_t cols) {
  using TileT = Shape<T, 7, 9>;
  using Mask = Shape<bool, 7, 9>;
  Image<TileT> a(1), b(2), chosen(3), with(4), without(5);
  Random random(6);
  for (int64_t r = 0; r < 7; ++r) {
    for (int64_t c = 0; c < 9; ++c) {
      a.at(r, c) = few<T>(random);
      b.at(r, c) = few<T>(random);
    }
  }
  const T scalar = static_cast<T>(1);
  for (const CmpMode mode : kModes) {
    std::vector<uint8_t> pairs(63, 2), numbers(63, 2);
    CHECK_RUNS([&] {
      TileT ta(rows, cols), tb(rows, cols), to(rows, cols);
      Mask mask(rows, cols);
      TASSIGN(ta, 0);
      TASSIGN(tb, kSlot);
      TASSIGN(to, 2 * kSlot);
      TASSIGN(mask, 3 * kSlot);
      a.put(ta);
      b.put(tb);
      const auto keep = [&](std::vector<uint8_t>& out) {
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t c = 0; c < cols; ++c) {
            out[static_cast<size_t>(r * 9 + c)] = mask.GetValue(r, c) ? 1 : 0;
          }
        }
      };
      TCMPS(mask, ta, scalar, mode);
      keep(numbers);
      TCMP(mask, ta, tb, mode);
      keep(pairs);
      TSEL(to, mask, ta, tb);
      chosen.get(to);
      TSELS(to, mask, ta, scalar);
      with.get(to);
      TSELS(to, mask, scalar, ta);
      without.get(to);
      TSEL(ta, mask, ta, tb);  // in place
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < cols; ++c) {
          const T value = ta.GetValue(r, c);
          if (!same_bits(value, chosen.at(r, c))) sim::fault_value("test", "in place");
        }
      }
    });
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < cols; ++c) {
        const auto i = static_cast<size_t>(r * 9 + c);
        const bool yes = holds(mode, number(a.at(r, c)), number(b.at(r, c)));
        CHECK(pairs[i] == (yes ? 1 : 0));
        CHECK(numbers[i] == (holds(mode, number(a.at(r, c)), 1.0) ? 1 : 0));
        CHECK(same_bits(chosen.at(r, c), yes ? a.at(r, c) : b.at(r, c)));
        CHECK(same_bits(with.at(r, c), yes ? a.at(r, c) : scalar));
        CHECK(same_bits(without.at(r, c), yes ? scalar : a.at(r, c)));
      }
    }
  }
}

void masks_combine() {
  using Mask = Rows<bool, 2, 2>;
  CHECK_RUNS([] {
    Mask a(2, 2), b(2, 2), to(2, 2);
    TASSIGN(a, 0);
    TASSIGN(b, 64);
    TASSIGN(to, 128);
    for (int64_t i = 0; i < 4; ++i) {
      a.SetValue(i / 2, i % 2, i / 2 != 0);
      b.SetValue(i / 2, i % 2, i % 2 != 0);
    }
    const auto expect = [&](int bits) {
      for (int64_t i = 0; i < 4; ++i) {
        const auto* byte = reinterpret_cast<const uint8_t*>(to.data() + i);
        if (*byte != ((bits >> i) & 1)) sim::fault_value("test", "wrong bits");
      }
    };
    TAND(to, a, b);
    expect(0b1000);
    TOR(to, a, b);
    expect(0b1110);
    TXOR(to, a, b);
    expect(0b0110);
    TNOT(to, a);
    expect(0b0011);
  });
}

void valid_regions_must_agree() {
  Rows<float, 4, 4> a(3, 4), b(4, 4);
  Rows<bool, 4, 4> mask(4, 4);
  CHECK_FAULTS(Shape, "TCMP", "the first source is [3, 4] where [4, 4] is needed", [&] {
    TASSIGN(a, 0);
    TASSIGN(b, kSlot);
    TASSIGN(mask, 2 * kSlot);
    TCMP(mask, a, b, CmpMode::EQ);
  });
  CHECK_FAULTS(Shape, "TSEL", "the first source is [3, 4]", [&] {
    TASSIGN(a, 0);
    TASSIGN(b, kSlot);
    TASSIGN(mask, 2 * kSlot);
    TSEL(b, mask, a, b);
  });
}

template <class To, RoundMode Mode, class From>
void converts(From from, To to) {
  const To result = sim::convert_element<To, Mode>(from);
  if (!same_bits(result, to)) {
    fail(__FILE__, __LINE__,
         "converted " + std::to_string(number(from)) + " to " + std::to_string(number(result)) +
             ", not " + std::to_string(number(to)));
  }
}

void unsigned_integers_convert() {
  converts<uint16_t, RoundMode::CAST_RINT>(-1, uint16_t{0});
  converts<uint16_t, RoundMode::CAST_RINT>(70000, uint16_t{65535});
  converts<int8_t, RoundMode::CAST_RINT>(uint64_t{1} << 63, int8_t{127});
  converts<int64_t, RoundMode::CAST_RINT>(~uint64_t{0}, INT64_MAX);
  converts<uint64_t, RoundMode::CAST_RINT>(INT64_MIN, uint64_t{0});
  converts<uint64_t, RoundMode::CAST_TRUNC>(3e38f, ~uint64_t{0});
  converts<uint32_t, RoundMode::CAST_CEIL>(0.25f, uint32_t{1});
  converts<uint32_t, RoundMode::CAST_ROUND>(-0.75f, uint32_t{0});
  converts<bool, RoundMode::CAST_RINT>(0.25f, true);
  converts<bool, RoundMode::CAST_RINT>(-0.0f, false);
  converts<float, RoundMode::CAST_RINT>(true, 1.0f);
}

// 2^24 + 1 lies between two floats.
void integers_round_to_floats() {
  constexpr int32_t kOdd = (1 << 24) + 1;
  converts<float, RoundMode::CAST_RINT>(kOdd, 16777216.0f);
  converts<float, RoundMode::CAST_ROUND>(kOdd, 16777218.0f);
  converts<float, RoundMode::CAST_ROUND>(-kOdd, -16777218.0f);
  converts<float, RoundMode::CAST_FLOOR>(-kOdd, -16777218.0f);
  converts<float, RoundMode::CAST_CEIL>(kOdd, 16777218.0f);
  converts<float, RoundMode::CAST_TRUNC>(-kOdd, -16777216.0f);
  converts<float, RoundMode::CAST_ODD>(kOdd, 16777218.0f);
  converts<float, RoundMode::CAST_CEIL>(~uint64_t{0}, 18446744073709551616.0f);
  converts<float, RoundMode::CAST_FLOOR>(INT64_MIN, -9223372036854775808.0f);
  converts<half, RoundMode::CAST_FLOOR>(int32_t{2049}, static_cast<half>(2048.0f));
  converts<half, RoundMode::CAST_CEIL>(int32_t{2049}, static_cast<half>(2050.0f));
  converts<half, RoundMode::CAST_TRUNC>(int64_t{1} << 40, static_cast<half>(65504.0f));
}

}  // namespace

int main() {
  const auto check = []<class T>() {
    check_masks<T, Rows>(7, 9);
    check_masks<T, Rows>(5, 1);
    check_masks<T, Columns>(7, 4);
  };
  for_types(check);
  check.operator()<uint16_t>();
  check.operator()<uint32_t>();
  check.operator()<uint64_t>();
  masks_combine();
  valid_regions_must_agree();
  unsigned_integers_convert();
  integers_round_to_floats();
  return result();
}
