// Instructions that combine a tile with one value per row or per column.
#ifndef PTO_SIM_EXPAND_HPP_
#define PTO_SIM_EXPAND_HPP_

#include "pto/sim/arithmetic.hpp"
#include "pto/sim/loops.hpp"

namespace pto {
namespace sim {

// dst(r, c) = Op(full(r, c), per_row(r, 0))
template <template <class> class Op, class Dst, class Full, class PerRow>
__attribute__((always_inline)) inline void expand_rows(const char* op, const Dst& dst,
                                                       const Full& full, const PerRow& per_row) {
  using T = typename Dst::DType;
  static_assert(same_type<T, typename Full::DType> && same_type<T, typename PerRow::DType>,
                "operands of an expanding instruction have one element type");
  require_bound(op, dst);
  const int64_t rows = dst.GetValidRow();
  const int64_t cols = dst.GetValidCol();
  require_valid(op, "the full source", full, rows, cols);
  require_valid(op, "the per-row source", per_row, rows, 1);
  for (int64_t r = 0; r < rows; ++r) {
    const compute_t<T> value = Element<T>::load(*per_row.at(r, 0));
    T* out = dst.at(r, 0);
    const T* in = full.at(r, 0);
    PTO_INDEPENDENT
    for (int64_t c = 0; c < cols; ++c) {
      out[c * Dst::ColStride] = Op<T>::apply(Element<T>::load(in[c * Full::ColStride]), value);
    }
  }
}

// dst(r, c) = Op(full(r, c), per_col(0, c))
template <template <class> class Op, class Dst, class Full, class PerCol>
__attribute__((always_inline)) inline void expand_cols(const char* op, const Dst& dst,
                                                       const Full& full, const PerCol& per_col) {
  using T = typename Dst::DType;
  static_assert(same_type<T, typename Full::DType> && same_type<T, typename PerCol::DType>,
                "operands of an expanding instruction have one element type");
  require_bound(op, dst);
  const int64_t rows = dst.GetValidRow();
  const int64_t cols = dst.GetValidCol();
  require_valid(op, "the full source", full, rows, cols);
  require_valid(op, "the per-column source", per_col, 1, cols);
  const T* values = per_col.at(0, 0);
  for (int64_t r = 0; r < rows; ++r) {
    T* out = dst.at(r, 0);
    const T* in = full.at(r, 0);
    PTO_INDEPENDENT
    for (int64_t c = 0; c < cols; ++c) {
      out[c * Dst::ColStride] = Op<T>::apply(Element<T>::load(in[c * Full::ColStride]),
                                             Element<T>::load(values[c * PerCol::ColStride]));
    }
  }
}

}  // namespace sim

template <class Dst, class Full, class PerRow>
inline void TROWEXPANDADD(Dst& dst, const Full& full, const PerRow& per_row) {
  sim::expand_rows<sim::Add>("TROWEXPANDADD", dst, full, per_row);
}
template <class Dst, class Full, class PerRow>
inline void TROWEXPANDSUB(Dst& dst, const Full& full, const PerRow& per_row) {
  sim::expand_rows<sim::Sub>("TROWEXPANDSUB", dst, full, per_row);
}
template <class Dst, class Full, class PerRow>
inline void TROWEXPANDMUL(Dst& dst, const Full& full, const PerRow& per_row) {
  sim::expand_rows<sim::Mul>("TROWEXPANDMUL", dst, full, per_row);
}
template <class Dst, class Full, class PerRow>
inline void TROWEXPANDDIV(Dst& dst, const Full& full, const PerRow& per_row) {
  sim::expand_rows<sim::Div>("TROWEXPANDDIV", dst, full, per_row);
}

template <class Dst, class Full, class PerCol>
inline void TCOLEXPANDADD(Dst& dst, const Full& full, const PerCol& per_col) {
  sim::expand_cols<sim::Add>("TCOLEXPANDADD", dst, full, per_col);
}
template <class Dst, class Full, class PerCol>
inline void TCOLEXPANDSUB(Dst& dst, const Full& full, const PerCol& per_col) {
  sim::expand_cols<sim::Sub>("TCOLEXPANDSUB", dst, full, per_col);
}
template <class Dst, class Full, class PerCol>
inline void TCOLEXPANDMUL(Dst& dst, const Full& full, const PerCol& per_col) {
  sim::expand_cols<sim::Mul>("TCOLEXPANDMUL", dst, full, per_col);
}
template <class Dst, class Full, class PerCol>
inline void TCOLEXPANDDIV(Dst& dst, const Full& full, const PerCol& per_col) {
  sim::expand_cols<sim::Div>("TCOLEXPANDDIV", dst, full, per_col);
}

// Every column of dst becomes `column`.
template <class Dst, class Column>
inline void TROWEXPAND(Dst& dst, const Column& column) {
  using T = typename Dst::DType;
  static_assert(sim::same_type<T, typename Column::DType>,
                "operands of an expanding instruction have one element type");
  sim::require_bound("TROWEXPAND", dst);
  sim::require_valid("TROWEXPAND", "the source", column, dst.GetValidRow(), 1);
  for (int64_t r = 0; r < dst.GetValidRow(); ++r) {
    const T value = *column.at(r, 0);
    T* out = dst.at(r, 0);
    PTO_INDEPENDENT
    for (int64_t c = 0; c < dst.GetValidCol(); ++c) out[c * Dst::ColStride] = value;
  }
}

// Every row of dst becomes `row`.
template <class Dst, class Row>
inline void TCOLEXPAND(Dst& dst, const Row& row) {
  using T = typename Dst::DType;
  static_assert(sim::same_type<T, typename Row::DType>,
                "operands of an expanding instruction have one element type");
  sim::require_bound("TCOLEXPAND", dst);
  const int64_t cols = dst.GetValidCol();
  sim::require_valid("TCOLEXPAND", "the source", row, 1, cols);
  for (int64_t r = 0; r < dst.GetValidRow(); ++r) {
    T* out = dst.at(r, 0);
    const T* in = row.at(0, 0);
    PTO_INDEPENDENT
    for (int64_t c = 0; c < cols; ++c) out[c * Dst::ColStride] = in[c * Row::ColStride];
  }
}

}  // namespace pto

#endif  // PTO_SIM_EXPAND_HPP_
