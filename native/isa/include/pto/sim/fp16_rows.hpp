// Rows of fp16 to fp32 and back. The compiler does not vectorize these conversions itself.
#ifndef PTO_SIM_FP16_ROWS_HPP_
#define PTO_SIM_FP16_ROWS_HPP_

#include "pto/sim/dtypes.hpp"

namespace pto::sim {

// fp16 is computed in pieces of this many elements, widened.
inline constexpr int64_t kPiece = 64;

inline void widen(float* out, const half* in, int64_t count) noexcept {
  int64_t i = 0;
#if defined(__F16C__) && !defined(__clang__)
  typedef short Halves __attribute__((vector_size(16), aligned(2), may_alias));
  typedef float Floats __attribute__((vector_size(32), aligned(4), may_alias));
  for (; i + 8 <= count; i += 8) {
    *reinterpret_cast<Floats*>(out + i) =
        __builtin_ia32_vcvtph2ps256(*reinterpret_cast<const Halves*>(in + i));
  }
#endif
  for (; i < count; ++i) out[i] = static_cast<float>(in[i]);
}

inline void narrow(half* out, const float* in, int64_t count) noexcept {
  int64_t i = 0;
#if defined(__F16C__) && !defined(__clang__)
  typedef short Halves __attribute__((vector_size(16), aligned(2), may_alias));
  typedef float Floats __attribute__((vector_size(32), aligned(4), may_alias));
  for (; i + 8 <= count; i += 8) {
    *reinterpret_cast<Halves*>(out + i) =
        __builtin_ia32_vcvtps2ph256(*reinterpret_cast<const Floats*>(in + i), 0);  // to even
  }
#endif
  for (; i < count; ++i) out[i] = static_cast<half>(in[i]);
}

// Calls f(piece, offset, count) for each piece: what a run does to `in`, on widened elements, to be
// narrowed into `out`.
template <class F>
__attribute__((always_inline)) inline void for_pieces(void* out, const void* in, int64_t count,
                                                      F f) {
  float piece[kPiece];
  for (int64_t i = 0; i < count; i += kPiece) {
    const int64_t size = count - i < kPiece ? count - i : kPiece;
    widen(piece, static_cast<const half*>(in) + i, size);
    f(piece, i, size);
    narrow(static_cast<half*>(out) + i, piece, size);
  }
}

}  // namespace pto::sim

#endif  // PTO_SIM_FP16_ROWS_HPP_
