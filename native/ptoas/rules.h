// The demands instruction rows make on their operands. All compare valid extents, for these are
// what an instruction works on; an extent known only at run time matches anything here and is
// checked by the instruction itself.
#pragma once

#include <array>
#include <string>

#include "instruction_table.h"

namespace ptoas::rules {

using On = std::array<std::uint8_t, 3>;

std::string same_element(OperandTypes types, const InstructionSpec& spec, On on);
std::string same_valid(OperandTypes types, const InstructionSpec& spec, On on);
// The scalar on[0] can be an operand next to the tile on[1]: of its element type, or f32 next to a
// 16-bit float, for these compute in f32.
std::string scalar_for(OperandTypes types, const InstructionSpec& spec, On on);
// on[0] is a column with one value per row of on[1].
std::string value_per_row(OperandTypes types, const InstructionSpec& spec, On on);
// on[0] is a row with one value per column of on[1].
std::string value_per_column(OperandTypes types, const InstructionSpec& spec, On on);
// on[0] = transpose of on[1].
std::string transposed(OperandTypes types, const InstructionSpec& spec, On on);
// on[0] holds the columns of on[1], then those of on[2].
std::string columns_joined(OperandTypes types, const InstructionSpec& spec, On on);
// on[0] and on[1] hold equally many values.
std::string same_count(OperandTypes types, const InstructionSpec& spec, On on);
// on[1] fits into the physical extents of on[0].
std::string fits_into(OperandTypes types, const InstructionSpec& spec, On on);
// A tile on[0] and a partition on[1] have the same extents.
std::string tile_matches_partition(OperandTypes types, const InstructionSpec& spec, On on);
// on[0] (m x n) = on[1] (m x k) times on[2] (k x n), with the accumulator's element type.
std::string matrix_product(OperandTypes types, const InstructionSpec& spec, On on);
// A scratch tile on[0] has the element type and at least the extents of on[1].
std::string scratch_for(OperandTypes types, const InstructionSpec& spec, On on);
// An accumulator on[1] may be narrowed to the 16-bit float element of on[0].
std::string same_or_narrowed(OperandTypes types, const InstructionSpec& spec, On on);
// Tile on[1] can be moved into the space of tile on[0].
std::string movable(OperandTypes types, const InstructionSpec& spec, On on);

}  // namespace ptoas::rules
