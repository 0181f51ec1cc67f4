#include "scalar_table.h"

#include "headers.h"

namespace ptoas {
namespace {

constexpr Elements kSigned = bit(Element::Index) | bit(Element::I64) | bit(Element::I32) |
                             bit(Element::I16) | bit(Element::I8);
constexpr Elements kUnsigned =
    bit(Element::UI8) | bit(Element::UI16) | bit(Element::UI32) | bit(Element::UI64);
// Operations called signed act on unsigned types as their values have it: 200 / 100 is 2, 200 >
// 100.
constexpr Elements kInt = kSigned | kUnsigned;
constexpr Elements kBit = bit(Element::I1);
constexpr Elements kFloat = bit(Element::F32) | bit(Element::F16) | bit(Element::BF16);
constexpr Elements kAny = kInt | kBit | kFloat;

// C++ leaves signed overflow, division by zero and oversized float-to-int conversions undefined;
// the calls give each one meaning (pto/sim/scalar_ops.hpp).
constexpr ComparePredicate kIntegerPredicates[] = {
    {"eq", "$0 == $1"},
    {"ne", "$0 != $1"},
    {"slt", "$0 < $1"},
    {"sle", "$0 <= $1"},
    {"sgt", "$0 > $1"},
    {"sge", "$0 >= $1"},
    {"ult", "pto::scalar::bits<$S>($0) < pto::scalar::bits<$S>($1)"},
    {"ule", "pto::scalar::bits<$S>($0) <= pto::scalar::bits<$S>($1)"},
    {"ugt", "pto::scalar::bits<$S>($0) > pto::scalar::bits<$S>($1)"},
    {"uge", "pto::scalar::bits<$S>($0) >= pto::scalar::bits<$S>($1)"},
};

constexpr ComparePredicate kFloatPredicates[] = {
    {"oeq", "pto::scalar::real<$S>($0) == pto::scalar::real<$S>($1)"},
    {"une", "pto::scalar::real<$S>($0) != pto::scalar::real<$S>($1)"},
    {"olt", "pto::scalar::real<$S>($0) < pto::scalar::real<$S>($1)"},
    {"ole", "pto::scalar::real<$S>($0) <= pto::scalar::real<$S>($1)"},
    {"ogt", "pto::scalar::real<$S>($0) > pto::scalar::real<$S>($1)"},
    {"oge", "pto::scalar::real<$S>($0) >= pto::scalar::real<$S>($1)"},
};

constexpr ScalarSpec plain(std::string_view mnemonic, Elements on, std::string_view cpp,
                           bool faults = false) {
  return {mnemonic, ScalarForm::Plain, 2, on, 0, cpp, faults};
}

constexpr ScalarSpec convert(std::string_view mnemonic, Elements from, Elements to,
                             std::string_view cpp, Widths widths = Widths::Any) {
  return {mnemonic, ScalarForm::Convert, 1, from, to, cpp, false, widths};
}

constexpr ScalarSpec kScalars[] = {
    plain("arith.addi", kInt, "pto::scalar::addi<$T>($0, $1)"),
    plain("arith.subi", kInt, "pto::scalar::subi<$T>($0, $1)"),
    plain("arith.muli", kInt, "pto::scalar::muli<$T>($0, $1)"),
    plain("arith.divsi", kInt, "pto::scalar::divsi<$T>($0, $1)", true),
    plain("arith.floordivsi", kInt, "pto::scalar::floordivsi<$T>($0, $1)", true),
    plain("arith.ceildivsi", kInt, "pto::scalar::ceildivsi<$T>($0, $1)", true),
    plain("arith.remsi", kInt, "pto::scalar::remsi<$T>($0, $1)", true),
    plain("arith.shli", kInt, "pto::scalar::shli<$T>($0, $1)"),
    plain("arith.shrsi", kInt, "pto::scalar::shrsi<$T>($0, $1)"),
    plain("math.ipowi", kInt, "pto::scalar::ipowi<$T>($0, $1)", true),
    plain("arith.minsi", kInt, "pto::scalar::minsi<$T>($0, $1)"),
    plain("arith.maxsi", kInt, "pto::scalar::maxsi<$T>($0, $1)"),
    plain("arith.andi", kInt | kBit, "static_cast<$T>($0 & $1)"),
    plain("arith.ori", kInt | kBit, "static_cast<$T>($0 | $1)"),
    plain("arith.xori", kInt | kBit, "static_cast<$T>($0 ^ $1)"),

    plain("arith.addf", kFloat, "pto::scalar::addf<$T>($0, $1)"),
    plain("arith.subf", kFloat, "pto::scalar::subf<$T>($0, $1)"),
    plain("arith.mulf", kFloat, "pto::scalar::mulf<$T>($0, $1)"),
    plain("arith.divf", kFloat, "pto::scalar::divf<$T>($0, $1)"),
    plain("math.powf", kFloat, "pto::scalar::powf<$T>($0, $1)"),
    plain("arith.minimumf", kFloat, "pto::scalar::minimumf<$T>($0, $1)"),
    plain("arith.maximumf", kFloat, "pto::scalar::maximumf<$T>($0, $1)"),
    {"arith.negf", ScalarForm::Plain, 1, kFloat, 0, "pto::scalar::negf<$T>($0)"},

    {"arith.cmpi", ScalarForm::Compare, 2, kInt | kBit, 0, "", false, Widths::Any,
     kIntegerPredicates},
    {"arith.cmpf", ScalarForm::Compare, 2, kFloat, 0, "", false, Widths::Any, kFloatPredicates},
    {"arith.select", ScalarForm::Select, 3, kAny, 0, "$0 ? $1 : $2"},

    convert("arith.index_cast", kInt, kInt, "static_cast<$T>($0)"),
    convert("arith.extsi", kSigned, kSigned, "static_cast<$T>($0)", Widths::Grow),
    convert("arith.extui", kInt | kBit, kInt, "static_cast<$T>(pto::scalar::bits<$S>($0))",
            Widths::Grow),
    convert("arith.trunci", kInt, kInt | kBit, "pto::scalar::trunci<$T, $S>($0)", Widths::Shrink),
    convert("arith.sitofp", kSigned, kFloat, "pto::scalar::sitofp<$T, $S>($0)"),
    convert("arith.uitofp", kBit | kUnsigned, kFloat, "pto::scalar::sitofp<$T, $S>($0)"),
    convert("arith.fptosi", kFloat, kSigned, "pto::scalar::fptosi<$T, $S>($0)"),
    convert("arith.extf", kFloat, kFloat, "static_cast<$T>($0)", Widths::Grow),
    convert("arith.truncf", kFloat, kFloat, "static_cast<$T>($0)", Widths::Shrink),

    // One number as pto.tcvt converts an element: rounded as the name says, saturated.
    convert("pto.cast_none", kAny, kAny, "pto::scalar::cast<$T, pto::RoundMode::CAST_NONE>($0)"),
    convert("pto.cast_rint", kAny, kAny, "pto::scalar::cast<$T, pto::RoundMode::CAST_RINT>($0)"),
    convert("pto.cast_round", kAny, kAny, "pto::scalar::cast<$T, pto::RoundMode::CAST_ROUND>($0)"),
    convert("pto.cast_floor", kAny, kAny, "pto::scalar::cast<$T, pto::RoundMode::CAST_FLOOR>($0)"),
    convert("pto.cast_ceil", kAny, kAny, "pto::scalar::cast<$T, pto::RoundMode::CAST_CEIL>($0)"),
    convert("pto.cast_trunc", kAny, kAny, "pto::scalar::cast<$T, pto::RoundMode::CAST_TRUNC>($0)"),
    convert("pto.cast_odd", kAny, kAny, "pto::scalar::cast<$T, pto::RoundMode::CAST_ODD>($0)"),
};

}  // namespace

std::span<const ScalarSpec> scalar_table() { return kScalars; }

const ScalarSpec* scalar_named(std::string_view mnemonic) {
  for (const ScalarSpec& row : kScalars) {
    if (row.mnemonic == mnemonic) return &row;
  }
  return nullptr;
}

std::string_view header_of(std::string_view cpp) {
  if (cpp.find("pto::scalar::") == std::string_view::npos) return {};
  return cpp.starts_with("pto::scalar::cast<") ? header::kConvert : header::kScalarOps;
}

}  // namespace ptoas
