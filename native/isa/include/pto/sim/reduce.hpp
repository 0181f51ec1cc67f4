// Reductions of each row to one value. Only the valid region counts.
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

template <template <class> class Op, class T>
void reduce(void* out, const void* row, int64_t step, int64_t count) {
  using C = compute_t<T>;
  const auto* x = static_cast<const T*>(row);
  C lanes[kLanes];
  for (int l = 0; l < kLanes; ++l) lanes[l] = Op<T>::identity();
  int64_t i = 0;
  if (step == 1) {
    for (; count - i >= kLanes; i += kLanes) {
      PTO_INDEPENDENT
      for (int l = 0; l < kLanes; ++l) {
        lanes[l] = Op<T>::apply(lanes[l], Element<T>::load(x[i + l]));
      }
    }
  }
  for (; i < count; ++i) {
    C& lane = lanes[i % kLanes];
    lane = Op<T>::apply(lane, Element<T>::load(x[i * step]));
  }
#pragma GCC unroll 1
  for (int width = kLanes / 2; width > 0; width /= 2) {
#pragma GCC unroll 1
    for (int l = 0; l < width; ++l) lanes[l] = Op<T>::apply(lanes[l], lanes[l + width]);
  }
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

}  // namespace pto

#endif  // PTO_SIM_REDUCE_HPP_
