// Matrix multiplication: fp32 accumulation for floats, int32 for integers.
#ifndef PTO_SIM_MATMUL_HPP_
#define PTO_SIM_MATMUL_HPP_

#include "pto/sim/moves.hpp"

namespace pto {
namespace sim {

// One column block is this many accumulator elements wide: two AVX registers per row.
inline constexpr int kBlockCols = 16;
inline constexpr int kBlockRows = 4;

// Eight elements, and the same where they lie in memory. Integers are unsigned: sums wrap.
template <class C>
struct Vector8;
template <>
struct Vector8<float> {
  typedef float Value __attribute__((vector_size(32)));
  typedef float Memory __attribute__((vector_size(32), aligned(4), may_alias));
};
template <>
struct Vector8<int32_t> {
  typedef uint32_t Value __attribute__((vector_size(32)));
  typedef uint32_t Memory __attribute__((vector_size(32), aligned(4), may_alias));
};

// sum += a * b, fused where the CPU level has it (the one place where results depend on the level).
template <class V>
__attribute__((always_inline)) inline void multiply_add(V& sum, const V& a, const V& b) noexcept {
#if defined(__FMA__) && defined(__clang__)
  if constexpr (same_type<V, Vector8<float>::Value>) {
    sum = __builtin_elementwise_fma(a, b, sum);
    return;
  }
#elif defined(__FMA__)
  if constexpr (same_type<V, Vector8<float>::Value>) {
    sum = __builtin_ia32_vfmaddps256(a, b, sum);
    return;
  }
#endif
  sum += a * b;
}

// C[R rows, 16] (+)= A[R, depth] * B[depth, 16], all by rows.
template <int R, class C>
inline void matmul_block(C* c, int64_t c_pitch, const C* a, int64_t a_pitch, const C* b,
                         int64_t b_pitch, int64_t depth, bool accumulate) {
  using V = typename Vector8<C>::Value;
  using InMemory = typename Vector8<C>::Memory;
  V acc[R][2] = {};
  if (accumulate) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      acc[r][0] = *reinterpret_cast<const InMemory*>(c + r * c_pitch);
      acc[r][1] = *reinterpret_cast<const InMemory*>(c + r * c_pitch + 8);
    }
  }
  for (int64_t k = 0; k < depth; ++k) {
    const V right0 = *reinterpret_cast<const InMemory*>(b + k * b_pitch);
    const V right1 = *reinterpret_cast<const InMemory*>(b + k * b_pitch + 8);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      // x - 0 is x in every lane, -0 and NaN included: a broadcast.
      const V left = static_cast<decltype(V{}[0] - V{}[0])>(a[r * a_pitch + k]) - V{};
      multiply_add(acc[r][0], left, right0);
      multiply_add(acc[r][1], left, right1);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    *reinterpret_cast<InMemory*>(c + r * c_pitch) = acc[r][0];
    *reinterpret_cast<InMemory*>(c + r * c_pitch + 8) = acc[r][1];
  }
}

template <class C>
inline void matmul_rows(int64_t rows, C* c, int64_t c_pitch, const C* a, int64_t a_pitch,
                        const C* b, int64_t b_pitch, int64_t depth, bool accumulate) {
  int64_t r = 0;
  for (; r + kBlockRows <= rows; r += kBlockRows) {
    matmul_block<kBlockRows>(c + r * c_pitch, c_pitch, a + r * a_pitch, a_pitch, b, b_pitch, depth,
                             accumulate);
  }
  for (; r < rows; ++r) {
    matmul_block<1>(c + r * c_pitch, c_pitch, a + r * a_pitch, a_pitch, b, b_pitch, depth,
                    accumulate);
  }
}

// The operand's valid region as accumulator elements by rows: where it is, or staged by `widen`.
inline TileView widened(const char* op, Run widen, const TileView& tile, int64_t element,
                        int64_t acc_element, int64_t offset) {
  if (widen == nullptr && tile.col_stride == 1) return tile;
  return stage(op, widen, tile, acc_element, element, offset);
}

// widen_a and widen_b are null where there is nothing to widen.
template <class C>
PTO_SHARED void multiply(const char* op, const TileView& c, const TileView& a, Run widen_a,
                         int64_t a_element, const TileView& b, Run widen_b, int64_t b_element,
                         bool accumulate) {
  constexpr int64_t kSize = sizeof(C);
  require_bound(op, a);
  const int64_t rows = a.valid_rows;
  const int64_t depth = a.valid_cols;
  const int64_t cols = b.valid_cols;
  require(op, "the right operand", b, depth, cols);
  require(op, "the accumulator", c, rows, cols);

  const TileView left = widened(op, widen_a, a, a_element, kSize, 0);
  const int64_t b_offset = rows * depth * kSize;
  const TileView right = widened(op, widen_b, b, b_element, kSize, b_offset);
  const auto* left_data = static_cast<const C*>(left.data);
  const auto* right_data = static_cast<const C*>(right.data);
  auto* out = static_cast<C*>(c.data);
  const int64_t whole = cols / kBlockCols * kBlockCols;
  for (int64_t col = 0; col < whole; col += kBlockCols) {
    matmul_rows(rows, out + col, c.row_stride, left_data, left.row_stride, right_data + col,
                right.row_stride, depth, accumulate);
  }
  if (whole == cols) return;

  // The last, narrow block of columns: staged, and filled up with zeros.
  const int64_t width = cols - whole;
  const int64_t narrow_offset = b_offset + depth * cols * kSize;
  const int64_t narrow_bytes = (depth + rows) * kBlockCols * kSize;
  auto* narrow_b = reinterpret_cast<C*>(
      static_cast<unsigned char*>(scratch(op, narrow_offset + narrow_bytes)) + narrow_offset);
  C* narrow_c = narrow_b + depth * kBlockCols;
  __builtin_memset(narrow_b, 0, static_cast<size_t>(narrow_bytes));
  const auto block = [](const C* data, int64_t pitch) {
    return Operand{reinterpret_cast<unsigned char*>(const_cast<C*>(data)), pitch * kSize, kSize,
                   kSize};
  };
  walk(run_copy<C>, block(narrow_b, kBlockCols), block(right_data + whole, right.row_stride),
       constant(nullptr), depth, width);
  const Operand target = block(out + whole, c.row_stride);
  const Operand narrow = block(narrow_c, kBlockCols);
  if (accumulate) walk(run_copy<C>, narrow, target, constant(nullptr), rows, width);
  matmul_rows(rows, narrow_c, kBlockCols, left_data, left.row_stride, narrow_b, kBlockCols, depth,
              accumulate);
  walk(run_copy<C>, target, narrow, constant(nullptr), rows, width);
}

template <class C, class T>
constexpr Run widen_run() noexcept {
  if constexpr (same_type<C, T>) {
    return nullptr;
  } else {
    return move_run<C, T>();
  }
}

template <class Acc, class A, class B>
inline void matmul(const char* op, const Acc& c, const A& a, const B& b, bool accumulate) {
  using C = typename Acc::DType;
  using TA = typename A::DType;
  using TB = typename B::DType;
  static_assert(same_type<C, float> ? is_float<TA> && is_float<TB>
                                    : same_type<C, int32_t> && !is_float<TA> && !is_float<TB>,
                "matmul accumulates floats in fp32 and integers in int32");
  static_assert(
      !Acc::ByColumns && !(same_type<C, TA> && A::ByColumns) && !(same_type<C, TB> && B::ByColumns),
      "matmul operands are boxed tiles");
  multiply<C>(op, c.view(), a.view(), widen_run<C, TA>(), sizeof(TA), b.view(), widen_run<C, TB>(),
              sizeof(TB), accumulate);
}

}  // namespace sim

// c = a * b
template <class Acc, class A, class B>
inline void TMATMUL(Acc& c, const A& a, const B& b) {
  sim::matmul("TMATMUL", c, a, b, false);
}

// c = c_in + a * b; c and c_in may be the same tile.
template <class Acc, class AccIn, class A, class B>
inline void TMATMUL_ACC(Acc& c, const AccIn& c_in, const A& a, const B& b) {
  sim::require_one_type<Acc, AccIn>();
  sim::require("TMATMUL_ACC", "the incoming accumulator", c_in.view(), a.GetValidRow(),
               b.GetValidCol());
  if (c.data() != c_in.data() || Acc::RowStride != AccIn::RowStride) TMOV(c, c_in);
  sim::matmul("TMATMUL_ACC", c, a, b, true);
}

}  // namespace pto

#endif  // PTO_SIM_MATMUL_HPP_
