// Matrix products of every type over shapes that leave no block whole.
#include "on_core.h"

using namespace pto;
using namespace pto::test;

namespace {

template <class C, class A, class B, int M, int K, int N>
void check_product(int64_t m, int64_t k, int64_t n) {
  using Left = Tile<TileType::Left, A, M, K, BLayout::RowMajor, -1, -1, SLayout::RowMajor>;
  using Right = Tile<TileType::Right, B, K, N, BLayout::RowMajor, -1, -1, SLayout::ColMajor>;
  using Acc = Tile<TileType::Acc, C, M, N, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 1024>;
  Image<Left> a(1);
  Image<Right> b(2);
  Image<Acc> start(3);
  if constexpr (!sim::is_float<C>) {
    for (int64_t r = 0; r < M; ++r) {
      for (int64_t c = 0; c < N; ++c) start.at(r, c) &= 0xffff;
    }
  }
  Image<Acc> product(4);
  Image<Acc> outside = product;
  Image<Acc> sum(5);
  Image<Acc> moved(6);
  CHECK_RUNS([&] {
    Left left(m, k);
    Right right(k, n);
    Acc acc(m, n);
    Acc other(m, n);
    TASSIGN(left, 0);
    TASSIGN(right, 0);
    TASSIGN(acc, 0);
    TASSIGN(other, Acc::Bytes);
    a.put(left);
    b.put(right);
    product.put(acc);
    TMATMUL(acc, left, right);
    product.get(acc);
    start.put(acc);
    TMATMUL_ACC(other, acc, left, right);
    moved.get(other);
    TMATMUL_ACC(acc, acc, left, right);
    sum.get(acc);
  });
  for (int64_t i = 0; i < M; ++i) {
    for (int64_t j = 0; j < N; ++j) {
      if (i >= m || j >= n) {
        CHECK(same_bits(product.at(i, j), outside.at(i, j)));
        continue;
      }
      double want = 0;
      double size = 0;
      for (int64_t l = 0; l < k; ++l) {
        want += number(a.at(i, l)) * number(b.at(l, j));
        size += std::fabs(number(a.at(i, l)) * number(b.at(l, j)));
      }
      const double bound = sim::is_float<C> ? 1e-6 * (size + 10) : 0;
      CHECK(std::fabs(number(product.at(i, j)) - want) <= bound);
      CHECK(std::fabs(number(sum.at(i, j)) - (want + number(start.at(i, j)))) <= bound);
      CHECK(same_bits(sum.at(i, j), moved.at(i, j)));
    }
  }
}

template <class C, class A, class B>
void check_shapes() {
  check_product<C, A, B, 16, 16, 16>(16, 16, 16);
  check_product<C, A, B, 16, 32, 48>(16, 32, 48);
  check_product<C, A, B, 16, 32, 48>(1, 1, 1);
  check_product<C, A, B, 16, 32, 48>(7, 19, 33);
  check_product<C, A, B, 48, 64, 32>(45, 61, 31);
  check_product<C, A, B, 48, 64, 32>(5, 0, 31);
  check_product<C, A, B, 64, 64, 64>(64, 64, 64);
  check_product<C, A, B, 16, 16, 16>(0, 16, 16);
}

void infinity_and_nan_stay_in_their_rows() {
  using Left = Tile<TileType::Left, float, 16, 16, BLayout::RowMajor, -1, -1, SLayout::RowMajor>;
  using Right = Tile<TileType::Right, float, 16, 16, BLayout::RowMajor, -1, -1, SLayout::ColMajor>;
  using Acc =
      Tile<TileType::Acc, float, 16, 16, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 1024>;
  Image<Acc> got(0);
  CHECK_RUNS([&] {
    Left left(3, 5);
    Right right(5, 4);
    Acc acc(3, 4);
    TASSIGN(left, 0);
    TASSIGN(right, 0);
    TASSIGN(acc, 0);
    TEXPANDS(left, 1.0f);
    TEXPANDS(right, 2.0f);
    left.SetValue(1, 2, NAN);
    TMATMUL(acc, left, right);
    got.get(acc);
  });
  for (int64_t c = 0; c < 4; ++c) {
    CHECK(got.at(0, c) == 10.0f);
    CHECK(std::isnan(got.at(1, c)));
    CHECK(got.at(2, c) == 10.0f);
  }
}

// 2048 + 1 is lost in fp16 and bf16; an fp32 accumulator keeps it.
template <class T>
void accumulates_in_fp32() {
  using Left = Tile<TileType::Left, T, 16, 16, BLayout::RowMajor, -1, -1, SLayout::RowMajor>;
  using Right = Tile<TileType::Right, T, 16, 16, BLayout::RowMajor, -1, -1, SLayout::ColMajor>;
  using Acc =
      Tile<TileType::Acc, float, 16, 16, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 1024>;
  Image<Acc> got(0);
  CHECK_RUNS([&] {
    Left left(1, 16);
    Right right(16, 1);
    Acc acc(1, 1);
    TASSIGN(left, 0);
    TASSIGN(right, 0);
    TASSIGN(acc, 0);
    TEXPANDS(left, 1.0f);
    TEXPANDS(right, 1.0f);
    left.SetValue(0, 0, static_cast<T>(2048.0f));
    TMATMUL(acc, left, right);
    got.get(acc);
  });
  CHECK(got.at(0, 0) == 2063.0f);
}

}  // namespace

int main() {
  check_shapes<float, float, float>();
  check_shapes<float, half, half>();
  check_shapes<float, bfloat16_t, bfloat16_t>();
  check_shapes<float, half, float>();
  check_shapes<int32_t, int8_t, int8_t>();
  check_shapes<int32_t, uint8_t, int8_t>();
  infinity_and_nan_stay_in_their_rows();
  accumulates_in_fp32<half>();
  accumulates_in_fp32<bfloat16_t>();
  return result();
}
