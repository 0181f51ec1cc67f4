// Instructions that move elements from tile to tile.
#ifndef PTO_SIM_MOVES_HPP_
#define PTO_SIM_MOVES_HPP_

#include "pto/sim/convert.hpp"
#include "pto/sim/padding.hpp"

namespace pto {
namespace sim {

// Copies the valid region to the core's staging memory, by rows without gaps.
PTO_SHARED inline TileView stage(const char* op, Run run, const TileView& src, int64_t to_element,
                                 int64_t from_element, int64_t offset) {
  TileView copy = src;
  copy.row_stride = src.valid_cols;
  copy.col_stride = 1;
  const int64_t count = src.valid_rows * src.valid_cols;
  copy.data = static_cast<unsigned char*>(scratch(op, offset + count * to_element)) + offset;
  walk(run, operand_of(copy, to_element), operand_of(src, from_element), constant(nullptr),
       src.valid_rows, src.valid_cols);
  return copy;
}

// The source of a move whose destination may overlap it.
PTO_SHARED inline TileView apart(const char* op, Run copy, const TileView& dst, int64_t dst_element,
                                 const TileView& src, int64_t src_element) {
  require_bound(op, dst);
  require_bound(op, src);
  if (!overlaps(dst, dst_element, src, src_element)) return src;
  return stage(op, copy, src, src_element, src_element, 0);
}

// Whether the valid region's elements, in row order, lie side by side.
inline bool is_dense(const TileView& tile) noexcept {
  const bool rows_meet = tile.valid_rows <= 1 || tile.row_stride == tile.valid_cols;
  const bool cols_meet = tile.valid_cols <= 1 || tile.col_stride == 1;
  return rows_meet && cols_meet;
}

// The elements of src's valid region become dst's, in row order.
PTO_SHARED inline void reshape(Run copy, const TileView& dst, const TileView& src,
                               int64_t element) {
  const int64_t count = src.valid_rows * src.valid_cols;
  if (is_dense(src) && is_dense(dst)) {
    if (dst.data != src.data) copy(dst.data, src.data, nullptr, count);
    return;
  }
  const Operand from = operand_of(apart("TRESHAPE", copy, dst, element, src, element), element);
  const Operand to = operand_of(dst, element);
  int64_t r = 0;
  int64_t c = 0;
  for (int64_t row = 0; row < dst.valid_rows; ++row) {
    for (int64_t col = 0; col < dst.valid_cols; ++col) {
      copy(to.data + row * to.outer + col * to.inner, from.data + r * from.outer + c * from.inner,
           nullptr, 1);
      if (++c == src.valid_cols) {
        c = 0;
        ++r;
      }
    }
  }
}

PTO_SHARED inline void concat(Run copy, const TileView& dst, const TileView& a, const TileView& b,
                              int64_t element) {
  const int64_t left = a.valid_cols;
  require_bound("TCONCAT", dst);
  require("TCONCAT", "the first source", a, dst.valid_rows, left);
  require("TCONCAT", "the second source", b, dst.valid_rows, dst.valid_cols - left);
  if (overlaps(dst, element, b, element)) {
    fault(FaultCode::OnChipBounds, "TCONCAT", "the destination overlaps the second source");
  }
  Operand to = operand_of(dst, element);
  walk(copy, to, operand_of(apart("TCONCAT", copy, dst, element, a, element), element),
       constant(nullptr), dst.valid_rows, left);
  to.data += left * to.inner;
  walk(copy, to, operand_of(b, element), constant(nullptr), dst.valid_rows, b.valid_cols);
}

// The part of a tile's extents at an offset, `rows` by `cols` of it valid.
PTO_SHARED inline TileView window_of(const char* op, const TileView& tile, int64_t element,
                                     int64_t row, int64_t col, int64_t rows, int64_t cols) {
  require_bound(op, tile);
  TileView window = tile;
  window.valid_rows = rows;
  window.valid_cols = cols;
  if (rows == 0 || cols == 0) return window;
  if (row < 0 || row > tile.rows - rows || col < 0 || col > tile.cols - cols) {
    fault(FaultCode::OnChipBounds, op,
          Message() << "a region of [" << rows << ", " << cols << "] at [" << row << ", " << col
                    << "] does not lie inside a tile of [" << tile.rows << ", " << tile.cols
                    << "]");
  }
  window.data = static_cast<unsigned char*>(tile.data) +
                (row * tile.row_stride + col * tile.col_stride) * element;
  return window;
}

template <class T>
void transpose(const TileView& dst, const TileView& src) {
  constexpr int64_t kBlock = 16;  // keeps both sides' cache lines alive
  auto* to = static_cast<T*>(dst.data);
  const auto* from = static_cast<const T*>(src.data);
  for (int64_t r0 = 0; r0 < src.valid_rows; r0 += kBlock) {
    const int64_t r1 = r0 + kBlock < src.valid_rows ? r0 + kBlock : src.valid_rows;
    for (int64_t c = 0; c < src.valid_cols; ++c) {
      for (int64_t r = r0; r < r1; ++r) {
        to[c * dst.row_stride + r * dst.col_stride] = from[r * src.row_stride + c * src.col_stride];
      }
    }
  }
}

}  // namespace sim

// Copies between on-chip spaces, converting the element type (to nearest even). The tiles may
// overlap.
template <class Dst, class Src>
inline void TMOV(Dst& dst, const Src& src) {
  using To = typename Dst::DType;
  using From = typename Src::DType;
  const sim::TileView from =
      sim::apart("TMOV", sim::run_copy<From>, dst.view(), sizeof(To), src.view(), sizeof(From));
  sim::walk_one("TMOV", sim::move_run<To, From>(), dst.view(), from, nullptr, sizeof(To),
                sizeof(From));
}

// dst = the region of src at (row, col) that has the shape of dst's valid region, converting the
// element type (to nearest even), and dst's pad value, if it has one, around it. The region may
// hold elements that are not valid in src. The tiles may overlap.
template <class Dst, class Src>
inline void TEXTRACT(Dst& dst, const Src& src, int64_t row, int64_t col) {
  using To = typename Dst::DType;
  using From = typename Src::DType;
  const sim::TileView& to = dst.view();
  const sim::TileView from = sim::apart(
      "TEXTRACT", sim::run_copy<From>, to, sizeof(To),
      sim::window_of("TEXTRACT", src.view(), sizeof(From), row, col, to.valid_rows, to.valid_cols),
      sizeof(From));
  sim::walk_one("TEXTRACT", sim::move_run<To, From>(), to, from, nullptr, sizeof(To), sizeof(From));
  if constexpr (Dst::Pad != PadValue::Null) {
    const To pad = sim::pad_of<To>(Dst::Pad);
    sim::fill_outside(sim::run_fill<To>, to, sizeof(To), to.valid_rows, to.valid_cols, &pad);
  }
}

// dst = base, with src's valid region at (row, col), converting the element type (to nearest
// even). dst and base may be the same tile; src may not overlap dst.
template <class Dst, class Base, class Src>
inline void TINSERT(Dst& dst, const Base& base, const Src& src, int64_t row, int64_t col) {
  using To = typename Dst::DType;
  using From = typename Src::DType;
  sim::require_one_type<Dst, Base>();
  if (dst.data() != base.data()) TMOV(dst, base);
  const sim::TileView to = sim::window_of("TINSERT", dst.view(), sizeof(To), row, col,
                                          src.GetValidRow(), src.GetValidCol());
  if (sim::overlaps(dst.view(), sizeof(To), src.view(), sizeof(From))) {
    sim::fault(sim::FaultCode::OnChipBounds, "TINSERT", "the destination overlaps the source");
  }
  sim::walk_one("TINSERT", sim::move_run<To, From>(), to, src.view(), nullptr, sizeof(To),
                sizeof(From));
}

// dst = src's valid region, and dst's pad value everywhere else (0 if it has none; for Max and Min
// the largest and smallest finite value). The tiles may overlap.
template <class Dst, class Src>
inline void TFILLPAD(Dst& dst, const Src& src) {
  sim::require_one_type<Dst, Src>();
  using T = typename Dst::DType;
  const int64_t rows = src.GetValidRow();
  const int64_t cols = src.GetValidCol();
  if (rows > Dst::Rows || cols > Dst::Cols) {
    sim::fault_mismatch("TFILLPAD", "the source", rows, cols, Dst::Rows, Dst::Cols);
  }
  const sim::TileView from =
      sim::apart("TFILLPAD", sim::run_copy<T>, dst.view(), sizeof(T), src.view(), sizeof(T));
  sim::walk(sim::run_copy<T>, sim::operand_of(dst.view(), sizeof(T)),
            sim::operand_of(from, sizeof(T)), sim::constant(nullptr), rows, cols);
  const T pad = sim::pad_of<T>(Dst::Pad);
  sim::fill_outside(sim::run_fill<T>, dst.view(), sizeof(T), rows, cols, &pad);
}

// The elements of src's valid region, in row order, become dst's valid region, in row order. A dst
// without an address takes src's place, if row order is the physical order of both. The tiles may
// overlap.
template <class Dst, class Src>
inline void TRESHAPE(Dst& dst, const Src& src) {
  sim::require_one_type<Dst, Src>();
  using T = typename Src::DType;
  sim::require_bound("TRESHAPE", src.view());
  if (src.GetValidRow() * src.GetValidCol() != dst.GetValidRow() * dst.GetValidCol()) {
    sim::fault_mismatch("TRESHAPE", "the source", src.GetValidRow(), src.GetValidCol(),
                        dst.GetValidRow(), dst.GetValidCol());
  }
  if (dst.data() == nullptr && sim::is_dense(src.view()) && sim::is_dense(dst.view())) {
    dst.bind(src.data());
  } else {
    sim::require_bound("TRESHAPE", dst.view());
    sim::reshape(sim::run_copy<T>, dst.view(), src.view(), sizeof(T));
  }
}

// dst = a's columns, then b's. `a` may overlap dst, `b` may not.
template <class Dst, class A, class B>
inline void TCONCAT(Dst& dst, const A& a, const B& b) {
  sim::require_one_type<Dst, A, B>();
  using T = typename Dst::DType;
  sim::concat(sim::run_copy<T>, dst.view(), a.view(), b.view(), sizeof(T));
}

// dst(c, r) = src(r, c). The tiles may overlap.
template <class Dst, class Src>
inline void TTRANS(Dst& dst, const Src& src) {
  sim::require_one_type<Dst, Src>();
  using T = typename Dst::DType;
  sim::require("TTRANS", "the destination", dst.view(), src.GetValidCol(), src.GetValidRow());
  sim::transpose<T>(dst.view(), sim::apart("TTRANS", sim::run_copy<T>, dst.view(), sizeof(T),
                                           src.view(), sizeof(T)));
}
template <class Dst, class Src, class Tmp>
inline void TTRANS(Dst& dst, const Src& src, const Tmp&) {
  TTRANS(dst, src);
}

}  // namespace pto

#endif  // PTO_SIM_MOVES_HPP_
