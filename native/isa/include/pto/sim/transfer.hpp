// Instructions that move elements: global memory to tile, tile to global memory, tile to tile.
#ifndef PTO_SIM_TRANSFER_HPP_
#define PTO_SIM_TRANSFER_HPP_

#include "pto/sim/convert.hpp"
#include "pto/sim/global_tensor.hpp"

namespace pto {
namespace sim {

// A matrix of elements anywhere in memory.
template <class T>
struct Matrix {
  T* data;
  int64_t row_stride;
  int64_t col_stride;

  T* at(int64_t r, int64_t c) const noexcept { return data + r * row_stride + c * col_stride; }
};

template <class TileT>
inline Matrix<typename TileT::DType> matrix_of(const TileT& tile) noexcept {
  return {tile.data(), TileT::RowStride, TileT::ColStride};
}

template <class To, class From>
inline void copy_run(To* to, int64_t to_step, const From* from, int64_t from_step, int64_t count) {
  if constexpr (same_type<To, From>) {
    if (to_step == 1 && from_step == 1) {
      __builtin_memmove(to, from, static_cast<size_t>(count) * sizeof(To));
      return;
    }
  }
  if (to_step == 1 && from_step == 1) {
    PTO_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) {
      to[i] = convert_element<To, RoundMode::CAST_RINT>(from[i]);
    }
  } else {
    for (int64_t i = 0; i < count; ++i) {
      to[i * to_step] = convert_element<To, RoundMode::CAST_RINT>(from[i * from_step]);
    }
  }
}

template <class To, class From>
inline void copy_matrix(Matrix<To> to, Matrix<From> from, int64_t rows, int64_t cols) {
  const bool whole = to.col_stride == 1 && from.col_stride == 1 && to.row_stride == cols &&
                     from.row_stride == cols;
  if (whole) {
    copy_run(to.data, 1, from.data, 1, rows * cols);
  } else if ((to.row_stride == 1 && from.row_stride == 1) || cols < 4) {
    for (int64_t c = 0; c < cols; ++c) {
      copy_run(to.at(0, c), to.row_stride, from.at(0, c), from.row_stride, rows);
    }
  } else {
    for (int64_t r = 0; r < rows; ++r) {
      copy_run(to.at(r, 0), to.col_stride, from.at(r, 0), from.col_stride, cols);
    }
  }
}

// Calls f(matrix of global memory, first tile row, rows) for each of the tensor's planes.
template <class Global, class F>
inline void for_planes(const Global& global, F f) {
  using T = typename Global::DType;
  int64_t row = 0;
  for (int64_t i = 0; i < global.shape(0); ++i) {
    for (int64_t j = 0; j < global.shape(1); ++j) {
      for (int64_t k = 0; k < global.shape(2); ++k) {
        T* data = global.data() + i * global.stride(0) + j * global.stride(1) +
                  k * global.stride(2);
        f(Matrix<T>{data, global.stride(3), global.stride(4)}, row);
        row += global.shape(3);
      }
    }
  }
}

template <class T>
inline T pad_of(PadValue pad) noexcept {
  switch (pad) {
    case PadValue::Max:
      return highest<T>();
    case PadValue::Min:
      return lowest<T>();
    case PadValue::Null:
    case PadValue::Zero:
      break;
  }
  return static_cast<T>(0);
}

// Fills everything outside the first `rows` rows and `cols` columns with the tile's pad value.
template <class TileT>
inline void fill_outside(const TileT& tile, int64_t rows, int64_t cols) {
  if (rows == TileT::Rows && cols == TileT::Cols) return;
  const auto value = pad_of<typename TileT::DType>(TileT::Pad);
  for (int64_t r = 0; r < TileT::Rows; ++r) {
    for (int64_t c = r < rows ? cols : 0; c < TileT::Cols; ++c) *tile.at(r, c) = value;
  }
}

template <class TileT, class Global>
inline void require_same_window(const char* op, const TileT& tile, const Global& global) {
  require_bound(op, tile);
  if (tile.GetValidRow() != global.rows() || tile.GetValidCol() != global.cols()) {
    fault_mismatch(op, "the global window", global.rows(), global.cols(), tile.GetValidRow(),
                   tile.GetValidCol());
  }
}

// The source of a move whose destination may overlap it: itself, or a dense copy.
template <class Dst, class Src>
inline Matrix<typename Src::DType> stage_if_overlapping(const char* op, const Dst& dst,
                                                        const Src& src) {
  using T = typename Src::DType;
  const Matrix<T> here = matrix_of(src);
  if (!overlaps(dst, src)) return here;
  const Matrix<T> copy{static_cast<T*>(scratch(op, Src::Bytes)), src.GetValidCol(), 1};
  copy_matrix(copy, here, src.GetValidRow(), src.GetValidCol());
  return copy;
}

}  // namespace sim

// Global memory to the tile's valid region, which must be the window's shape; the rest of the tile
// gets its pad value (0 if it has none).
template <class TileT, class Global>
inline void TLOAD(TileT& tile, const Global& global) {
  static_assert(sim::same_type<typename TileT::DType, typename Global::DType>,
                "TLOAD does not convert");
  sim::require_same_window("TLOAD", tile, global);
  sim::fill_outside(tile, tile.GetValidRow(), tile.GetValidCol());
  const auto matrix = sim::matrix_of(tile);
  sim::for_planes(global, [&](auto plane, int64_t row) {
    sim::copy_matrix(decltype(matrix){matrix.at(row, 0), matrix.row_stride, matrix.col_stride},
                     plane, global.shape(3), global.shape(4));
  });
}

// The tile's valid region to global memory, converting the element type (to nearest even).
template <class Global, class TileT>
inline void TSTORE(const Global& global, const TileT& tile) {
  sim::require_same_window("TSTORE", tile, global);
  const auto matrix = sim::matrix_of(tile);
  sim::for_planes(global, [&](auto plane, int64_t row) {
    sim::copy_matrix(plane, decltype(matrix){matrix.at(row, 0), matrix.row_stride, matrix.col_stride},
                     global.shape(3), global.shape(4));
  });
}

// Copies between on-chip spaces, converting the element type (to nearest even). The tiles may
// overlap.
template <class Dst, class Src>
inline void TMOV(Dst& dst, const Src& src) {
  sim::require_bound("TMOV", dst);
  sim::require_valid("TMOV", "the source", src, dst.GetValidRow(), dst.GetValidCol());
  sim::copy_matrix(sim::matrix_of(dst), sim::stage_if_overlapping("TMOV", dst, src),
                   src.GetValidRow(), src.GetValidCol());
}

// dst = src's valid region, and dst's pad value everywhere else (0 if it has none; for Max and Min
// the largest and smallest finite value). The tiles may overlap.
template <class Dst, class Src>
inline void TFILLPAD(Dst& dst, const Src& src) {
  static_assert(sim::same_type<typename Dst::DType, typename Src::DType>,
                "TFILLPAD does not convert");
  sim::require_bound("TFILLPAD", dst);
  sim::require_bound("TFILLPAD", src);
  const int64_t rows = src.GetValidRow();
  const int64_t cols = src.GetValidCol();
  if (rows > Dst::Rows || cols > Dst::Cols) {
    sim::fault_mismatch("TFILLPAD", "the source", rows, cols, Dst::Rows, Dst::Cols);
  }
  sim::copy_matrix(sim::matrix_of(dst), sim::stage_if_overlapping("TFILLPAD", dst, src), rows, cols);
  sim::fill_outside(dst, rows, cols);
}

// The elements of src's valid region, in row order, become dst's valid region, in row order. A dst
// without an address takes src's place when the two have the same physical order. The tiles may
// overlap.
template <class Dst, class Src>
inline void TRESHAPE(Dst& dst, const Src& src) {
  using T = typename Src::DType;
  static_assert(sim::same_type<typename Dst::DType, T>, "TRESHAPE does not convert");
  sim::require_bound("TRESHAPE", src);
  const int64_t count = src.GetValidRow() * src.GetValidCol();
  if (count != dst.GetValidRow() * dst.GetValidCol()) {
    sim::fault_mismatch("TRESHAPE", "the source", src.GetValidRow(), src.GetValidCol(),
                        dst.GetValidRow(), dst.GetValidCol());
  }
  // Whether consecutive elements, in row order, lie side by side.
  const auto dense = [](const auto& tile, bool by_columns, int64_t pitch) {
    return tile.GetValidRow() <= 1 ? (!by_columns || tile.GetValidCol() <= 1)
           : by_columns            ? tile.GetValidCol() <= 1
                                   : tile.GetValidCol() == pitch;
  };
  const bool dense_src = dense(src, Src::ByColumns, Src::Cols);
  const bool dense_dst = dense(dst, Dst::ByColumns, Dst::Cols);
  if (dst.data() == nullptr) {
    if (!dense_src || !dense_dst) sim::fault_unassigned("TRESHAPE");
    dst.bind(src.data());
    return;
  }
  if (dense_src && dense_dst) {
    sim::copy_run(dst.data(), 1, static_cast<const T*>(src.data()), 1, count);
    return;
  }
  const auto from = sim::stage_if_overlapping("TRESHAPE", dst, src);
  int64_t r = 0;
  int64_t c = 0;
  for (int64_t row = 0; row < dst.GetValidRow(); ++row) {
    for (int64_t col = 0; col < dst.GetValidCol(); ++col) {
      *dst.at(row, col) = *from.at(r, c);
      if (++c == src.GetValidCol()) {
        c = 0;
        ++r;
      }
    }
  }
}

// dst = a's columns, then b's. `a` may overlap dst, `b` may not.
template <class Dst, class A, class B>
inline void TCONCAT(Dst& dst, const A& a, const B& b) {
  using T = typename Dst::DType;
  static_assert(sim::same_type<T, typename A::DType> && sim::same_type<T, typename B::DType>,
                "operands of TCONCAT have one element type");
  sim::require_bound("TCONCAT", dst);
  const int64_t rows = dst.GetValidRow();
  const int64_t left = a.GetValidCol();
  sim::require_valid("TCONCAT", "the first source", a, rows, left);
  sim::require_valid("TCONCAT", "the second source", b, rows, dst.GetValidCol() - left);
  if (sim::overlaps(dst, b)) {
    sim::fault(sim::FaultCode::OnChipBounds, "TCONCAT",
               sim::Message() << "the destination overlaps the second source");
  }
  const sim::Matrix<T> to = sim::matrix_of(dst);
  sim::copy_matrix(to, sim::stage_if_overlapping("TCONCAT", dst, a), rows, left);
  sim::copy_matrix(sim::Matrix<T>{to.at(0, left), to.row_stride, to.col_stride}, sim::matrix_of(b),
                   rows, b.GetValidCol());
}

// dst(c, r) = src(r, c). The tiles may overlap.
template <class Dst, class Src, class Tmp>
inline void TTRANS(Dst& dst, const Src& src, const Tmp&) {
  using T = typename Dst::DType;
  static_assert(sim::same_type<T, typename Src::DType>, "TTRANS does not convert");
  sim::require_bound("TTRANS", src);
  sim::require_valid("TTRANS", "the destination", dst, src.GetValidCol(), src.GetValidRow());
  const auto from = sim::stage_if_overlapping("TTRANS", dst, src);
  constexpr int64_t kBlock = 16;  // keeps both sides' cache lines alive
  for (int64_t r0 = 0; r0 < src.GetValidRow(); r0 += kBlock) {
    const int64_t r1 = r0 + kBlock < src.GetValidRow() ? r0 + kBlock : src.GetValidRow();
    for (int64_t c0 = 0; c0 < src.GetValidCol(); c0 += kBlock) {
      const int64_t c1 = c0 + kBlock < src.GetValidCol() ? c0 + kBlock : src.GetValidCol();
      for (int64_t c = c0; c < c1; ++c) {
        for (int64_t r = r0; r < r1; ++r) *dst.at(c, r) = *from.at(r, c);
      }
    }
  }
}

}  // namespace pto

#endif  // PTO_SIM_TRANSFER_HPP_
