// Row reductions and row/column broadcasts.
#include "on_core.h"

using namespace pto;
using namespace pto::test;

namespace {

// One rounding to T, and fp32 rounding errors of a sum of this size on the way.
template <class T>
bool close(T got, double want, double size) {
  if constexpr (!sim::is_float<T>) {
    return number(got) == want;
  } else {
    const double step = std::is_same_v<T, float> ? 0 : std::is_same_v<T, half> ? 5e-4 : 4e-3;
    return std::fabs(number(got) - want) <= step * std::fabs(want) + 1e-6 * size;
  }
}

template <class Src, class Dst>
void check_reduce(int64_t rows, int64_t cols) {
  using T = typename Src::DType;
  Image<Src> x(5);
  // What is not valid must not count, whatever it is.
  for (int64_t r = 0; r < Src::Rows; ++r) {
    for (int64_t c = 0; c < Src::Cols; ++c) {
      if (r >= rows || c >= cols) x.at(r, c) = sim::highest<T>();
    }
  }
  Image<Dst> sum(6);
  Image<Dst> largest(6);
  Image<Dst> smallest(6);
  const Image<Dst> untouched(6);
  CHECK_RUNS([&] {
    Src s(rows, cols);
    Src tmp(rows, cols);
    Dst d(rows, 1);
    TASSIGN(s, 0);
    TASSIGN(tmp, kSlot);
    TASSIGN(d, 2 * kSlot);
    x.put(s);
    sum.put(d);
    TROWSUM(d, s, tmp);
    sum.get(d);
    largest.put(d);
    TROWMAX(d, s, tmp);
    largest.get(d);
    smallest.put(d);
    TROWMIN(d, s, tmp);
    smallest.get(d);
  });
  Image<Dst> before = untouched;
  for (int64_t r = 0; r < Dst::Rows; ++r) {
    for (int64_t c = 0; c < Dst::Cols; ++c) {
      if (r < rows && c == 0) continue;
      CHECK(same_bits(sum.at(r, c), before.at(r, c)));
    }
    if (r >= rows) continue;
    double total = 0;
    double size = 0;
    uint64_t wrapped = 0;
    T most = x.at(r, 0);
    T least = x.at(r, 0);
    for (int64_t c = 0; c < cols; ++c) {
      total += number(x.at(r, c));
      size += std::fabs(number(x.at(r, c)));
      if constexpr (!sim::is_float<T>) wrapped += static_cast<uint64_t>(x.at(r, c));
      if (number(x.at(r, c)) > number(most)) most = x.at(r, c);
      if (number(x.at(r, c)) < number(least)) least = x.at(r, c);
    }
    if constexpr (!sim::is_float<T>) total = number(static_cast<T>(wrapped));
    CHECK(close(sum.at(r, 0), total, size));
    CHECK(number(largest.at(r, 0)) == number(most));
    CHECK(number(smallest.at(r, 0)) == number(least));
  }
}

// Each column to one value, by a function of two, from the first row on.
template <class Src, class I, class F>
void check_columns(int64_t rows, int64_t cols, I instruction, F combine) {
  using T = typename Src::DType;
  using Dst = Rows<T, 1, static_cast<int>(Src::Cols)>;
  Image<Src> x(7);
  for (int64_t r = 0; r < Src::Rows; ++r) {
    for (int64_t c = 0; c < Src::Cols; ++c) {
      if (r >= rows || c >= cols) x.at(r, c) = sim::highest<T>();
    }
  }
  Image<Dst> got(8);
  Image<Dst> before = got;
  CHECK_RUNS([&] {
    Src s(rows, cols);
    Dst d(1, cols);
    TASSIGN(s, 0);
    TASSIGN(d, kSlot);
    x.put(s);
    got.put(d);
    instruction(d, s);
    got.get(d);
  });
  for (int64_t c = 0; c < Src::Cols; ++c) {
    if (c >= cols) {
      CHECK(same_bits(got.at(0, c), before.at(0, c)));
      continue;
    }
    sim::compute_t<T> want = sim::Element<T>::load(x.at(0, c));
    for (int64_t r = 1; r < rows; ++r) {
      want = combine(want, sim::Element<T>::load(x.at(r, c)));
    }
    CHECK(same_bits(got.at(0, c), sim::Element<T>::store(want)));
  }
}

template <class Src>
void check_all_columns(int64_t rows, int64_t cols) {
  using C = sim::compute_t<typename Src::DType>;
  const auto check = [&](auto instruction, auto combine) {
    check_columns<Src>(rows, cols, instruction, combine);
  };
  check([](auto& d, auto& s) { TCOLMAX(d, s); }, [](C a, C b) { return sim::maximum(a, b); });
  check([](auto& d, auto& s) { TCOLMIN(d, s); }, [](C a, C b) { return sim::minimum(a, b); });
  check([](auto& d, auto& s) { TCOLSUM(d, s); }, [](C a, C b) { return sim::Add<C>::apply(a, b); });
  check([](auto& d, auto& s) { TCOLPROD(d, s); },
        [](C a, C b) { return sim::Mul<C>::apply(a, b); });
}

void products_of_rows() {
  using Src = Rows<float, 2, 70>;
  Image<Columns<float, 2, 1>> got(0);
  CHECK_RUNS([&] {
    Src s(2, 65);
    Columns<float, 2, 1> d(2, 1);
    TASSIGN(s, 0);
    TASSIGN(d, kSlot);
    TEXPANDS(s, -1.0f);
    s.SetValue(0, 64, 8.0f);
    s.SetValue(1, 0, 0.5f);
    TROWPROD(d, s, s);
    got.get(d);
  });
  CHECK(got.at(0, 0) == 8.0f);
  CHECK(got.at(1, 0) == 0.5f);
}

template <class Full, class PerRow>
void check_expand(int64_t rows, int64_t cols) {
  using T = typename Full::DType;
  using PerCol = Rows<T, 1, static_cast<int>(Full::Cols)>;
  Image<Full> x(1);
  Image<PerRow> v(2);
  Image<PerCol> w(3);
  for (int64_t r = 0; r < PerRow::Rows; ++r) {
    if (number(v.at(r, 0)) == 0) v.at(r, 0) = static_cast<T>(2);
  }
  for (int64_t c = 0; c < Full::Cols; ++c) {
    if (number(w.at(0, c)) == 0) w.at(0, c) = static_cast<T>(2);
  }
  const auto check = [&](auto instruction, bool by_row, auto op) {
    Image<Full> got(4);
    Image<Full> want = got;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < cols; ++c) {
        want.at(r, c) = op(x.at(r, c), by_row ? v.at(r, 0) : w.at(0, c));
      }
    }
    CHECK_RUNS([&] {
      Full f(rows, cols);
      Full d(rows, cols);
      PerRow pr(rows, 1);
      PerCol pc(1, cols);
      TASSIGN(f, 0);
      TASSIGN(d, kSlot);
      TASSIGN(pr, 2 * kSlot);
      TASSIGN(pc, 3 * kSlot);
      x.put(f);
      got.put(d);
      v.put(pr);
      w.put(pc);
      instruction(d, f, pr, pc);
      got.get(d);
    });
    for (int64_t r = 0; r < Full::Rows; ++r) {
      for (int64_t c = 0; c < Full::Cols; ++c) CHECK(same_bits(got.at(r, c), want.at(r, c)));
    }
  };
  using sim::compute_t;
  using sim::Element;
  const auto add = [](T a, T b) {
    return sim::Add<T>::apply(Element<T>::load(a), Element<T>::load(b));
  };
  const auto sub = [](T a, T b) {
    return sim::Sub<T>::apply(Element<T>::load(a), Element<T>::load(b));
  };
  const auto mul = [](T a, T b) {
    return sim::Mul<T>::apply(Element<T>::load(a), Element<T>::load(b));
  };
  const auto div = [](T a, T b) {
    return sim::Div<T>::apply(Element<T>::load(a), Element<T>::load(b));
  };
  const auto most = [](T a, T b) {
    return sim::Max<T>::apply(Element<T>::load(a), Element<T>::load(b));
  };
  const auto least = [](T a, T b) {
    return sim::Min<T>::apply(Element<T>::load(a), Element<T>::load(b));
  };
  const auto second = [](T, T b) { return b; };
  check([](auto& d, auto& f, auto& r, auto&) { TROWEXPANDADD(d, f, r); }, true, add);
  check([](auto& d, auto& f, auto& r, auto&) { TROWEXPANDSUB(d, f, r); }, true, sub);
  check([](auto& d, auto& f, auto& r, auto&) { TROWEXPANDMUL(d, f, r); }, true, mul);
  check([](auto& d, auto& f, auto& r, auto&) { TROWEXPANDDIV(d, f, r); }, true, div);
  check([](auto& d, auto& f, auto& r, auto&) { TROWEXPANDMAX(d, f, r); }, true, most);
  check([](auto& d, auto& f, auto& r, auto&) { TROWEXPANDMIN(d, f, r); }, true, least);
  if constexpr (sim::is_float<T>) {
    const auto expdif = [](T a, T b) {
      return sim::ExpDif<T>::apply(Element<T>::load(a), Element<T>::load(b));
    };
    check([](auto& d, auto& f, auto& r, auto&) { TROWEXPANDEXPDIF(d, f, r); }, true, expdif);
  }
  check([](auto& d, auto&, auto& r, auto&) { TROWEXPAND(d, r); }, true, second);
  check([](auto& d, auto& f, auto&, auto& c) { TCOLEXPANDMAX(d, f, c); }, false, most);
  check([](auto& d, auto& f, auto&, auto& c) { TCOLEXPANDMIN(d, f, c); }, false, least);
  check([](auto& d, auto& f, auto&, auto& c) { TCOLEXPANDADD(d, f, c); }, false, add);
  check([](auto& d, auto& f, auto&, auto& c) { TCOLEXPANDSUB(d, f, c); }, false, sub);
  check([](auto& d, auto& f, auto&, auto& c) { TCOLEXPANDMUL(d, f, c); }, false, mul);
  check([](auto& d, auto& f, auto&, auto& c) { TCOLEXPANDDIV(d, f, c); }, false, div);
  check([](auto& d, auto&, auto&, auto& c) { TCOLEXPAND(d, c); }, false, second);
}

void nan_reaches_the_result() {
  using Src = Rows<float, 2, 70>;
  using Dst = Columns<float, 2, 1>;
  for (int64_t at = 0; at < 70; ++at) {
    Image<Dst> got(0);
    CHECK_RUNS([&] {
      Src s(2, 70);
      Dst d(2, 1);
      TASSIGN(s, 0);
      TASSIGN(d, kSlot);
      TEXPANDS(s, -1.0f);
      s.SetValue(1, at, NAN);
      TROWMAX(d, s, s);
      got.get(d);
    });
    CHECK(got.at(0, 0) == -1.0f);
    CHECK(std::isnan(got.at(1, 0)));
  }
}

}  // namespace

int main() {
  for_types([]<class T>() {
    for (const int64_t cols : {1, 7, 31, 32, 33, 64, 77}) {
      check_reduce<Rows<T, 9, 77>, Columns<T, 9, 1>>(9, cols);
      check_reduce<Rows<T, 9, 77>, Rows<T, 9, 8>>(6, cols);
    }
    check_reduce<Columns<T, 9, 40>, Columns<T, 9, 1>>(8, 39);
    for (const int64_t cols : {1, 31, 64, 77}) check_all_columns<Rows<T, 9, 77>>(8, cols);
    check_all_columns<Columns<T, 40, 7>>(39, 6);
    check_expand<Rows<T, 6, 40>, Columns<T, 6, 1>>(6, 40);
    check_expand<Rows<T, 6, 40>, Rows<T, 6, 8>>(5, 33);
    check_expand<Columns<T, 6, 40>, Columns<T, 6, 1>>(5, 33);
    check_expand<Rows<T, 6, 40>, Columns<T, 6, 1>>(0, 33);
  });
  nan_reaches_the_result();
  products_of_rows();
  CHECK_FAULTS(Value, "TCOLSUM", "no row", [] {
    Rows<float, 2, 8> s(0, 8);
    Rows<float, 1, 8> d(1, 8);
    TASSIGN(s, 0);
    TASSIGN(d, kSlot);
    TCOLSUM(d, s);
  });
  CHECK_FAULTS(Value, "TROWMAX", "no column", [] {
    Rows<float, 2, 8> s(2, 0);
    Columns<float, 2, 1> d(2, 1);
    TASSIGN(s, 0);
    TASSIGN(d, kSlot);
    TROWMAX(d, s, s);
  });
  return result();
}
