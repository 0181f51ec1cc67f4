// Moves: global memory and back in every stride, between tiles, reshapes, transposes, padding.
#include <thread>

#include "on_core.h"

using namespace pto;
using namespace pto::test;

namespace {

template <class TileT>
void check_load_store(int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride) {
  using T = typename TileT::DType;
  const auto size = static_cast<size_t>(rows * row_stride + cols * col_stride + 8);
  std::vector<T> from(size);
  Random random(11);
  for (T& element : from) element = random.value<T>();
  std::vector<T> to(size, T{5});
  Image<TileT> image(0);
  CHECK_RUNS([&] {
    TileT tile(rows, cols);
    TASSIGN(tile, 0);
    image.put(tile);
    using G = GlobalTensor<T, Shape<1, 1, 1>, Stride<>>;
    const Shape<1, 1, 1> shape(1, 1, 1, rows, cols);
    const Stride<> stride(0, 0, 0, row_stride, col_stride);
    TLOAD(tile, G(from.data() + 3, shape, stride));
    image.get(tile);
    TSTORE(G(to.data() + 3, shape, stride), tile);
  });
  std::vector<bool> written(size);
  for (int64_t r = 0; r < TileT::Rows; ++r) {
    for (int64_t c = 0; c < TileT::Cols; ++c) {
      const auto i = static_cast<size_t>(3 + r * row_stride + c * col_stride);
      const bool valid = r < rows && c < cols;
      CHECK(same_bits(image.at(r, c), valid ? from[i] : static_cast<T>(0)));
      if (!valid) continue;
      CHECK(same_bits(to[i], from[i]));
      written[i] = true;
    }
  }
  for (size_t i = 0; i < size; ++i) CHECK(written[i] || same_bits(to[i], T{5}));
}

// A [32, 24] matrix of bytes-wide blocks in layout NZ: element (r, c) of floats is at
// (c / 8 * 32 + r) * 8 + c % 8.
void fractals_are_read_and_written_in_place() {
  std::vector<float> from(32 * 24);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i);
  std::vector<float> to(from.size(), -1.0F);
  Image<Rows<float, 16, 16>> image(0);
  CHECK_RUNS([&] {
    Rows<float, 16, 16> tile(5, 16);
    TASSIGN(tile, 0);
    using G = GlobalTensor<float, Shape<1, 1, 1, 32, 24>, Stride<>, Layout::NZ>;
    const Shape<1, 1, 1, 32, 24> shape;
    const G whole(from.data(), shape, Stride<>());
    TLOAD(tile, partition_view(whole, {0, 0, 0, 17, 8}, {1, 1, 1, 5, 16}));
    image.get(tile);
    TSTORE(partition_view(G(to.data(), shape, Stride<>()), {0, 0, 0, 3, 0}, {1, 1, 1, 5, 16}),
           tile);
  });
  const auto place = [](int64_t r, int64_t c) {
    return static_cast<size_t>((c / 8 * 32 + r) * 8 + c % 8);
  };
  size_t written = 0;
  for (int64_t r = 0; r < 16; ++r) {
    for (int64_t c = 0; c < 16; ++c) {
      CHECK(image.at(r, c) == (r < 5 ? from[place(17 + r, 8 + c)] : 0.0F));
      if (r < 5) CHECK(to[place(3 + r, c)] == from[place(17 + r, 8 + c)]);
    }
  }
  for (const float element : to) written += element != -1.0F;
  CHECK(written == 5 * 16);
}

void parts_of_fractals_have_whole_columns() {
  std::vector<float> data(32 * 24);
  using G = GlobalTensor<float, Shape<1, 1, 1, 32, 24>, Stride<>, Layout::NZ>;
  const auto take = [&](int64_t at, int64_t count) {
    const G whole(data.data(), Shape<1, 1, 1, 32, 24>(), Stride<>());
    partition_view(whole, {0, 0, 0, 0, at}, {1, 1, 1, 32, count});
  };
  CHECK_FAULTS(GlobalBounds, "partition_view", "the offset is 4, which is no multiple of the 8",
               [&] { take(4, 8); });
  CHECK_FAULTS(GlobalBounds, "partition_view", "the size is 12, which is no multiple of the 8",
               [&] { take(0, 12); });
  CHECK_FAULTS(GlobalBounds, "partition_view", "reach outside dimension", [&] { take(16, 16); });
}

void planes_become_rows() {
  // [2, 3, 2, 4]: 12 rows of 4.
  std::vector<float> data(100);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i);
  Image<Rows<float, 12, 8>> image(0);
  CHECK_RUNS([&] {
    Rows<float, 12, 8> tile(12, 4);
    TASSIGN(tile, 0);
    using G = GlobalTensor<float, Shape<1, 2, 3, 2, 4>, Stride<-1, 48, 16, 6, 1>>;
    TLOAD(tile, G(data.data(), Shape<1, 2, 3, 2, 4>(), Stride<-1, 48, 16, 6, 1>(96)));
    image.get(tile);
  });
  for (int64_t r = 0; r < 12; ++r) {
    for (int64_t c = 0; c < 4; ++c) {
      CHECK(image.at(r, c) == static_cast<float>(r / 6 * 48 + r / 2 % 3 * 16 + r % 2 * 6 + c));
    }
  }
}

void store_narrows() {
  using Acc =
      Tile<TileType::Acc, float, 16, 16, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 1024>;
  std::vector<half> halves(16 * 16);
  std::vector<bfloat16_t> brains(16 * 16);
  Image<Acc> image(3);
  CHECK_RUNS([&] {
    Acc tile(15, 13);
    TASSIGN(tile, 0);
    image.put(tile);
    const Shape<> shape(1, 1, 1, 15, 13);
    const Stride<> stride(0, 0, 0, 16, 1);
    TSTORE(GlobalTensor<half>(halves.data(), shape, stride), tile);
    TSTORE(GlobalTensor<bfloat16_t>(brains.data(), shape, stride), tile);
  });
  for (int64_t r = 0; r < 15; ++r) {
    for (int64_t c = 0; c < 13; ++c) {
      const auto i = static_cast<size_t>(r * 16 + c);
      CHECK(same_bits(halves[i], static_cast<half>(image.at(r, c))));
      CHECK(same_bits(brains[i], bfloat16_t(image.at(r, c))));
    }
  }
}

template <class Dst, class Src, class I>
void check_move(int64_t rows, int64_t cols, int64_t to_rows, int64_t to_cols, uint64_t src_at,
                uint64_t dst_at, I instruction,
                void (*index)(int64_t, int64_t, int64_t, int64_t&, int64_t&)) {
  Image<Src> source(9);
  Image<Dst> target(10);
  CHECK_RUNS([&] {
    Src s(rows, cols);
    Dst d(to_rows, to_cols);
    TASSIGN(s, src_at);
    TASSIGN(d, dst_at);
    source.put(s);
    instruction(d, s);
    target.get(d);
  });
  for (int64_t r = 0; r < to_rows; ++r) {
    for (int64_t c = 0; c < to_cols; ++c) {
      int64_t sr = 0;
      int64_t sc = 0;
      index(r * to_cols + c, to_cols, cols, sr, sc);
      CHECK(same_bits(target.at(r, c), source.at(sr, sc)));
    }
  }
}

void same_place(int64_t i, int64_t to_cols, int64_t, int64_t& r, int64_t& c) {
  r = i / to_cols;
  c = i % to_cols;
}
void same_order(int64_t i, int64_t, int64_t from_cols, int64_t& r, int64_t& c) {
  r = i / from_cols;
  c = i % from_cols;
}
void swapped(int64_t i, int64_t to_cols, int64_t, int64_t& r, int64_t& c) {
  r = i % to_cols;
  c = i / to_cols;
}

template <class T>
void check_moves() {
  const auto move = [](auto& d, auto& s) { TMOV(d, s); };
  const auto reshape = [](auto& d, auto& s) { TRESHAPE(d, s); };
  const auto transpose = [](auto& d, auto& s) { TTRANS(d, s, s); };
  const auto fill = [](auto& d, auto& s) { TFILLPAD(d, s); };
  using Mat = Tile<TileType::Mat, T, 24, 40, BLayout::ColMajor, -1, -1, SLayout::RowMajor>;
  using Left = Tile<TileType::Left, T, 24, 40, BLayout::RowMajor, -1, -1, SLayout::RowMajor>;
  check_move<Left, Mat>(23, 37, 23, 37, 0, 0, move, same_place);
  check_move<Mat, Mat>(23, 37, 23, 37, 0, kSlot, move, same_place);
  check_move<Rows<T, 24, 40>, Mat>(23, 37, 23, 37, 0, 0, move, same_place);
  // Overlapping, and of another pitch.
  check_move<Rows<T, 24, 48>, Rows<T, 24, 40>>(23, 37, 23, 37, 64, 0, move, same_place);
  check_move<Columns<T, 24, 40>, Rows<T, 24, 40>>(23, 37, 23, 37, 0, 0, move, same_place);

  check_move<Rows<T, 1, 16>, Columns<T, 16, 1>>(16, 1, 1, 16, 0, kSlot, reshape, same_order);
  check_move<Columns<T, 16, 1>, Rows<T, 1, 16>>(1, 16, 16, 1, 0, 0, reshape, same_order);
  check_move<Rows<T, 1, 16>, Rows<T, 16, 8>>(16, 1, 1, 16, 0, 0, reshape, same_order);
  check_move<Rows<T, 16, 8>, Rows<T, 1, 16>>(1, 16, 16, 1, 0, 0, reshape, same_order);
  check_move<Rows<T, 12, 10>, Rows<T, 6, 24>>(6, 20, 12, 10, 0, kSlot, reshape, same_order);
  check_move<Rows<T, 12, 10>, Rows<T, 6, 24>>(6, 20, 12, 10, 0, 0, reshape, same_order);

  check_move<Rows<T, 40, 24>, Rows<T, 24, 40>>(23, 37, 37, 23, 0, kSlot, transpose, swapped);
  check_move<Rows<T, 40, 24>, Rows<T, 24, 40>>(23, 37, 37, 23, 0, 0, transpose, swapped);

  check_move<Rows<T, 24, 40>, Rows<T, 24, 40>>(11, 13, 11, 13, 0, 0, fill, same_place);
  check_move<Rows<T, 24, 40>, Rows<T, 11, 13>>(11, 13, 11, 13, 0, kSlot, fill, same_place);
}

template <class T, PadValue Pad>
void check_padding(T want) {
  using Padded =
      Tile<TileType::Vec, T, 6, 16, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, Pad>;
  std::vector<T> data(4 * 11, T{1});
  Image<Padded> loaded(1);
  Image<Padded> filled(1);
  CHECK_RUNS([&] {
    Padded tile(4, 11);
    TASSIGN(tile, 0);
    loaded.put(tile);
    TLOAD(tile, GlobalTensor<T>(data.data(), Shape<>(1, 1, 1, 4, 11), Stride<>(0, 0, 0, 11, 1)));
    loaded.get(tile);
    Rows<T, 6, 16> source(4, 11);
    TASSIGN(source, 0);
    Padded target(6, 16);
    TASSIGN(target, kSlot);
    TFILLPAD(target, source);
    filled.get(target);
  });
  for (int64_t r = 0; r < 6; ++r) {
    for (int64_t c = 0; c < 16; ++c) {
      const T expected = r < 4 && c < 11 ? T{1} : want;
      CHECK(same_bits(loaded.at(r, c), expected));
      CHECK(same_bits(filled.at(r, c), expected));
    }
  }
}

// Stores that add, of several threads at once: whole numbers, so that the sum is exact.
template <class To, class From>
void check_atomic_add(From addend) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 50;
  std::vector<To> to(8 * 40, static_cast<To>(3));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      const std::vector<From> from(20, addend);
      for (int i = 0; i < kRounds; ++i) {
        for (size_t row = 0; row < 8; ++row) {
          sim::run_add_atomically<To, From>(to.data() + row * 40, from.data(), nullptr, 20);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < to.size(); ++i) {
    const double added = i % 40 < 20 ? kThreads * kRounds * number(addend) : 0;
    CHECK(number(to[i]) == 3 + added);
  }
}

template <class T>
void store_adds(int64_t rows, int64_t cols) {
  std::vector<T> to(8 * 64);
  Random random(5);
  for (T& element : to) element = random.value<T>();
  const std::vector<T> before = to;
  Image<Rows<T, 8, 32>> image(9);
  CHECK_RUNS([&] {
    Rows<T, 8, 32> tile(rows, cols);
    TASSIGN(tile, 0);
    image.put(tile);
    const GlobalTensor<T, Shape<>, Stride<>> global(to.data(), Shape<>(1, 1, 1, rows, cols),
                                                    Stride<>(0, 0, 0, 64, 2));
    TSTORE(global, tile, AtomicType::AtomicAdd);
    TSTORE(global, tile, AtomicType::AtomicAdd);
  });
  for (int64_t i = 0; i < 8 * 64; ++i) {
    const int64_t r = i / 64;
    const int64_t c = i % 64 / 2;
    T want = before[static_cast<size_t>(i)];
    if (r < rows && c < cols && i % 2 == 0) {
      want = sim::sum_of(sim::sum_of(want, image.at(r, c)), image.at(r, c));
    }
    CHECK(same_bits(to[static_cast<size_t>(i)], want));
  }
}

void concatenation() {
  using A = Rows<float, 5, 8>;
  using B = Rows<float, 5, 24>;
  using D = Rows<float, 5, 32>;
  Image<A> a(1);
  Image<B> b(2);
  Image<D> d(3);
  for (const uint64_t at : {uint64_t{0}, 2 * kSlot}) {
    CHECK_RUNS([&] {
      A ta(4, 7);
      B tb(4, 20);
      D td(4, 27);
      TASSIGN(ta, 0);
      TASSIGN(tb, kSlot);
      TASSIGN(td, at);
      a.put(ta);
      b.put(tb);
      TCONCAT(td, ta, tb);
      d.get(td);
    });
    for (int64_t r = 0; r < 4; ++r) {
      for (int64_t c = 0; c < 27; ++c) {
        CHECK(d.at(r, c) == (c < 7 ? a.at(r, c) : b.at(r, c - 7)));
      }
    }
  }
}

// Windows of a tile that is partly valid, to and from places that overlap it or do not.
template <class T>
void check_windows() {
  using Whole = Rows<T, 9, 20>;
  using Part =
      Tile<TileType::Vec, T, 4, 6, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Max>;
  Image<Whole> whole(21);
  Image<Part> part(22);
  for (const uint64_t at : {uint64_t{64}, kSlot}) {
    CHECK_RUNS([&] {
      Whole source(5, 3);
      Part target(3, 5);
      TASSIGN(source, 0);
      TASSIGN(target, at);
      whole.put(source);
      TEXTRACT(target, source, 6, 14);
      part.get(target);
    });
    for (int64_t r = 0; r < 4; ++r) {
      for (int64_t c = 0; c < 6; ++c) {
        const bool inside = r < 3 && c < 5;
        CHECK(same_bits(part.at(r, c), inside ? whole.at(6 + r, 14 + c) : sim::highest<T>()));
      }
    }
  }
  Image<Whole> after(0);
  for (const uint64_t at : {uint64_t{0}, kSlot}) {
    CHECK_RUNS([&] {
      Whole base(9, 20);
      Whole target(9, 20);
      Part source(3, 5);
      TASSIGN(base, 0);
      TASSIGN(target, at);
      TASSIGN(source, 2 * kSlot);
      whole.put(base);
      part.put(source);
      TINSERT(target, base, source, 6, 15);
      after.get(target);
    });
    for (int64_t r = 0; r < 9; ++r) {
      for (int64_t c = 0; c < 20; ++c) {
        const bool inside = r >= 6 && c >= 15;
        CHECK(same_bits(after.at(r, c), inside ? part.at(r - 6, c - 15) : whole.at(r, c)));
      }
    }
  }
}

void windows_must_lie_inside() {
  Rows<float, 9, 20> whole(9, 20);
  Rows<float, 4, 6> part(3, 5);
  const auto extract = [&](int64_t row, int64_t col) {
    TASSIGN(whole, 0);
    TASSIGN(part, kSlot);
    TEXTRACT(part, whole, row, col);
  };
  CHECK_RUNS([&] { extract(6, 15); });
  CHECK_FAULTS(OnChipBounds, "TEXTRACT", "[3, 5] at [7, 15]", [&] { extract(7, 15); });
  CHECK_FAULTS(OnChipBounds, "TEXTRACT", "[3, 5] at [6, 16]", [&] { extract(6, 16); });
  CHECK_FAULTS(OnChipBounds, "TEXTRACT", "[3, 5] at [-1, 0]", [&] { extract(-1, 0); });
  CHECK_FAULTS(OnChipBounds, "TEXTRACT", "at [0, -1]", [&] { extract(0, -1); });
  CHECK_FAULTS(OnChipBounds, "TEXTRACT", "at [9223372036854775807, 0]",
               [&] { extract(INT64_MAX, 0); });
  CHECK_FAULTS(OnChipBounds, "TINSERT", "[3, 5] at [0, 16]", [&] {
    TASSIGN(whole, 0);
    TASSIGN(part, kSlot);
    TINSERT(whole, whole, part, 0, 16);
  });
  CHECK_FAULTS(OnChipBounds, "TINSERT", "the destination overlaps the source", [&] {
    TASSIGN(whole, 0);
    TASSIGN(part, 64);
    TINSERT(whole, whole, part, 0, 0);
  });
  // Nothing lies outside, wherever it is.
  CHECK_RUNS([&] {
    part.SetValidShape(0, 5);
    extract(100, 0);
  });
}

void reshape_without_address_aliases() {
  CHECK_RUNS([] {
    Columns<float, 16, 1> source(16, 1);
    TASSIGN(source, 128);
    Rows<float, 1, 16> target(1, 16);
    TRESHAPE(target, source);
    if (target.data() != source.data()) sim::fault_value("test", "no alias");
  });
}

}  // namespace

int main() {
  for_types([]<class T>() {
    for (const int64_t rows : {0, 1, 5, 8}) {
      for (const int64_t cols : {0, 1, 3, 31, 40}) {
        check_load_store<Rows<T, 8, 40>>(rows, cols, 40, 1);
        check_load_store<Rows<T, 8, 40>>(rows, cols, 57, 1);
        check_load_store<Rows<T, 8, 40>>(rows, cols, 1, 9);
        check_load_store<Columns<T, 8, 40>>(rows, cols, 1, 8);
        check_load_store<Columns<T, 8, 40>>(rows, cols, 120, 3);
      }
    }
    check_moves<T>();
    check_windows<T>();
    check_padding<T, PadValue::Null>(static_cast<T>(0));
    check_padding<T, PadValue::Zero>(static_cast<T>(0));
    check_padding<T, PadValue::Max>(sim::highest<T>());
    check_padding<T, PadValue::Min>(sim::lowest<T>());
  });
  fractals_are_read_and_written_in_place();
  parts_of_fractals_have_whole_columns();
  planes_become_rows();
  store_narrows();
  store_adds<float>(8, 32);
  store_adds<half>(3, 7);
  store_adds<bfloat16_t>(8, 1);
  store_adds<int32_t>(1, 32);
  store_adds<int16_t>(8, 31);
  store_adds<int8_t>(7, 32);
  check_atomic_add<float>(2.0f);
  check_atomic_add<half>(static_cast<half>(2.0f));
  check_atomic_add<half>(1.0f);
  check_atomic_add<bfloat16_t>(static_cast<bfloat16_t>(1.0f));
  check_atomic_add<int32_t>(int32_t{-7});
  check_atomic_add<int16_t>(int16_t{5});
  concatenation();
  windows_must_lie_inside();
  reshape_without_address_aliases();
  return result();
}
