// Reductions of each row to one value. Only the valid region counts.
#ifndef PTO_SIM_REDUCE_HPP_
#define PTO_SIM_REDUCE_HPP_

#include "pto/sim/arithmetic.hpp"
#include "pto/sim/loops.hpp"

namespace pto {
namespace sim {

// Floats keep this many partial results, in a fixed order, so that the loop vectorizes and the
// result does not depend on the CPU level.
inline constexpr int kLanes = 32;

template <class C, class T, class F>
inline C reduce_row(const T* row, int64_t stride, int64_t count, C start, F f) {
  C lanes[kLanes];
  for (int l = 0; l < kLanes; ++l) lanes[l] = start;
  const int64_t blocks = stride == 1 ? count / kLanes : 0;
  for (int64_t b = 0; b < blocks; ++b) {
    const T* block = row + b * kLanes;
    PTO_INDEPENDENT
    for (int l = 0; l < kLanes; ++l) lanes[l] = f(lanes[l], Element<T>::load(block[l]));
  }
  for (int64_t i = blocks * kLanes; i < count; ++i) {
    C& lane = lanes[i % kLanes];
    lane = f(lane, Element<T>::load(row[i * stride]));
  }
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int l = 0; l < width; ++l) lanes[l] = f(lanes[l], lanes[l + width]);
  }
  return lanes[0];
}

template <class Dst, class Src, class F>
inline void reduce_rows(const char* op, const Dst& dst, const Src& src,
                        compute_t<typename Src::DType> start, F f) {
  using T = typename Src::DType;
  static_assert(same_type<T, typename Dst::DType>, "a reduction keeps the element type");
  require_bound(op, src);
  require_valid(op, "the destination", dst, src.GetValidRow(), 1);
  for (int64_t r = 0; r < src.GetValidRow(); ++r) {
    *dst.at(r, 0) = Element<T>::store(
        reduce_row(static_cast<const T*>(src.at(r, 0)), Src::ColStride, src.GetValidCol(), start, f));
  }
}

// The smallest and largest value of T, infinities included: where a maximum or minimum starts.
template <class T>
inline compute_t<T> below_all() {
  if constexpr (is_float<T>) {
    return -__builtin_inff();
  } else {
    return lowest<T>();
  }
}
template <class T>
inline compute_t<T> above_all() {
  if constexpr (is_float<T>) {
    return __builtin_inff();
  } else {
    return highest<T>();
  }
}

}  // namespace sim

template <class Dst, class Src, class Tmp>
inline void TROWSUM(Dst& dst, const Src& src, const Tmp&) {
  using T = typename Src::DType;
  using C = sim::compute_t<T>;
  sim::reduce_rows("TROWSUM", dst, src, C{0}, [](C a, C b) -> C {
    if constexpr (sim::is_float<T>) {
      return a + b;
    } else {
      return sim::Add<T>::apply(a, b);
    }
  });
}
template <class Dst, class Src, class Tmp>
inline void TROWMAX(Dst& dst, const Src& src, const Tmp&) {
  using C = sim::compute_t<typename Src::DType>;
  sim::reduce_rows("TROWMAX", dst, src, sim::below_all<typename Src::DType>(),
                   [](C a, C b) { return sim::maximum(a, b); });
}
template <class Dst, class Src, class Tmp>
inline void TROWMIN(Dst& dst, const Src& src, const Tmp&) {
  using C = sim::compute_t<typename Src::DType>;
  sim::reduce_rows("TROWMIN", dst, src, sim::above_all<typename Src::DType>(),
                   [](C a, C b) { return sim::minimum(a, b); });
}

}  // namespace pto

#endif  // PTO_SIM_REDUCE_HPP_
