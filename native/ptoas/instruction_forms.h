// Sets of elements and spaces, and the forms that many instructions share.
#pragma once

#include "instruction_table.h"
#include "rules.h"

namespace ptoas {

constexpr Elements kFloats = bit(Element::F32) | bit(Element::F16) | bit(Element::BF16);
constexpr Elements kSigned =
    kFloats | bit(Element::I8) | bit(Element::I16) | bit(Element::I32) | bit(Element::I64);
constexpr Elements kUnsigned =
    bit(Element::UI8) | bit(Element::UI16) | bit(Element::UI32) | bit(Element::UI64);
constexpr Elements kAny = kSigned | kUnsigned;
constexpr Elements kIntegers = kAny & ~kFloats;
constexpr Elements kMask = bit(Element::I1);
constexpr Elements kBits = kIntegers | kMask;
constexpr Elements kStored = kAny | kMask;
constexpr Elements kFactors =
    kFloats | bit(Element::I8) | bit(Element::I16) | bit(Element::I32) | bit(Element::UI8);
constexpr Elements kSums = bit(Element::F32) | bit(Element::I32);

constexpr Spaces kVec = bit(Space::Vec);
constexpr Spaces kAnySpace = kVec | bit(Space::Mat) | bit(Space::Left) | bit(Space::Right) |
                             bit(Space::Acc) | bit(Space::Bias);

constexpr OperandSpec tile(std::string_view role, Elements elements, Spaces spaces = kVec) {
  return {OperandKind::Tile, role, spaces, elements};
}
constexpr OperandSpec partition(std::string_view role) {
  return {OperandKind::Partition, role, 0, kStored};
}
constexpr OperandSpec scalar(Elements elements) {
  return {OperandKind::Scalar, "scalar", 0, elements};
}

constexpr OperandSpec offset(std::string_view role) {
  return {OperandKind::Scalar, role, 0, bit(Element::Index)};
}

constexpr OperandSpec result(Elements elements) { return tile("result", elements); }

constexpr AttributeValue kRoundModes[] = {
    {"NONE", "pto::RoundMode::CAST_NONE"},   {"RINT", "pto::RoundMode::CAST_RINT"},
    {"ROUND", "pto::RoundMode::CAST_ROUND"}, {"FLOOR", "pto::RoundMode::CAST_FLOOR"},
    {"CEIL", "pto::RoundMode::CAST_CEIL"},   {"TRUNC", "pto::RoundMode::CAST_TRUNC"},
    {"ODD", "pto::RoundMode::CAST_ODD"},
};
constexpr AttributeValue kCompareModes[] = {
    {"EQ", "pto::CmpMode::EQ"}, {"NE", "pto::CmpMode::NE"}, {"LT", "pto::CmpMode::LT"},
    {"LE", "pto::CmpMode::LE"}, {"GT", "pto::CmpMode::GT"}, {"GE", "pto::CmpMode::GE"},
};
constexpr AttributeSpec kComparison{"cmpMode", "cmp", kCompareModes, 0};
constexpr AttributeSpec kRounding{"rmode", "round_mode", kRoundModes, 1};

constexpr AttributeValue kAtomicTypes[] = {
    {"atomic_none", ""},
    {"atomic_add", "pto::AtomicType::AtomicAdd",
     kFloats | bit(Element::I32) | bit(Element::I16) | bit(Element::I8)},
};
constexpr AttributeSpec kAtomicity{"atomicType", "atomic_type", kAtomicTypes};

// Shapes that many rows share. Operand 0 is the destination.

constexpr InstructionSpec unary(std::string_view mnemonic, std::string_view call,
                                std::string_view header, Elements on) {
  return {mnemonic,
          call,
          header,
          "01",
          {result(on), tile("source", on)},
          {{{rules::same_element, {0, 1}}, {rules::same_valid, {0, 1}}}}};
}

constexpr InstructionSpec binary(std::string_view mnemonic, std::string_view call,
                                 std::string_view header, Elements on) {
  return {mnemonic,
          call,
          header,
          "012",
          {result(on), tile("left operand", on), tile("right operand", on)},
          {{{rules::same_element, {1, 2}},
            {rules::same_valid, {1, 2}},
            {rules::same_element, {1, 0}},
            {rules::same_valid, {1, 0}}}}};
}

constexpr InstructionSpec tile_scalar(std::string_view mnemonic, std::string_view call,
                                      std::string_view header, Elements on) {
  return {
      mnemonic,
      call,
      header,
      "012",
      {result(on), tile("tile", on), scalar(on)},
      {{{rules::scalar_for, {2, 1}}, {rules::same_element, {1, 0}}, {rules::same_valid, {1, 0}}}}};
}

constexpr InstructionSpec scalar_tile(std::string_view mnemonic, std::string_view call,
                                      std::string_view header, Elements on) {
  return {
      mnemonic,
      call,
      header,
      "012",
      {result(on), scalar(on), tile("tile", on)},
      {{{rules::scalar_for, {1, 2}}, {rules::same_element, {2, 0}}, {rules::same_valid, {2, 0}}}}};
}

constexpr InstructionSpec row_reduction(std::string_view mnemonic, std::string_view call,
                                        std::string_view header, Elements on) {
  return {mnemonic,
          call,
          header,
          "012",
          {result(on), tile("source", on), tile("scratch tile", on)},
          {{{rules::same_element, {1, 0}},
            {rules::value_per_row, {0, 1}},
            {rules::scratch_for, {2, 1}}}}};
}

constexpr InstructionSpec column_reduction(std::string_view mnemonic, std::string_view call,
                                           std::string_view header, Elements on) {
  return {mnemonic,
          call,
          header,
          "01",
          {result(on), tile("source", on)},
          {{{rules::same_element, {1, 0}}, {rules::value_per_column, {0, 1}}}}};
}

constexpr InstructionSpec with_row_values(std::string_view mnemonic, std::string_view call,
                                          std::string_view header, Elements on) {
  return {mnemonic,
          call,
          header,
          "012",
          {result(on), tile("tile", on), tile("per-row operand", on)},
          {{{rules::same_element, {1, 2}},
            {rules::value_per_row, {2, 1}},
            {rules::same_element, {1, 0}},
            {rules::same_valid, {1, 0}}}}};
}

constexpr InstructionSpec with_column_values(std::string_view mnemonic, std::string_view call,
                                             std::string_view header, Elements on) {
  return {mnemonic,
          call,
          header,
          "012",
          {result(on), tile("tile", on), tile("per-column operand", on)},
          {{{rules::same_element, {1, 2}},
            {rules::value_per_column, {2, 1}},
            {rules::same_element, {1, 0}},
            {rules::same_valid, {1, 0}}}}};
}

}  // namespace ptoas
