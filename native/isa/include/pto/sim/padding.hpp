// What is written to a tile outside its valid region.
#ifndef PTO_SIM_PADDING_HPP_
#define PTO_SIM_PADDING_HPP_

#include "pto/sim/loops.hpp"

namespace pto::sim {

template <class T>
inline T pad_of(PadValue pad) noexcept {
  switch (pad) {
    case PadValue::Max:
      return highest<T>();
    case PadValue::Min:
      return lowest<T>();
    case PadValue::Null:
    case PadValue::Zero:
      break;
  }
  return static_cast<T>(0);
}

// Fills everything outside the first `rows` rows and `cols` columns.
PTO_SHARED inline void fill_outside(Run fill, const TileView& tile, int64_t element, int64_t rows,
                                    int64_t cols, const void* value) {
  const Operand all = operand_of(tile, element);
  Operand right = all;
  right.data += cols * all.inner;
  walk(fill, right, right, constant(value), rows, tile.cols - cols);
  Operand below = all;
  below.data += rows * all.outer;
  walk(fill, below, below, constant(value), tile.rows - rows, tile.cols);
}

}  // namespace pto::sim

#endif  // PTO_SIM_PADDING_HPP_
