// The loops under the instructions. An instruction is a `run`, a plain loop over neighbouring
// elements of one element type, and a walk that calls it for each row; only the run is a template.
#ifndef PTO_SIM_LOOPS_HPP_
#define PTO_SIM_LOOPS_HPP_

#include "pto/sim/tile.hpp"

// The iterations of the loop that follows do not depend on each other, except through elements of
// equal index.
#if defined(__clang__)
#define PTO_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define PTO_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace pto::sim {

// out[i] = f(a[i], b[i]) for i < count, or f(a[i], *b), or f(a[i]): what b is belongs to the run.
using Run = void (*)(void* out, const void* a, const void* b, int64_t count);

// Elements in two dimensions; steps in bytes. A step of 0 repeats an element.
struct Operand {
  unsigned char* data;
  int64_t outer;
  int64_t inner;
  int64_t element;
};

inline Operand operand_of(const TileView& tile, int64_t element) noexcept {
  return {static_cast<unsigned char*>(tile.data), tile.row_stride * element,
          tile.col_stride * element, element};
}
inline Operand per_row_of(const TileView& tile, int64_t element) noexcept {
  return {static_cast<unsigned char*>(tile.data), tile.row_stride * element, 0, element};
}
inline Operand per_col_of(const TileView& tile, int64_t element) noexcept {
  return {static_cast<unsigned char*>(tile.data), 0, tile.col_stride * element, element};
}
inline Operand constant(const void* value) noexcept {
  return {static_cast<unsigned char*>(const_cast<void*>(value)), 0, 0, 0};
}

inline void swap_steps(Operand& operand) noexcept {
  const int64_t outer = operand.outer;
  operand.outer = operand.inner;
  operand.inner = outer;
}

// Calls the run for every row, for the whole at once where rows lie end to end, or, where
// neighbouring columns are not neighbours in memory, for columns or single elements. The run reads
// b by element where b's inner step is not 0, once where it is.
PTO_SHARED inline void walk(Run run, Operand out, Operand a, Operand b, int64_t outer,
                            int64_t inner) {
  if (outer == 0 || inner == 0) return;
  const bool repeats = b.inner == 0;
  if (out.inner != out.element && out.outer == out.element &&
      (repeats ? b.outer == 0 : b.outer == b.element)) {
    swap_steps(out);
    swap_steps(a);
    swap_steps(b);
    const int64_t rows = outer;
    outer = inner;
    inner = rows;
  }
  const bool unit =
      out.inner == out.element && a.inner == a.element && b.inner == (repeats ? 0 : b.element);
  if (!unit) {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) {
        run(out.data + o * out.outer + i * out.inner, a.data + o * a.outer + i * a.inner,
            b.data + o * b.outer + i * b.inner, 1);
      }
    }
    return;
  }
  if (out.outer == inner * out.inner && a.outer == inner * a.inner && b.outer == inner * b.inner) {
    inner *= outer;
    outer = 1;
  }
  for (int64_t o = 0; o < outer; ++o) {
    run(out.data + o * out.outer, a.data + o * a.outer, b.data + o * b.outer, inner);
  }
}

// Both sources and the destination have one valid region and one element size.
PTO_SHARED inline void walk_two(const char* op, Run run, const TileView& dst, const TileView& a,
                                const TileView& b, int64_t element) {
  require_bound(op, dst);
  require(op, "the first source", a, dst.valid_rows, dst.valid_cols);
  require(op, "the second source", b, dst.valid_rows, dst.valid_cols);
  walk(run, operand_of(dst, element), operand_of(a, element), operand_of(b, element),
       dst.valid_rows, dst.valid_cols);
}

// `value`, if any, is what the run takes for b.
PTO_SHARED inline void walk_one(const char* op, Run run, const TileView& dst, const TileView& a,
                                const void* value, int64_t dst_element, int64_t a_element) {
  require_bound(op, dst);
  require(op, "the source", a, dst.valid_rows, dst.valid_cols);
  walk(run, operand_of(dst, dst_element), operand_of(a, a_element), constant(value), dst.valid_rows,
       dst.valid_cols);
}

}  // namespace pto::sim

#endif  // PTO_SIM_LOOPS_HPP_
