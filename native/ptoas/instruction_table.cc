#include "instruction_table.h"

#include "instruction_forms.h"

namespace ptoas {
namespace {

// Rows of one mnemonic stand together.
constexpr InstructionSpec kInstructions[] = {
    // Between global and on-chip memory.
    {"pto.tload",
     "TLOAD",
     "01",
     {tile("tile", kStored, kVec | bit(Space::Mat)), partition("partition")},
     {{{rules::same_element, {0, 1}}, {rules::tile_matches_partition, {0, 1}}}}},
    {"pto.tstore",
     "TSTORE",
     "01",
     {partition("partition"), tile("tile", kStored, kVec | bit(Space::Mat) | bit(Space::Acc))},
     {{{rules::same_or_narrowed, {0, 1}}, {rules::tile_matches_partition, {1, 0}}}},
     &kAtomicity},

    // Between on-chip memories and shapes.
    {"pto.tmov",
     "TMOV",
     "01",
     {tile("result", kStored, kAnySpace), tile("source", kStored, kAnySpace)},
     {{{rules::movable, {0, 1}}, {rules::same_valid, {0, 1}}}}},
    {"pto.textract",
     "TEXTRACT",
     "0123",
     {tile("result", kStored, kAnySpace), tile("source", kStored, kAnySpace), offset("row"),
      offset("column")},
     {{{rules::movable, {0, 1}}}}},
    {"pto.tinsert",
     "TINSERT",
     "01234",
     {tile("result", kStored, kAnySpace), tile("target", kStored, kAnySpace),
      tile("source", kStored, kAnySpace), offset("row"), offset("column")},
     {{{rules::same_element, {0, 1}},
       {rules::same_valid, {0, 1}},
       {rules::movable, {0, 1}},
       {rules::movable, {0, 2}}}}},
    {"pto.treshape",
     "TRESHAPE",
     "01",
     {result(kStored), tile("source", kStored)},
     {{{rules::same_element, {0, 1}}, {rules::same_count, {0, 1}}}}},
    {"pto.tconcat",
     "TCONCAT",
     "012",
     {result(kStored), tile("left operand", kStored), tile("right operand", kStored)},
     {{{rules::same_element, {1, 2}},
       {rules::same_element, {1, 0}},
       {rules::columns_joined, {0, 1, 2}}}}},
    {"pto.ttrans",
     "TTRANS",
     "01",
     {tile("result", kStored, kVec | bit(Space::Mat)),
      tile("source", kStored, kVec | bit(Space::Mat))},
     {{{rules::same_element, {1, 0}}, {rules::movable, {0, 1}}, {rules::transposed, {0, 1}}}}},
    {"pto.ttrans",
     "TTRANS",
     "012",
     {result(kStored), tile("source", kStored), tile("scratch tile", kStored)},
     {{{rules::same_element, {1, 0}}, {rules::transposed, {0, 1}}, {rules::scratch_for, {2, 1}}}}},
    {"pto.tfillpad",
     "TFILLPAD",
     "01",
     {result(kStored), tile("source", kStored)},
     {{{rules::same_element, {0, 1}}, {rules::fits_into, {0, 1}}}}},
    {"pto.texpands",
     "TEXPANDS",
     "01",
     {result(kStored), scalar(kStored)},
     {{{rules::scalar_for, {1, 0}}}}},
    {"pto.tcvt",
     "TCVT",
     "01",
     {result(kStored), tile("source", kStored)},
     {{{rules::same_valid, {0, 1}}}},
     &kRounding},

    // Element by element.
    binary("pto.tadd", "TADD", kAny),
    binary("pto.tsub", "TSUB", kAny),
    binary("pto.tmul", "TMUL", kAny),
    binary("pto.tdiv", "TDIV", kAny),
    binary("pto.tmax", "TMAX", kAny),
    binary("pto.tmin", "TMIN", kAny),
    tile_scalar("pto.tadds", "TADDS", kAny),
    tile_scalar("pto.tsubs", "TSUBS", kAny),
    scalar_tile("pto.tsubs", "TSUBS", kAny),
    tile_scalar("pto.tmuls", "TMULS", kAny),
    tile_scalar("pto.tdivs", "TDIVS", kAny),
    scalar_tile("pto.tdivs", "TDIVS", kAny),
    tile_scalar("pto.tmaxs", "TMAXS", kAny),
    tile_scalar("pto.tmins", "TMINS", kAny),
    binary("pto.tfmod", "TFMOD", kAny),
    tile_scalar("pto.tfmods", "TFMODS", kAny),
    binary("pto.tand", "TAND", kBits),
    binary("pto.tor", "TOR", kBits),
    binary("pto.txor", "TXOR", kBits),
    binary("pto.tshl", "TSHL", kIntegers),
    binary("pto.tshr", "TSHR", kIntegers),
    tile_scalar("pto.tands", "TANDS", kBits),
    tile_scalar("pto.tors", "TORS", kBits),
    tile_scalar("pto.txors", "TXORS", kBits),
    tile_scalar("pto.tshls", "TSHLS", kIntegers),
    tile_scalar("pto.tshrs", "TSHRS", kIntegers),
    unary("pto.tnot", "TNOT", kBits),
    {"pto.tcmp",
     "TCMP",
     "012",
     {result(kMask), tile("left operand", kAny), tile("right operand", kAny)},
     {{{rules::same_element, {1, 2}}, {rules::same_valid, {1, 2}}, {rules::same_valid, {1, 0}}}},
     &kComparison},
    {"pto.tcmps",
     "TCMPS",
     "012",
     {result(kMask), tile("tile", kAny), scalar(kAny)},
     {{{rules::scalar_for, {2, 1}}, {rules::same_valid, {1, 0}}}},
     &kComparison},
    {"pto.tsel",
     "TSEL",
     "0123",
     {result(kStored), tile("mask", kMask), tile("left operand", kStored),
      tile("right operand", kStored)},
     {{{rules::same_element, {2, 3}},
       {rules::same_element, {2, 0}},
       {rules::same_valid, {1, 2}},
       {rules::same_valid, {2, 3}},
       {rules::same_valid, {1, 0}}}}},
    {"pto.tsels",
     "TSELS",
     "0123",
     {result(kStored), tile("mask", kMask), tile("tile", kStored), scalar(kStored)},
     {{{rules::scalar_for, {3, 2}},
       {rules::same_element, {2, 0}},
       {rules::same_valid, {1, 2}},
       {rules::same_valid, {1, 0}}}}},
    {"pto.tsels",
     "TSELS",
     "0123",
     {result(kStored), tile("mask", kMask), scalar(kStored), tile("tile", kStored)},
     {{{rules::scalar_for, {2, 3}},
       {rules::same_element, {3, 0}},
       {rules::same_valid, {1, 3}},
       {rules::same_valid, {1, 0}}}}},
    tile_scalar("pto.tlrelu", "TLRELU", kFloats),
    {"pto.tprelu",
     "TPRELU",
     "0123",
     {result(kFloats), tile("tile", kFloats), tile("slopes", kFloats),
      tile("scratch tile", kFloats)},
     {{{rules::same_element, {1, 2}},
       {rules::same_element, {1, 0}},
       {rules::same_valid, {1, 2}},
       {rules::same_valid, {1, 0}},
       {rules::scratch_for, {3, 1}}}}},
    unary("pto.texp", "TEXP", kFloats),
    unary("pto.tlog", "TLOG", kFloats),
    unary("pto.tsqrt", "TSQRT", kFloats),
    unary("pto.trsqrt", "TRSQRT", kFloats),
    unary("pto.trecip", "TRECIP", kFloats),
    unary("pto.tsin", "TSIN", kFloats),
    unary("pto.tcos", "TCOS", kFloats),
    unary("pto.tneg", "TNEG", kSigned),
    unary("pto.tabs", "TABS", kSigned),
    unary("pto.trelu", "TRELU", kSigned),

    // Along rows and columns.
    row_reduction("pto.trowmax", "TROWMAX", kAny),
    row_reduction("pto.trowmin", "TROWMIN", kAny),
    row_reduction("pto.trowsum", "TROWSUM", kAny),
    row_reduction("pto.trowprod", "TROWPROD", kAny),
    column_reduction("pto.tcolmax", "TCOLMAX", kAny),
    column_reduction("pto.tcolmin", "TCOLMIN", kAny),
    column_reduction("pto.tcolsum", "TCOLSUM", kAny),
    column_reduction("pto.tcolprod", "TCOLPROD", kAny),
    {"pto.trowexpand",
     "TROWEXPAND",
     "01",
     {result(kStored), tile("per-row operand", kStored)},
     {{{rules::same_element, {0, 1}}, {rules::value_per_row, {1, 0}}}}},
    with_row_values("pto.trowexpandadd", "TROWEXPANDADD", kAny),
    with_row_values("pto.trowexpandsub", "TROWEXPANDSUB", kAny),
    with_row_values("pto.trowexpandmul", "TROWEXPANDMUL", kAny),
    with_row_values("pto.trowexpanddiv", "TROWEXPANDDIV", kAny),
    with_row_values("pto.trowexpandmax", "TROWEXPANDMAX", kAny),
    with_row_values("pto.trowexpandmin", "TROWEXPANDMIN", kAny),
    with_row_values("pto.trowexpandexpdif", "TROWEXPANDEXPDIF", kFloats),
    {"pto.tcolexpand",
     "TCOLEXPAND",
     "01",
     {result(kStored), tile("per-column operand", kStored)},
     {{{rules::same_element, {0, 1}}, {rules::value_per_column, {1, 0}}}}},
    with_column_values("pto.tcolexpandadd", "TCOLEXPANDADD", kAny),
    with_column_values("pto.tcolexpandsub", "TCOLEXPANDSUB", kAny),
    with_column_values("pto.tcolexpandmul", "TCOLEXPANDMUL", kAny),
    with_column_values("pto.tcolexpanddiv", "TCOLEXPANDDIV", kAny),
    with_column_values("pto.tcolexpandmax", "TCOLEXPANDMAX", kAny),
    with_column_values("pto.tcolexpandmin", "TCOLEXPANDMIN", kAny),

    // Matrix products.
    {"pto.tmatmul",
     "TMATMUL",
     "012",
     {tile("accumulator", kSums, bit(Space::Acc)), tile("left operand", kFactors, bit(Space::Left)),
      tile("right operand", kFactors, bit(Space::Right))},
     {{{rules::matrix_product, {0, 1, 2}}}}},
    {"pto.tmatmul.acc",
     "TMATMUL_ACC",
     "0123",
     {tile("accumulator", kSums, bit(Space::Acc)),
      tile("incoming accumulator", kSums, bit(Space::Acc)),
      tile("left operand", kFactors, bit(Space::Left)),
      tile("right operand", kFactors, bit(Space::Right))},
     {{{rules::same_element, {0, 1}},
       {rules::same_valid, {0, 1}},
       {rules::matrix_product, {0, 2, 3}}}}},
};

std::string_view kind_name(const OperandSpec& operand) {
  switch (operand.kind) {
    case OperandKind::Tile:
      return "tile";
    case OperandKind::Partition:
      return "partition";
    case OperandKind::Scalar:
      return "scalar";
    case OperandKind::None:
      break;
  }
  return "nothing";
}

template <class Describe>
std::string form(const InstructionSpec& spec, Describe describe) {
  std::string out = std::string(spec.mnemonic) + " ins(";
  for (std::size_t i = 1; i <= spec.sources(); ++i) {
    if (i > 1) out += ", ";
    out += describe(spec.operands[i]);
  }
  return out + ") outs(" + describe(spec.operands[0]) + ")";
}

}  // namespace

std::size_t InstructionSpec::sources() const {
  std::size_t count = 0;
  while (count + 1 < operands.size() && operands[count + 1].kind != OperandKind::None) ++count;
  return count;
}

std::string form_text(const InstructionSpec& spec) {
  return form(spec, [](const OperandSpec& operand) { return std::string(kind_name(operand)); });
}

std::string signature_text(const InstructionSpec& spec) {
  return form(spec, [](const OperandSpec& operand) {
    const std::string where = operand.spaces == 0 ? "" : names_of(operand.spaces) + ": ";
    return std::string(kind_name(operand)) + "{" + where + names_of(operand.elements) + "}";
  });
}

std::span<const InstructionSpec> instruction_table() { return kInstructions; }

std::span<const InstructionSpec> instructions_named(std::string_view mnemonic) {
  const std::span<const InstructionSpec> all = kInstructions;
  std::size_t first = 0;
  while (first < all.size() && all[first].mnemonic != mnemonic) ++first;
  std::size_t last = first;
  while (last < all.size() && all[last].mnemonic == mnemonic) ++last;
  return all.subspan(first, last - first);
}

}  // namespace ptoas
