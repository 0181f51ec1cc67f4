// Comparisons to masks of truth values, and selections by them.
#ifndef PTO_SIM_SELECT_HPP_
#define PTO_SIM_SELECT_HPP_

#include "pto/sim/elementwise.hpp"

namespace pto {

enum class CmpMode { EQ, NE, LT, LE, GT, GE };

namespace sim {

// NaN is equal to nothing, and neither less nor greater than anything.
template <CmpMode Mode, class C>
inline bool compares(C a, C b) noexcept {
  if constexpr (Mode == CmpMode::EQ) {
    return a == b;
  } else if constexpr (Mode == CmpMode::NE) {
    return a != b;
  } else if constexpr (Mode == CmpMode::LT) {
    return a < b;
  } else if constexpr (Mode == CmpMode::LE) {
    return a <= b;
  } else if constexpr (Mode == CmpMode::GT) {
    return a > b;
  } else {
    return a >= b;
  }
}

template <CmpMode Mode, class T>
void run_compare(void* out, const void* a, const void* b, int64_t count) {
  auto* o = static_cast<uint8_t*>(out);
  const auto* x = static_cast<const T*>(a);
  const auto* y = static_cast<const T*>(b);
  for (int64_t i = 0; i < count; ++i) {
    o[i] = compares<Mode>(Element<T>::load(x[i]), Element<T>::load(y[i]));
  }
}

template <CmpMode Mode, class T>
void run_compare_with(void* out, const void* a, const void* b, int64_t count) {
  auto* o = static_cast<uint8_t*>(out);
  const auto* x = static_cast<const T*>(a);
  const compute_t<T> y = *static_cast<const compute_t<T>*>(b);
  for (int64_t i = 0; i < count; ++i) o[i] = compares<Mode>(Element<T>::load(x[i]), y);
}

template <class T, bool WithScalar>
__attribute__((always_inline)) inline Run compare_run(CmpMode mode) noexcept {
#define PTO_COMPARE(MODE) \
  case CmpMode::MODE:     \
    return WithScalar ? run_compare_with<CmpMode::MODE, T> : run_compare<CmpMode::MODE, T>
  switch (mode) {
    PTO_COMPARE(EQ);
    PTO_COMPARE(NE);
    PTO_COMPARE(LT);
    PTO_COMPARE(LE);
    PTO_COMPARE(GT);
    PTO_COMPARE(GE);
  }
#undef PTO_COMPARE
  return nullptr;
}

PTO_SHARED inline void walk_compare(Run run, const TileView& dst, const TileView& a,
                                    const TileView& b, int64_t element) {
  require_bound("TCMP", dst);
  require("TCMP", "the first source", a, dst.valid_rows, dst.valid_cols);
  require("TCMP", "the second source", b, dst.valid_rows, dst.valid_cols);
  walk(run, operand_of(dst, 1), operand_of(a, element), operand_of(b, element), dst.valid_rows,
       dst.valid_cols);
}

// out[i] = mask[i] ? a[i] : b[i] for one row.
using Choose = void (*)(const Operand& out, const Operand& mask, const Operand& a, const Operand& b,
                        int64_t count);

template <class T>
void choose(const Operand& out, const Operand& mask, const Operand& a, const Operand& b,
            int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const Operand& from = mask.data[i * mask.inner] != 0 ? a : b;
    *reinterpret_cast<T*>(out.data + i * out.inner) =
        *reinterpret_cast<const T*>(from.data + i * from.inner);
  }
}

PTO_SHARED inline void walk_choose(const char* op, Choose run, const TileView& dst,
                                   const TileView& mask, Operand a, Operand b, int64_t element) {
  require_bound(op, dst);
  require(op, "the mask", mask, dst.valid_rows, dst.valid_cols);
  Operand out = operand_of(dst, element);
  Operand by = operand_of(mask, 1);
  for (int64_t r = 0; r < dst.valid_rows; ++r) {
    run(out, by, a, b, dst.valid_cols);
    out.data += out.outer;
    by.data += by.outer;
    a.data += a.outer;
    b.data += b.outer;
  }
}

PTO_SHARED inline Operand chosen(const char* op, const char* what, const TileView& tile,
                                 const TileView& dst, int64_t element) {
  require(op, what, tile, dst.valid_rows, dst.valid_cols);
  return operand_of(tile, element);
}

template <class Dst, class Mask>
constexpr void require_mask() {
  static_assert(same_type<typename Mask::DType, bool>, "a mask is a tile of bool");
}

}  // namespace sim

// dst is a mask: whether a compares with b, element by element.
template <class Dst, class A, class B>
__attribute__((always_inline)) inline void TCMP(Dst& dst, const A& a, const B& b, CmpMode mode) {
  sim::require_mask<Dst, Dst>();
  sim::require_one_type<A, B>();
  using T = typename A::DType;
  sim::walk_compare(sim::compare_run<T, false>(mode), dst.view(), a.view(), b.view(), sizeof(T));
}
template <class Dst, class A, class S>
__attribute__((always_inline)) inline void TCMPS(Dst& dst, const A& a, S scalar, CmpMode mode) {
  sim::require_mask<Dst, Dst>();
  using T = typename A::DType;
  const sim::compute_t<T> value = static_cast<sim::compute_t<T>>(scalar);
  sim::walk_one("TCMPS", sim::compare_run<T, true>(mode), dst.view(), a.view(), &value, 1,
                sizeof(T));
}

// dst = a where the mask is not 0, b elsewhere. dst may be a, b or, of truth values, the mask.
template <class Dst, class Mask, class A, class B>
inline void TSEL(Dst& dst, const Mask& mask, const A& a, const B& b) {
  sim::require_mask<Dst, Mask>();
  sim::require_one_type<Dst, A, B>();
  using T = typename Dst::DType;
  sim::walk_choose("TSEL", sim::choose<T>, dst.view(), mask.view(),
                   sim::chosen("TSEL", "the first source", a.view(), dst.view(), sizeof(T)),
                   sim::chosen("TSEL", "the second source", b.view(), dst.view(), sizeof(T)),
                   sizeof(T));
}
template <class Dst, class Mask, sim::TileOperand A, class S>
inline void TSELS(Dst& dst, const Mask& mask, const A& a, S scalar) {
  sim::require_mask<Dst, Mask>();
  sim::require_one_type<Dst, A>();
  using T = typename Dst::DType;
  const T value = sim::Element<T>::store(static_cast<sim::compute_t<T>>(scalar));
  sim::walk_choose("TSELS", sim::choose<T>, dst.view(), mask.view(),
                   sim::chosen("TSELS", "the source", a.view(), dst.view(), sizeof(T)),
                   sim::constant(&value), sizeof(T));
}
// dst = scalar where the mask is not 0.
template <class Dst, class Mask, class S, sim::TileOperand A>
inline void TSELS(Dst& dst, const Mask& mask, S scalar, const A& a) {
  sim::require_mask<Dst, Mask>();
  sim::require_one_type<Dst, A>();
  using T = typename Dst::DType;
  const T value = sim::Element<T>::store(static_cast<sim::compute_t<T>>(scalar));
  sim::walk_choose("TSELS", sim::choose<T>, dst.view(), mask.view(), sim::constant(&value),
                   sim::chosen("TSELS", "the source", a.view(), dst.view(), sizeof(T)), sizeof(T));
}

}  // namespace pto

#endif  // PTO_SIM_SELECT_HPP_
