// The PTO instruction set, modelled on the CPU: tiles, global tensors and the instructions on them.
//
// Conventions that hold for every instruction unless its header says otherwise:
// - It acts on the valid region, and operands' valid regions must fit; a mismatch is a fault.
// - fp16 and bf16 compute in fp32 and round once, to nearest even, when the result is stored.
// - Integers wrap. Integer division truncates toward zero and faults on a zero divisor.
// - NaN propagates through max, min and relu.
// - `dst` may be the very tile that is a source (same address, same type). Other overlaps are only
//   allowed where a comment says so.
// - The physical order inside fractal boxes is not modelled: boxed tiles are stored row by row.
#ifndef PTO_PTO_INST_HPP_
#define PTO_PTO_INST_HPP_

#include "pto/sim/bitwise.hpp"
#include "pto/sim/convert.hpp"
#include "pto/sim/elementwise.hpp"
#include "pto/sim/expand.hpp"
#include "pto/sim/global_tensor.hpp"
#include "pto/sim/matmul.hpp"
#include "pto/sim/moves.hpp"
#include "pto/sim/reduce.hpp"
#include "pto/sim/remainder.hpp"
#include "pto/sim/scalar_ops.hpp"
#include "pto/sim/select.hpp"
#include "pto/sim/tile.hpp"
#include "pto/sim/transfer.hpp"
#include "pto/sim/trigonometry.hpp"

#endif  // PTO_PTO_INST_HPP_
