#include "instruction_table.h"

#include "instruction_forms.h"

namespace ptoas {
namespace {

// Rows of one mnemonic stand together.
constexpr InstructionSpec kInstructions[] = {
    // Between global and on-chip memory.
    {"pto.tload",
     "TLOAD",
     header::kTransfer,
     "01",
     {tile("tile", kStored, kVec | bit(Space::Mat)), partition("partition")},
     {{{rules::same_element, {0, 1}}, {rules::tile_matches_partition, {0, 1}}}}},
    {"pto.tstore",
     "TSTORE",
     header::kTransfer,
     "01",
     {partition("partition"), tile("tile", kStored, kAnySpace)},
     {{{rules::same_or_narrowed, {0, 1}}, {rules::tile_matches_partition, {1, 0}}}},
     &kAtomicity},

    // Between on-chip memories and shapes.
    {"pto.tmov",
     "TMOV",
     header::kMoves,
     "01",
     {tile("result", kStored, kAnySpace), tile("source", kStored, kAnySpace)},
     {{{rules::movable, {0, 1}}, {rules::same_valid, {0, 1}}}}},
    {"pto.textract",
     "TEXTRACT",
     header::kMoves,
     "0123",
     {tile("result", kStored, kAnySpace), tile("source", kStored, kAnySpace), offset("row"),
      offset("column")},
     {{{rules::movable, {0, 1}}}}},
    {"pto.tinsert",
     "TINSERT",
     header::kMoves,
     "01234",
     {tile("result", kStored, kAnySpace), tile("target", kStored, kAnySpace),
      tile("source", kStored, kAnySpace), offset("row"), offset("column")},
     {{{rules::same_element, {0, 1}},
       {rules::same_valid, {0, 1}},
       {rules::movable, {0, 1}},
       {rules::movable, {0, 2}}}}},
    {"pto.treshape",
     "TRESHAPE",
     header::kMoves,
     "01",
     {result(kStored), tile("source", kStored)},
     {{{rules::same_element, {0, 1}}, {rules::same_count, {0, 1}}}}},
    {"pto.tconcat",
     "TCONCAT",
     header::kMoves,
     "012",
     {result(kStored), tile("left operand", kStored), tile("right operand", kStored)},
     {{{rules::same_element, {1, 2}},
       {rules::same_element, {1, 0}},
       {rules::columns_joined, {0, 1, 2}}}}},
    {"pto.ttrans",
     "TTRANS",
     header::kMoves,
     "01",
     {tile("result", kStored, kVec | bit(Space::Mat)),
      tile("source", kStored, kVec | bit(Space::Mat))},
     {{{rules::same_element, {1, 0}}, {rules::movable, {0, 1}}, {rules::transposed, {0, 1}}}}},
    {"pto.ttrans",
     "TTRANS",
     header::kMoves,
     "012",
     {result(kStored), tile("source", kStored), tile("scratch tile", kStored)},
     {{{rules::same_element, {1, 0}}, {rules::transposed, {0, 1}}, {rules::scratch_for, {2, 1}}}}},
    {"pto.tfillpad",
     "TFILLPAD",
     header::kMoves,
     "01",
     {result(kStored), tile("source", kStored)},
     {{{rules::same_element, {0, 1}}, {rules::fits_into, {0, 1}}}}},
    {"pto.texpands",
     "TEXPANDS",
     header::kElementwise,
     "01",
     {result(kStored), scalar(kStored)},
     {{{rules::scalar_for, {1, 0}}}}},
    {"pto.tcvt",
     "TCVT",
     header::kConvert,
     "01",
     {result(kStored), tile("source", kStored)},
     {{{rules::same_valid, {0, 1}}}},
     &kRounding},

    // Element by element.
    binary("pto.tadd", "TADD", header::kElementwise, kAny),
    binary("pto.tsub", "TSUB", header::kElementwise, kAny),
    binary("pto.tmul", "TMUL", header::kElementwise, kAny),
    binary("pto.tdiv", "TDIV", header::kElementwise, kAny),
    binary("pto.tmax", "TMAX", header::kElementwise, kAny),
    binary("pto.tmin", "TMIN", header::kElementwise, kAny),
    tile_scalar("pto.tadds", "TADDS", header::kElementwise, kAny),
    tile_scalar("pto.tsubs", "TSUBS", header::kElementwise, kAny),
    scalar_tile("pto.tsubs", "TSUBS", header::kElementwise, kAny),
    tile_scalar("pto.tmuls", "TMULS", header::kElementwise, kAny),
    tile_scalar("pto.tdivs", "TDIVS", header::kElementwise, kAny),
    scalar_tile("pto.tdivs", "TDIVS", header::kElementwise, kAny),
    tile_scalar("pto.tmaxs", "TMAXS", header::kElementwise, kAny),
    tile_scalar("pto.tmins", "TMINS", header::kElementwise, kAny),
    binary("pto.tfmod", "TFMOD", header::kRemainder, kAny),
    tile_scalar("pto.tfmods", "TFMODS", header::kRemainder, kAny),
    binary("pto.tand", "TAND", header::kBitwise, kBits),
    binary("pto.tor", "TOR", header::kBitwise, kBits),
    binary("pto.txor", "TXOR", header::kBitwise, kBits),
    binary("pto.tshl", "TSHL", header::kBitwise, kIntegers),
    binary("pto.tshr", "TSHR", header::kBitwise, kIntegers),
    tile_scalar("pto.tands", "TANDS", header::kBitwise, kBits),
    tile_scalar("pto.tors", "TORS", header::kBitwise, kBits),
    tile_scalar("pto.txors", "TXORS", header::kBitwise, kBits),
    tile_scalar("pto.tshls", "TSHLS", header::kBitwise, kIntegers),
    tile_scalar("pto.tshrs", "TSHRS", header::kBitwise, kIntegers),
    unary("pto.tnot", "TNOT", header::kBitwise, kBits),
    {"pto.tcmp",
     "TCMP",
     header::kSelect,
     "012",
     {result(kMask), tile("left operand", kAny), tile("right operand", kAny)},
     {{{rules::same_element, {1, 2}}, {rules::same_valid, {1, 2}}, {rules::same_valid, {1, 0}}}},
     &kComparison},
    {"pto.tcmps",
     "TCMPS",
     header::kSelect,
     "012",
     {result(kMask), tile("tile", kAny), scalar(kAny)},
     {{{rules::scalar_for, {2, 1}}, {rules::same_valid, {1, 0}}}},
     &kComparison},
    {"pto.tsel",
     "TSEL",
     header::kSelect,
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
     header::kSelect,
     "0123",
     {result(kStored), tile("mask", kMask), tile("tile", kStored), scalar(kStored)},
     {{{rules::scalar_for, {3, 2}},
       {rules::same_element, {2, 0}},
       {rules::same_valid, {1, 2}},
       {rules::same_valid, {1, 0}}}}},
    {"pto.tsels",
     "TSELS",
     header::kSelect,
     "0123",
     {result(kStored), tile("mask", kMask), scalar(kStored), tile("tile", kStored)},
     {{{rules::scalar_for, {2, 3}},
       {rules::same_element, {3, 0}},
       {rules::same_valid, {1, 3}},
       {rules::same_valid, {1, 0}}}}},
    tile_scalar("pto.tlrelu", "TLRELU", header::kElementwise, kFloats),
    {"pto.tprelu",
     "TPRELU",
     header::kElementwise,
     "0123",
     {result(kFloats), tile("tile", kFloats), tile("slopes", kFloats),
      tile("scratch tile", kFloats)},
     {{{rules::same_element, {1, 2}},
       {rules::same_element, {1, 0}},
       {rules::same_valid, {1, 2}},
       {rules::same_valid, {1, 0}},
       {rules::scratch_for, {3, 1}}}}},
    unary("pto.texp", "TEXP", header::kElementwise, kFloats),
    unary("pto.tlog", "TLOG", header::kElementwise, kFloats),
    unary("pto.tsqrt", "TSQRT", header::kElementwise, kFloats),
    unary("pto.trsqrt", "TRSQRT", header::kElementwise, kFloats),
    unary("pto.trecip", "TRECIP", header::kElementwise, kFloats),
    unary("pto.tsin", "TSIN", header::kTrigonometry, kFloats),
    unary("pto.tcos", "TCOS", header::kTrigonometry, kFloats),
    unary("pto.tneg", "TNEG", header::kElementwise, kSigned),
    unary("pto.tabs", "TABS", header::kElementwise, kSigned),
    unary("pto.trelu", "TRELU", header::kElementwise, kSigned),

    // Along rows and columns.
    row_reduction("pto.trowmax", "TROWMAX", header::kReduce, kAny),
    row_reduction("pto.trowmin", "TROWMIN", header::kReduce, kAny),
    row_reduction("pto.trowsum", "TROWSUM", header::kReduce, kAny),
    row_reduction("pto.trowprod", "TROWPROD", header::kReduce, kAny),
    column_reduction("pto.tcolmax", "TCOLMAX", header::kReduce, kAny),
    column_reduction("pto.tcolmin", "TCOLMIN", header::kReduce, kAny),
    column_reduction("pto.tcolsum", "TCOLSUM", header::kReduce, kAny),
    column_reduction("pto.tcolprod", "TCOLPROD", header::kReduce, kAny),
    {"pto.trowexpand",
     "TROWEXPAND",
     header::kExpand,
     "01",
     {result(kStored), tile("per-row operand", kStored)},
     {{{rules::same_element, {0, 1}}, {rules::value_per_row, {1, 0}}}}},
    with_row_values("pto.trowexpandadd", "TROWEXPANDADD", header::kExpand, kAny),
    with_row_values("pto.trowexpandsub", "TROWEXPANDSUB", header::kExpand, kAny),
    with_row_values("pto.trowexpandmul", "TROWEXPANDMUL", header::kExpand, kAny),
    with_row_values("pto.trowexpanddiv", "TROWEXPANDDIV", header::kExpand, kAny),
    with_row_values("pto.trowexpandmax", "TROWEXPANDMAX", header::kExpand, kAny),
    with_row_values("pto.trowexpandmin", "TROWEXPANDMIN", header::kExpand, kAny),
    with_row_values("pto.trowexpandexpdif", "TROWEXPANDEXPDIF", header::kExpand, kFloats),
    {"pto.tcolexpand",
     "TCOLEXPAND",
     header::kExpand,
     "01",
     {result(kStored), tile("per-column operand", kStored)},
     {{{rules::same_element, {0, 1}}, {rules::value_per_column, {1, 0}}}}},
    with_column_values("pto.tcolexpandadd", "TCOLEXPANDADD", header::kExpand, kAny),
    with_column_values("pto.tcolexpandsub", "TCOLEXPANDSUB", header::kExpand, kAny),
    with_column_values("pto.tcolexpandmul", "TCOLEXPANDMUL", header::kExpand, kAny),
    with_column_values("pto.tcolexpanddiv", "TCOLEXPANDDIV", header::kExpand, kAny),
    with_column_values("pto.tcolexpandmax", "TCOLEXPANDMAX", header::kExpand, kAny),
    with_column_values("pto.tcolexpandmin", "TCOLEXPANDMIN", header::kExpand, kAny),

    // Matrix products.
    {"pto.tmatmul",
     "TMATMUL",
     header::kMatmul,
     "012",
     {tile("accumulator", kSums, bit(Space::Acc)), tile("left operand", kFactors, bit(Space::Left)),
      tile("right operand", kFactors, bit(Space::Right))},
     {{{rules::matrix_product, {0, 1, 2}}}}},
    {"pto.tmatmul.acc",
     "TMATMUL_ACC",
     header::kMatmul,
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
