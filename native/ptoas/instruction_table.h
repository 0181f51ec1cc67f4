// One row per form of a tile instruction. The parser asks whether a mnemonic exists, the verifier
// checks a use against its row, the emitter writes the row's call: to add an instruction, add a
// row.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "headers.h"
#include "types.h"

namespace ptoas {

enum class OperandKind : std::uint8_t { None, Tile, Partition, Scalar };

struct OperandSpec {
  OperandKind kind = OperandKind::None;
  std::string_view role;  // what messages call it
  Spaces spaces = 0;      // of a tile
  Elements elements = 0;
};

// The destination and at most four sources.
constexpr std::size_t kMaxOperands = 5;

// The types of an instruction's operands: the destination is 0, the sources follow.
using OperandTypes = std::span<const Type* const>;

struct InstructionSpec;

// A demand on up to three operands, by their index. Returns what is wrong, or "".
using RuleCheck = std::string (*)(OperandTypes types, const InstructionSpec& spec,
                                  std::array<std::uint8_t, 3> on);

struct Rule {
  RuleCheck check = nullptr;
  std::array<std::uint8_t, 3> on{};
};

constexpr std::size_t kMaxRules = 5;

struct AttributeValue {
  std::string_view name;                         // in .pto text
  std::string_view cpp;                          // the argument in emitted text; "": none
  Elements result = static_cast<Elements>(~0u);  // what the destination may hold
};

struct AttributeSpec {
  std::string_view name;  // "rmode"
  std::string_view kind;  // "round_mode"
  std::span<const AttributeValue> values;
  std::size_t fallback = 0;  // index of the value meant when the attribute is absent
};

struct InstructionSpec {
  std::string_view mnemonic;
  std::string_view call;    // in namespace pto
  std::string_view header;  // that declares the call
  // Arguments of the call: indices into the operands.
  std::string_view arguments;
  std::array<OperandSpec, kMaxOperands> operands;
  std::array<Rule, kMaxRules> rules{};
  const AttributeSpec* attribute = nullptr;  // its value may be the call's last argument

  std::size_t sources() const;
};

// "pto.tadds ins(tile, scalar) outs(tile)"
std::string form_text(const InstructionSpec& spec);
// The same with what each operand may be: "pto.tmatmul ins(tile{left: f32, f16}, ...) ..."
std::string signature_text(const InstructionSpec& spec);

std::span<const InstructionSpec> instruction_table();

// The rows of a mnemonic, which stand together; empty if there is no such instruction.
std::span<const InstructionSpec> instructions_named(std::string_view mnemonic);

}  // namespace ptoas
