// Instructions that combine a tile with one value per row or per column.
#ifndef PTO_SIM_EXPAND_HPP_
#define PTO_SIM_EXPAND_HPP_

#include "pto/sim/arithmetic.hpp"

namespace pto {
namespace sim {

PTO_SHARED inline void walk_rows(const char* op, Run run, const TileView& dst, const TileView& full,
                                 const TileView& per_row, int64_t element) {
  require_bound(op, dst);
  require(op, "the full source", full, dst.valid_rows, dst.valid_cols);
  require(op, "the per-row source", per_row, dst.valid_rows, 1);
  walk(run, operand_of(dst, element), operand_of(full, element), per_row_of(per_row, element),
       dst.valid_rows, dst.valid_cols);
}

PTO_SHARED inline void walk_cols(const char* op, Run run, const TileView& dst, const TileView& full,
                                 const TileView& per_col, int64_t element) {
  require_bound(op, dst);
  require(op, "the full source", full, dst.valid_rows, dst.valid_cols);
  require(op, "the per-column source", per_col, 1, dst.valid_cols);
  walk(run, operand_of(dst, element), operand_of(full, element), per_col_of(per_col, element),
       dst.valid_rows, dst.valid_cols);
}

// dst(r, c) = Op(full(r, c), per_row(r, 0))
template <template <class> class Op, class Dst, class Full, class PerRow>
inline void expand_rows(const char* op, const Dst& dst, const Full& full, const PerRow& per_row) {
  require_one_type<Dst, Full, PerRow>();
  using T = typename Dst::DType;
  walk_rows(op, run_with<Op, T, T, false>, dst.view(), full.view(), per_row.view(), sizeof(T));
}

// dst(r, c) = Op(full(r, c), per_col(0, c))
template <template <class> class Op, class Dst, class Full, class PerCol>
inline void expand_cols(const char* op, const Dst& dst, const Full& full, const PerCol& per_col) {
  require_one_type<Dst, Full, PerCol>();
  using T = typename Dst::DType;
  walk_cols(op, run_pairs<Op, T>, dst.view(), full.view(), per_col.view(), sizeof(T));
}

// e^(a - b), rounded once.
template <class T>
struct ExpDif {
  static_assert(is_float<T>, "this instruction needs a floating-point tile");
  static T apply(float a, float b) noexcept { return Element<T>::store(exp_f32(a - b)); }
};

// b[i], whatever a is.
template <class T>
void run_copy_second(void* out, const void*, const void* b, int64_t count) {
  __builtin_memmove(out, b, static_cast<size_t>(count) * sizeof(T));
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
template <class Dst, class Full, class PerRow>
inline void TROWEXPANDMAX(Dst& dst, const Full& full, const PerRow& per_row) {
  sim::expand_rows<sim::Max>("TROWEXPANDMAX", dst, full, per_row);
}
template <class Dst, class Full, class PerRow>
inline void TROWEXPANDMIN(Dst& dst, const Full& full, const PerRow& per_row) {
  sim::expand_rows<sim::Min>("TROWEXPANDMIN", dst, full, per_row);
}
template <class Dst, class Full, class PerRow>
inline void TROWEXPANDEXPDIF(Dst& dst, const Full& full, const PerRow& per_row) {
  sim::expand_rows<sim::ExpDif>("TROWEXPANDEXPDIF", dst, full, per_row);
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
template <class Dst, class Full, class PerCol>
inline void TCOLEXPANDMAX(Dst& dst, const Full& full, const PerCol& per_col) {
  sim::expand_cols<sim::Max>("TCOLEXPANDMAX", dst, full, per_col);
}
template <class Dst, class Full, class PerCol>
inline void TCOLEXPANDMIN(Dst& dst, const Full& full, const PerCol& per_col) {
  sim::expand_cols<sim::Min>("TCOLEXPANDMIN", dst, full, per_col);
}

// Every column of dst becomes `column`.
template <class Dst, class Column>
inline void TROWEXPAND(Dst& dst, const Column& column) {
  sim::require_one_type<Dst, Column>();
  using T = typename Dst::DType;
  sim::walk_rows("TROWEXPAND", sim::run_fill<T>, dst.view(), dst.view(), column.view(), sizeof(T));
}

// Every row of dst becomes `row`.
template <class Dst, class Row>
inline void TCOLEXPAND(Dst& dst, const Row& row) {
  sim::require_one_type<Dst, Row>();
  using T = typename Dst::DType;
  sim::walk_cols("TCOLEXPAND", sim::run_copy_second<T>, dst.view(), dst.view(), row.view(),
                 sizeof(T));
}

}  // namespace pto

#endif  // PTO_SIM_EXPAND_HPP_
