// Matrix multiplication: fp32 accumulation for floats, int32 for integers.
#ifndef PTO_SIM_MATMUL_HPP_
#define PTO_SIM_MATMUL_HPP_

#include "pto/sim/transfer.hpp"

namespace pto {
namespace sim {

// One column block is this many accumulator elements wide: two AVX registers per row.
inline constexpr int kBlockCols = 16;
inline constexpr int kBlockRows = 4;

template <class C>
struct VectorOf;
template <>
struct VectorOf<float> {
  typedef float type __attribute__((vector_size(32)));
};
template <>
struct VectorOf<int32_t> {
  // Unsigned, so that accumulation wraps.
  typedef uint32_t type __attribute__((vector_size(32)));
};

// a * b + c, fused where the CPU level has it (the one place where results depend on the level).
template <class V>
__attribute__((always_inline)) inline V multiply_add(V a, V b, V c) noexcept {
#if defined(__FMA__) && !defined(__clang__)
  if constexpr (same_type<V, VectorOf<float>::type>) return __builtin_ia32_vfmaddps256(a, b, c);
#elif defined(__FMA__)
  if constexpr (same_type<V, VectorOf<float>::type>) return __builtin_elementwise_fma(a, b, c);
#endif
  return a * b + c;
}

// C[R rows, 16] (+)= A[R, depth] * B[depth, 16], all by rows.
template <int R, class C>
inline void matmul_block(C* c, int64_t c_pitch, const C* a, int64_t a_pitch, const C* b,
                         int64_t b_pitch, int64_t depth, bool accumulate) {
  using V = typename VectorOf<C>::type;
  V acc[R][2];
  for (int r = 0; r < R; ++r) {
    if (accumulate) {
      __builtin_memcpy(&acc[r], c + r * c_pitch, sizeof acc[r]);
    } else {
      acc[r][0] = acc[r][1] = V{};
    }
  }
  for (int64_t k = 0; k < depth; ++k) {
    V right[2];
    __builtin_memcpy(&right, b + k * b_pitch, sizeof right);
    for (int r = 0; r < R; ++r) {
      const auto left = a[r * a_pitch + k];
      const V spread = V{} + static_cast<decltype(V{}[0] + V{}[0])>(left);
      acc[r][0] = multiply_add(spread, right[0], acc[r][0]);
      acc[r][1] = multiply_add(spread, right[1], acc[r][1]);
    }
  }
  for (int r = 0; r < R; ++r) __builtin_memcpy(c + r * c_pitch, &acc[r], sizeof acc[r]);
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

// The operand's valid region as accumulator elements by rows: where it is, or staged at `room`.
template <class C, class TileT>
inline Matrix<C> operand(const TileT& tile, C* room) {
  if constexpr (same_type<typename TileT::DType, C> && !TileT::ByColumns) {
    return matrix_of(tile);
  } else {
    const Matrix<C> staged{room, tile.GetValidCol(), 1};
    copy_matrix(staged, matrix_of(tile), tile.GetValidRow(), tile.GetValidCol());
    return staged;
  }
}

template <class Acc, class A, class B>
inline void matmul(const char* op, const Acc& c, const A& a, const B& b, bool accumulate) {
  using C = typename Acc::DType;
  static_assert(same_type<C, float> ? is_float<typename A::DType> && is_float<typename B::DType>
                                    : same_type<C, int32_t> && !is_float<typename A::DType> &&
                                          !is_float<typename B::DType>,
                "matmul accumulates floats in fp32 and integers in int32");
  static_assert(!Acc::ByColumns, "an accumulator is not stored by columns");
  require_bound(op, a);
  require_bound(op, c);
  const int64_t rows = a.GetValidRow();
  const int64_t depth = a.GetValidCol();
  const int64_t cols = b.GetValidCol();
  require_valid(op, "the right operand", b, depth, cols);
  require_valid(op, "the accumulator", c, rows, cols);

  // Staged: both operands where they need it, and the last, narrow column block of B and C.
  C* room = static_cast<C*>(
      scratch(op, (A::Rows * A::Cols + B::Rows * B::Cols + (B::Rows + Acc::Rows) * kBlockCols) *
                      sizeof(C)));
  const Matrix<C> left = operand<C>(a, room);
  const Matrix<C> right = operand<C>(b, room + A::Rows * A::Cols);
  C* out = c.data();
  int64_t col = 0;
  for (; col + kBlockCols <= cols; col += kBlockCols) {
    matmul_rows(rows, out + col, Acc::RowStride, left.data, left.row_stride, right.data + col,
                right.row_stride, depth, accumulate);
  }
  if (col < cols) {
    const int64_t width = cols - col;
    C* narrow_b = room + A::Rows * A::Cols + B::Rows * B::Cols;
    C* narrow_c = narrow_b + B::Rows * kBlockCols;
    __builtin_memset(narrow_b, 0, static_cast<size_t>(depth * kBlockCols) * sizeof(C));
    __builtin_memset(narrow_c, 0, static_cast<size_t>(rows * kBlockCols) * sizeof(C));
    copy_matrix(Matrix<C>{narrow_b, kBlockCols, 1},
                Matrix<C>{right.data + col, right.row_stride, 1}, depth, width);
    const Matrix<C> narrow{narrow_c, kBlockCols, 1};
    const Matrix<C> target{out + col, Acc::RowStride, 1};
    if (accumulate) copy_matrix(narrow, target, rows, width);
    matmul_rows(rows, narrow_c, kBlockCols, left.data, left.row_stride, narrow_b, kBlockCols, depth,
                accumulate);
    copy_matrix(target, narrow, rows, width);
  }
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
  static_assert(sim::same_type<typename Acc::DType, typename AccIn::DType>,
                "both accumulators have one element type");
  sim::require_valid("TMATMUL_ACC", "the incoming accumulator", c_in, a.GetValidRow(),
                     b.GetValidCol());
  if (c.data() != c_in.data() || Acc::RowStride != AccIn::RowStride) {
    TMOV(c, c_in);
  }
  sim::matmul("TMATMUL_ACC", c, a, b, true);
}

}  // namespace pto

#endif  // PTO_SIM_MATMUL_HPP_
