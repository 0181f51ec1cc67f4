// Element-wise instructions against a scalar reference: every type, several layouts, valid regions
// from nothing to everything, and nothing written outside them.
#include "on_core.h"

using namespace pto;
using namespace pto::test;

namespace {

// The exact result, then rounded to T as one operation would.
template <class T>
T rounded(double value) {
  return static_cast<T>(static_cast<float>(value));
}

template <class T, class F>
T arithmetic(T a, T b, F f) {
  if constexpr (sim::is_float<T>) {
    return rounded<T>(static_cast<double>(f(static_cast<float>(a), static_cast<float>(b))));
  } else {
    return static_cast<T>(f(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
  }
}

template <class T>
T add(T a, T b) {
  return arithmetic(a, b, [](auto x, auto y) { return x + y; });
}
template <class T>
T sub(T a, T b) {
  return arithmetic(a, b, [](auto x, auto y) { return x - y; });
}
template <class T>
T mul(T a, T b) {
  return arithmetic(a, b, [](auto x, auto y) { return x * y; });
}
template <class T>
T divide(T a, T b) {
  if constexpr (sim::is_float<T>) {
    return rounded<T>(static_cast<float>(a) / static_cast<float>(b));
  } else if constexpr (std::is_signed_v<T>) {
    if (b == -1) return sub(T{0}, a);
    return static_cast<T>(a / b);
  } else {
    return static_cast<T>(a / b);
  }
}
template <class T>
T larger(T a, T b) {
  return number(a) > number(b) ? a : b;
}
template <class T>
T smaller(T a, T b) {
  return number(a) < number(b) ? a : b;
}

template <class TileT>
void compare(const char* op, Image<TileT>& got, Image<TileT>& want) {
  for (int64_t r = 0; r < TileT::Rows; ++r) {
    for (int64_t c = 0; c < TileT::Cols; ++c) {
      if (same_bits(got.at(r, c), want.at(r, c))) continue;
      fail(__FILE__, __LINE__,
           std::string(op) + " [" + std::to_string(r) + ", " + std::to_string(c) + "] of " +
               std::to_string(TileT::Rows) + "x" + std::to_string(TileT::Cols) + ": " +
               std::to_string(number(got.at(r, c))) + ", not " +
               std::to_string(number(want.at(r, c))));
      return;
    }
  }
}

enum Where { Apart, InPlaceOfFirst, InPlaceOfSecond };

// Runs instruction(dst, a, b) and expects reference(a, b) in dst's valid region.
template <class TileT, class I, class F>
void check_binary(const char* op, int64_t rows, int64_t cols, I instruction, F reference,
                  Where where = Apart) {
  Image<TileT> a(1);
  Image<TileT> b(2);
  for (int64_t r = 0; r < TileT::Rows; ++r) {
    for (int64_t c = 0; c < TileT::Cols; ++c) {
      if (number(b.at(r, c)) == 0) b.at(r, c) = static_cast<typename TileT::DType>(3);
    }
  }
  Image<TileT> want(3);
  if (where == InPlaceOfFirst) want = a;
  if (where == InPlaceOfSecond) want = b;
  Image<TileT> got = want;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) want.at(r, c) = reference(a.at(r, c), b.at(r, c));
  }
  CHECK_RUNS([&] {
    TileT ta(rows, cols);
    TileT tb(rows, cols);
    TileT td(rows, cols);
    TASSIGN(ta, 0);
    TASSIGN(tb, kSlot);
    TASSIGN(td, where == Apart ? 2 * kSlot : where == InPlaceOfFirst ? 0 : kSlot);
    if (where == Apart) got.put(td);
    a.put(ta);
    b.put(tb);
    instruction(td, ta, tb);
    got.get(td);
  });
  compare(op, got, want);
}

template <class TileT>
void check_all_binary(int64_t rows, int64_t cols) {
  using T = typename TileT::DType;
  for (const Where where : {Apart, InPlaceOfFirst, InPlaceOfSecond}) {
    const auto check = [&](const char* op, auto instruction, auto reference) {
      check_binary<TileT>(op, rows, cols, instruction, reference, where);
    };
    check("TADD", [](auto& d, auto& a, auto& b) { TADD(d, a, b); }, add<T>);
    check("TSUB", [](auto& d, auto& a, auto& b) { TSUB(d, a, b); }, sub<T>);
    check("TMUL", [](auto& d, auto& a, auto& b) { TMUL(d, a, b); }, mul<T>);
    check("TDIV", [](auto& d, auto& a, auto& b) { TDIV(d, a, b); }, divide<T>);
    check("TMAX", [](auto& d, auto& a, auto& b) { TMAX(d, a, b); }, larger<T>);
    check("TMIN", [](auto& d, auto& a, auto& b) { TMIN(d, a, b); }, smaller<T>);
  }
}

template <class TileT>
void check_all_scalar(int64_t rows, int64_t cols) {
  using T = typename TileT::DType;
  const T s = static_cast<T>(3);
  const auto check = [&](const char* op, auto instruction, auto reference) {
    for (const Where where : {Apart, InPlaceOfFirst}) {
      check_binary<TileT>(
          op, rows, cols, [&](auto& d, auto& a, auto&) { instruction(d, a); },
          [&](T a, T) { return reference(a); }, where);
    }
  };
  check("TADDS", [=](auto& d, auto& a) { TADDS(d, a, s); }, [=](T a) { return add(a, s); });
  check("TSUBS", [=](auto& d, auto& a) { TSUBS(d, a, s); }, [=](T a) { return sub(a, s); });
  check("TSUBS", [=](auto& d, auto& a) { TSUBS(d, s, a); }, [=](T a) { return sub(s, a); });
  check("TMULS", [=](auto& d, auto& a) { TMULS(d, a, s); }, [=](T a) { return mul(a, s); });
  check("TDIVS", [=](auto& d, auto& a) { TDIVS(d, a, s); }, [=](T a) { return divide(a, s); });
  check("TMAXS", [=](auto& d, auto& a) { TMAXS(d, a, s); }, [=](T a) { return larger(a, s); });
  check("TMINS", [=](auto& d, auto& a) { TMINS(d, a, s); }, [=](T a) { return smaller(a, s); });
  check("TEXPANDS", [=](auto& d, auto&) { TEXPANDS(d, s); }, [=](T) { return s; });
  check(
      "TNEG", [](auto& d, auto& a) { TNEG(d, a); },
      [](T a) { return sim::is_float<T> ? static_cast<T>(-number(a)) : sub(T{0}, a); });
  check(
      "TABS", [](auto& d, auto& a) { TABS(d, a); },
      [](T a) { return number(a) < 0 ? sub(T{0}, a) : a; });
  check(
      "TRELU", [](auto& d, auto& a) { TRELU(d, a); }, [](T a) { return number(a) > 0 ? a : T{0}; });
  if constexpr (sim::is_float<T>) {
    check(
        "TRECIP", [](auto& d, auto& a) { TRECIP(d, a); },
        [](T a) { return rounded<T>(1.0f / static_cast<float>(a)); });
    // A scalar next to 16-bit tiles is not rounded to them first.
    check(
        "TADDS", [](auto& d, auto& a) { TADDS(d, a, 0.3f); },
        [](T a) { return rounded<T>(static_cast<float>(a) + 0.3f); });
  }
}

template <class TileT>
void check_valid_regions() {
  const int64_t rows[] = {0, 1, TileT::Rows / 2, TileT::Rows - 1, TileT::Rows};
  const int64_t cols[] = {0, 1, TileT::Cols / 2, TileT::Cols - 1, TileT::Cols};
  for (const int64_t r : rows) {
    for (const int64_t c : cols) {
      check_all_binary<TileT>(r, c);
      check_all_scalar<TileT>(r, c);
    }
  }
}

template <class TileT>
void check_bitwise(int64_t rows, int64_t cols) {
  using T = typename TileT::DType;
  constexpr int64_t kBits = sizeof(T) * 8;
  const auto check = [&](const char* op, auto instruction, auto reference) {
    for (const Where where : {Apart, InPlaceOfFirst, InPlaceOfSecond}) {
      check_binary<TileT>(op, rows, cols, instruction, reference, where);
    }
  };
  const auto left = [](T a, T n) {
    return n >= 0 && n < kBits ? static_cast<T>(static_cast<uint64_t>(a) << n) : T{0};
  };
  const auto right = [](T a, T n) {
    return static_cast<T>(n >= 0 && n < kBits ? a >> n : a < 0 ? -1 : 0);
  };
  check(
      "TAND", [](auto& d, auto& a, auto& b) { TAND(d, a, b); },
      [](T a, T b) { return static_cast<T>(a & b); });
  check(
      "TOR", [](auto& d, auto& a, auto& b) { TOR(d, a, b); },
      [](T a, T b) { return static_cast<T>(a | b); });
  check(
      "TXOR", [](auto& d, auto& a, auto& b) { TXOR(d, a, b); },
      [](T a, T b) { return static_cast<T>(a ^ b); });
  check("TSHL", [](auto& d, auto& a, auto& b) { TSHL(d, a, b); }, left);
  check("TSHR", [](auto& d, auto& a, auto& b) { TSHR(d, a, b); }, right);
  for (const int64_t count : {int64_t{0}, int64_t{1}, kBits - 1, kBits, kBits + 1}) {
    const T n = static_cast<T>(count);
    check(
        "TSHLS", [=](auto& d, auto& a, auto&) { TSHLS(d, a, n); },
        [=](T a, T) { return left(a, n); });
    check(
        "TSHRS", [=](auto& d, auto& a, auto&) { TSHRS(d, a, n); },
        [=](T a, T) { return right(a, n); });
  }
  const T s = static_cast<T>(0x5a);
  check(
      "TANDS", [=](auto& d, auto& a, auto&) { TANDS(d, a, s); },
      [=](T a, T) { return static_cast<T>(a & s); });
  check(
      "TORS", [=](auto& d, auto& a, auto&) { TORS(d, a, s); },
      [=](T a, T) { return static_cast<T>(a | s); });
  check(
      "TXORS", [=](auto& d, auto& a, auto&) { TXORS(d, a, s); },
      [=](T a, T) { return static_cast<T>(a ^ s); });
  check(
      "TNOT", [](auto& d, auto& a, auto&) { TNOT(d, a); },
      [](T a, T) { return static_cast<T>(~a); });
}

// Over pairs of all magnitudes, subnormals and infinities among them.
void remainders() {
  Random random(11);
  for (int i = 0; i < 200000; ++i) {
    const float x = sim::bits_float(random.next() ^ random.next() << 1);
    const float y = sim::bits_float(random.next() ^ random.next() << 1);
    const float got = sim::fmod_f32(x, y);
    const float want = std::fmod(x, y);
    if (std::isnan(want) ? !std::isnan(got) : !same_bits(got, want)) {
      fail(__FILE__, __LINE__,
           "fmod of " + std::to_string(x) + " and " + std::to_string(y) + ": " +
               std::to_string(got));
      return;
    }
  }
  for_types([]<class T>() {
    check_binary<Rows<T, 5, 24>>(
        "TFMOD", 4, 23, [](auto& d, auto& a, auto& b) { TFMOD(d, a, b); },
        [](T a, T b) {
          if constexpr (sim::is_float<T>) {
            return static_cast<T>(std::fmod(static_cast<float>(a), static_cast<float>(b)));
          } else {
            return static_cast<T>(static_cast<int64_t>(a) % static_cast<int64_t>(b));
          }
        });
    if constexpr (sim::is_float<T>) {
      check_binary<Rows<T, 5, 24>>(
          "TPRELU", 4, 23, [](auto& d, auto& a, auto& b) { TPRELU(d, a, b, a); },
          [](T a, T b) {
            return number(a) > 0 ? a : arithmetic(a, b, [](auto x, auto y) { return x * y; });
          },
          InPlaceOfSecond);
      check_binary<Rows<T, 5, 24>>(
          "TLRELU", 4, 23, [](auto& d, auto& a, auto&) { TLRELU(d, a, 0.5f); },
          [](T a, T) { return number(a) > 0 ? a : rounded<T>(static_cast<float>(a) * 0.5f); });
    }
  });
}

void reversed_division() {
  for_types([]<class T>() {
    using TileT = Rows<T, 5, 24>;
    const T s = static_cast<T>(100);
    check_binary<TileT>(
        "TDIVS", 4, 23, [=](auto& d, auto&, auto& b) { TDIVS(d, s, b); },
        [=](T, T b) { return divide(s, b); });
  });
}

void mixed_layouts() {
  using A = Rows<float, 12, 8>;
  using B = Columns<float, 12, 8>;
  Image<A> a(1);
  Image<B> b(2);
  Image<A> got(3);
  CHECK_RUNS([&] {
    A ta(11, 7);
    B tb(11, 7);
    A td(11, 7);
    TASSIGN(ta, 0);
    TASSIGN(tb, kSlot);
    TASSIGN(td, 2 * kSlot);
    a.put(ta);
    b.put(tb);
    TSUB(td, ta, tb);
    got.get(td);
  });
  for (int64_t r = 0; r < 11; ++r) {
    for (int64_t c = 0; c < 7; ++c) CHECK(got.at(r, c) == a.at(r, c) - b.at(r, c));
  }
}

void nan_propagates() {
  for_types([]<class T>() {
    if constexpr (sim::is_float<T>) {
      using TileT = Rows<T, 1, 8>;
      const T nan = static_cast<T>(std::nanf(""));
      const T one = static_cast<T>(1.0f);
      Image<TileT> got(0);
      const auto all = [&](auto instruction, bool first, bool second) {
        CHECK_RUNS([&] {
          TileT a(1, 8);
          TileT b(1, 8);
          TileT d(1, 8);
          TASSIGN(a, 0);
          TASSIGN(b, kSlot);
          TASSIGN(d, 2 * kSlot);
          TEXPANDS(a, first ? nan : one);
          TEXPANDS(b, second ? nan : one);
          instruction(d, a, b);
          got.get(d);
        });
        for (int64_t c = 0; c < 8; ++c)
          CHECK(std::isnan(number(got.at(0, c))) == (first || second));
      };
      for (const bool first : {false, true}) {
        for (const bool second : {false, true}) {
          all([](auto& d, auto& a, auto& b) { TMAX(d, a, b); }, first, second);
          all([](auto& d, auto& a, auto& b) { TMIN(d, a, b); }, first, second);
        }
        all([](auto& d, auto& a, auto&) { TRELU(d, a); }, first, false);
        all([](auto& d, auto& a, auto&) { TEXP(d, a); }, first, false);
        all([](auto& d, auto& a, auto&) { TLOG(d, a); }, first, false);
        all([](auto& d, auto& a, auto&) { TMAXS(d, a, 2.0f); }, first, false);
      }
    }
  });
}

void integer_edges() {
  using TileT = Rows<int32_t, 1, 8>;
  Image<TileT> got(0);
  CHECK_RUNS([&] {
    TileT a(1, 8);
    TileT d(1, 8);
    TASSIGN(a, 0);
    TASSIGN(d, kSlot);
    TEXPANDS(a, INT32_MIN);
    TDIVS(d, a, -1);
    got.get(d);
  });
  CHECK(got.at(0, 3) == INT32_MIN);
  CHECK_FAULTS(Value, "TDIV", "division by zero", [] {
    TileT a(1, 8);
    TASSIGN(a, 0);
    TEXPANDS(a, 7);
    TDIVS(a, a, 0);
  });
}

}  // namespace

int main() {
  for_types([]<class T>() { check_valid_regions<Rows<T, 5, 67>>(); });
  for_types([]<class T>() {
    if constexpr (!sim::is_float<T>) check_bitwise<Rows<T, 5, 67>>(4, 65);
  });
  remainders();
  check_valid_regions<Columns<float, 24, 5>>();
  check_valid_regions<Columns<half, 33, 1>>();
  check_valid_regions<Columns<int8_t, 33, 1>>();
  reversed_division();
  mixed_layouts();
  nan_propagates();
  integer_edges();
  return result();
}
