// The loop under every element-wise instruction.
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

// dst(r, c) = f(src(r, c)...) for the valid region of dst. Rows of row-major tiles, and columns of
// column-major ones, are one vectorizable loop; full-width tiles are a single one.
template <class Dst, class F, class... Src>
__attribute__((always_inline)) inline void map_elements(const Dst& dst, F f, const Src&... src) {
  constexpr bool by_columns = (Dst::ByColumns && ... && Src::ByColumns);
  constexpr bool unit = by_columns || (!Dst::ByColumns && ... && !Src::ByColumns);
  constexpr bool same_pitch = by_columns ? (true && ... && (Src::Rows == Dst::Rows))
                                         : (true && ... && (Src::Cols == Dst::Cols));
  int64_t inner = by_columns ? dst.GetValidRow() : dst.GetValidCol();
  int64_t outer = by_columns ? dst.GetValidCol() : dst.GetValidRow();
  if constexpr (unit) {
    constexpr int64_t pitch = by_columns ? Dst::ColStride : Dst::RowStride;
    if (same_pitch && inner == pitch) {
      inner *= outer;
      outer = outer > 0 ? 1 : 0;
    }
    for (int64_t o = 0; o < outer; ++o) {
      auto run = [&](auto* out, const auto*... in) __attribute__((always_inline)) {
        PTO_INDEPENDENT
        for (int64_t i = 0; i < inner; ++i) out[i] = f(in[i]...);
      };
      run(dst.data() + o * pitch,
          static_cast<const typename Src::DType*>(
              src.data() + o * (by_columns ? Src::ColStride : Src::RowStride))...);
    }
  } else {
    for (int64_t r = 0; r < dst.GetValidRow(); ++r) {
      for (int64_t c = 0; c < dst.GetValidCol(); ++c) *dst.at(r, c) = f(*src.at(r, c)...);
    }
  }
}

}  // namespace pto::sim

#endif  // PTO_SIM_LOOPS_HPP_
