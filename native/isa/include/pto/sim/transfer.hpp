// Instructions that move elements between global memory and tiles.
#ifndef PTO_SIM_TRANSFER_HPP_
#define PTO_SIM_TRANSFER_HPP_

#include "pto/sim/convert.hpp"
#include "pto/sim/global_tensor.hpp"
#include "pto/sim/padding.hpp"

namespace pto {
namespace sim {

// Moves between a tile's valid region and a window of its shape, plane by plane.
PTO_SHARED inline void walk_window(const char* op, Run run, const TileView& tile,
                                   int64_t tile_element, const Window& window,
                                   int64_t window_element, bool load) {
  require_bound(op, tile);
  if (tile.valid_rows != window.rows() || tile.valid_cols != window.cols()) {
    fault_mismatch(op, "the global window", window.rows(), window.cols(), tile.valid_rows,
                   tile.valid_cols);
  }
  Operand on_chip = operand_of(tile, tile_element);
  for (int64_t i = 0; i < window.shape[0]; ++i) {
    for (int64_t j = 0; j < window.shape[1]; ++j) {
      for (int64_t k = 0; k < window.shape[2]; ++k) {
        const int64_t plane = i * window.stride[0] + j * window.stride[1] + k * window.stride[2];
        const Operand global{window.data + plane * window_element,
                             window.stride[3] * window_element, window.stride[4] * window_element,
                             window_element};
        walk(run, load ? on_chip : global, load ? global : on_chip, constant(nullptr),
             window.shape[3], window.shape[4]);
        on_chip.data += window.shape[3] * on_chip.outer;
      }
    }
  }
}

// The same for a window in layout NZ, column block by column block.
PTO_SHARED inline void walk_fractals(const char* op, Run run, const TileView& tile,
                                     int64_t tile_element, const Window& window,
                                     int64_t window_element, bool load) {
  require_bound(op, tile);
  if (tile.valid_rows != window.shape[3] || tile.valid_cols != window.shape[2] * window.shape[4]) {
    fault_mismatch(op, "the global window", window.shape[3], window.shape[2] * window.shape[4],
                   tile.valid_rows, tile.valid_cols);
  }
  Operand on_chip = operand_of(tile, tile_element);
  for (int64_t block = 0; block < window.shape[2]; ++block) {
    const Operand global{window.data + block * window.stride[2] * window_element,
                         window.stride[3] * window_element, window_element, window_element};
    walk(run, load ? on_chip : global, load ? global : on_chip, constant(nullptr), window.shape[3],
         window.shape[4]);
    on_chip.data += window.shape[4] * on_chip.inner;
  }
}

template <class Global>
inline constexpr auto walk_global = Global::Fractal ? walk_fractals : walk_window;

}  // namespace sim

// Global memory to the tile's valid region, which must be the window's shape; the rest of the tile
// gets its pad value (0 if it has none).
template <class TileT, class Global>
inline void TLOAD(TileT& tile, const Global& global) {
  sim::require_one_type<TileT, Global>();
  using T = typename TileT::DType;
  sim::walk_global<Global>("TLOAD", sim::run_copy<T>, tile.view(), sizeof(T), global.window(),
                           sizeof(T), true);
  if (tile.GetValidRow() != TileT::Rows || tile.GetValidCol() != TileT::Cols) {
    const T pad = sim::pad_of<T>(TileT::Pad);
    sim::fill_outside(sim::run_fill<T>, tile.view(), sizeof(T), tile.GetValidRow(),
                      tile.GetValidCol(), &pad);
  }
}

enum class AtomicType { AtomicNone, AtomicAdd };

// The tile's valid region to global memory, converting the element type (to nearest even). With
// AtomicAdd it is added to what is there, element by element, so that no addition of another core
// is lost; for elements of up to 4 bytes.
template <class Global, class TileT>
inline void TSTORE(const Global& global, const TileT& tile) {
  using To = typename Global::DType;
  using From = typename TileT::DType;
  sim::walk_global<Global>("TSTORE", sim::move_run<To, From>(), tile.view(), sizeof(From),
                           global.window(), sizeof(To), false);
}
template <class Global, class TileT>
inline void TSTORE(const Global& global, const TileT& tile, AtomicType atomic) {
  using To = typename Global::DType;
  using From = typename TileT::DType;
  if (atomic == AtomicType::AtomicNone) return TSTORE(global, tile);
  sim::walk_global<Global>("TSTORE", sim::run_add_atomically<To, From>, tile.view(), sizeof(From),
                           global.window(), sizeof(To), false);
}

}  // namespace pto

#endif  // PTO_SIM_TRANSFER_HPP_
