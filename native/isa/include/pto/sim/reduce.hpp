// Reductions of each row or column to one value. Only the valid region counts.
#ifndef PTO_SIM_REDUCE_HPP_
#define PTO_SIM_REDUCE_HPP_

#include "pto/sim/arithmetic.hpp"

namespace pto {
namespace sim {

// Partial results of a reduction: kept in a fixed order, so that the loop vectorizes and the result
// does not depend on the CPU level.
inline constexpr int kLanes = 32;

// What a reduction starts from. The identities of maximum and minimum are infinite for floats.
template <class T>
struct Sum {
  using C = compute_t<T>;
  static C identity() noexcept { return C{0}; }
  static C apply(C a, C b) noexcept { return Add<C>::apply(a, b); }
};
template <class T>
struct Product {
  using C = compute_t<T>;
  static C identity() noexcept { return C{1}; }
  static C apply(C a, C b) noexcept { return Mul<C>::apply(a, b); }
};
template <class T>
struct Largest {
  using C = compute_t<T>;
  static C identity() noexcept {
    if constexpr (is_float<T>) {
      return -__builtin_inff();
    } else {
      return Element<T>::lowest;
    }
  }
  static C apply(C a, C b) noexcept { return maximum(a, b); }
};
template <class T>
struct Smallest {
  using C = compute_t<T>;
  static C identity() noexcept {
    if constexpr (is_float<T>) {
      return __builtin_inff();
    } else {
      return Element<T>::highest;
    }
  }
  static C apply(C a, C b) noexcept { return minimum(a, b); }
};

// A row of `count` elements, `step` elements apart, to *out.
using Reduce = void (*)(void* out, const void* row, int64_t step, int64_t count);

// One block of lanes into the partial results.
template <template <class> class Op, class T>
__attribute__((always_inline)) inline void reduce_block(compute_t<T>* lanes, const T* block) {
  if constexpr (same_type<T, half>) {
    float wide[kLanes];
    widen(wide, block, kLanes);
    reduce_block<Op, float>(lanes, wide);
  } else {
    PTO_INDEPENDENT
    for (int l = 0; l < kLanes; ++l) {
      lanes[l] = Op<T>::apply(lanes[l], Element<T>::load(block[l]));
    }
  }
}

// The upper half of 2 * Width partial results into the lower one.
template <template <class> class Op, class T, int Width>
__attribute__((always_inline)) inline void fold(compute_t<T>* lanes) {
  PTO_INDEPENDENT
  for (int l = 0; l < Width; ++l) lanes[l] = Op<T>::apply(lanes[l], lanes[l + Width]);
  if constexpr (Width > 1) fold<Op, T, Width / 2>(lanes);
}

template <template <class> class Op, class T>
void reduce(void* out, const void* row, int64_t step, int64_t count) {
  const auto* x = static_cast<const T*>(row);
  compute_t<T> lanes[kLanes];
  for (int l = 0; l < kLanes; ++l) lanes[l] = Op<T>::identity();
  int64_t i = 0;
  if (step == 1) {
    for (; count - i >= kLanes; i += kLanes) reduce_block<Op, T>(lanes, x + i);
  }
  for (; i < count; ++i) {
    compute_t<T>& lane = lanes[i % kLanes];
    lane = Op<T>::apply(lane, Element<T>::load(x[i * step]));
  }
  fold<Op, T, kLanes / 2>(lanes);
  *static_cast<T*>(out) = Element<T>::store(lanes[0]);
}

PTO_SHARED inline void walk_reduce(const char* op, Reduce run, const TileView& dst,
                                   const TileView& src, int64_t element) {
  require_bound(op, src);
  require(op, "the destination", dst, src.valid_rows, 1);
  if (src.valid_cols == 0 && src.valid_rows > 0) {
    fault(FaultCode::Value, op, "there is no column to reduce");
  }
  const Operand out = operand_of(dst, element);
  const Operand in = operand_of(src, element);
  for (int64_t r = 0; r < src.valid_rows; ++r) {
    run(out.data + r * out.outer, in.data + r * in.outer, src.col_stride, src.valid_cols);
  }
}

template <template <class> class Op, class Dst, class Src>
inline void reduce_rows(const char* op, const Dst& dst, const Src& src) {
  require_one_type<Dst, Src>();
  using T = typename Src::DType;
  walk_reduce(op, reduce<Op, T>, dst.view(), src.view(), sizeof(T));
}

// Columns of `rows` elements, a row `row_step` and a column `col_step` elements from the next, each
// to one element of `out`, `out_step` elements apart. Rows are taken in order.
using ReduceColumns = void (*)(void* out, int64_t out_step, const void* first, int64_t row_step,
                               int64_t col_step, int64_t rows, int64_t cols);

template <template <class> class Op, class T>
void reduce_columns(void* out, int64_t out_step, const void* first, int64_t row_step,
                    int64_t col_step, int64_t rows, int64_t cols) {
  const auto* x = static_cast<const T*>(first);
  auto* o = static_cast<T*>(out);
  for (int64_t c = 0; c < cols; c += kPiece) {
    const int64_t size = cols - c < kPiece ? cols - c : kPiece;
    compute_t<T> results[kPiece];
    compute_t<T> row[kPiece];
    for (int64_t i = 0; i < size; ++i) results[i] = Op<T>::identity();
    for (int64_t r = 0; r < rows; ++r) {
      const T* from = x + r * row_step + c * col_step;
      if constexpr (same_type<T, half>) {
        if (col_step == 1) {
          widen(row, from, size);
        } else {
          for (int64_t i = 0; i < size; ++i) row[i] = Element<T>::load(from[i * col_step]);
        }
      } else {
        for (int64_t i = 0; i < size; ++i) row[i] = Element<T>::load(from[i * col_step]);
      }
      PTO_INDEPENDENT
      for (int64_t i = 0; i < size; ++i) results[i] = Op<T>::apply(results[i], row[i]);
    }
    for (int64_t i = 0; i < size; ++i) o[(c + i) * out_step] = Element<T>::store(results[i]);
  }
}

PTO_SHARED inline void walk_reduce_columns(const char* op, ReduceColumns run, const TileView& dst,
                                           const TileView& src) {
  require_bound(op, src);
  require(op, "the destination", dst, 1, src.valid_cols);
  if (src.valid_rows == 0 && src.valid_cols > 0) {
    fault(FaultCode::Value, op, "there is no row to reduce");
  }
  run(dst.data, dst.col_stride, src.data, src.row_stride, src.col_stride, src.valid_rows,
      src.valid_cols);
}

template <template <class> class Op, class Dst, class Src>
inline void reduce_cols(const char* op, const Dst& dst, const Src& src) {
  require_one_type<Dst, Src>();
  walk_reduce_columns(op, reduce_columns<Op, typename Src::DType>, dst.view(), src.view());
}

}  // namespace sim

template <class Dst, class Src, class Tmp>
inline void TROWSUM(Dst& dst, const Src& src, const Tmp&) {
  sim::reduce_rows<sim::Sum>("TROWSUM", dst, src);
}
template <class Dst, class Src, class Tmp>
inline void TROWMAX(Dst& dst, const Src& src, const Tmp&) {
  sim::reduce_rows<sim::Largest>("TROWMAX", dst, src);
}
template <class Dst, class Src, class Tmp>
inline void TROWMIN(Dst& dst, const Src& src, const Tmp&) {
  sim::reduce_rows<sim::Smallest>("TROWMIN", dst, src);
}
template <class Dst, class Src, class Tmp>
inline void TROWPROD(Dst& dst, const Src& src, const Tmp&) {
  sim::reduce_rows<sim::Product>("TROWPROD", dst, src);
}

template <class Dst, class Src>
inline void TCOLSUM(Dst& dst, const Src& src) {
  sim::reduce_cols<sim::Sum>("TCOLSUM", dst, src);
}
template <class Dst, class Src>
inline void TCOLMAX(Dst& dst, const Src& src) {
  sim::reduce_cols<sim::Largest>("TCOLMAX", dst, src);
}
template <class Dst, class Src>
inline void TCOLMIN(Dst& dst, const Src& src) {
  sim::reduce_cols<sim::Smallest>("TCOLMIN", dst, src);
}
template <class Dst, class Src>
inline void TCOLPROD(Dst& dst, const Src& src) {
  sim::reduce_cols<sim::Product>("TCOLPROD", dst, src);
}

}  // namespace pto

#endif  // PTO_SIM_REDUCE_HPP_
