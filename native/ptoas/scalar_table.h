// One row per scalar operation of the arith dialect, read by parser, verifier and emitter.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "types.h"

namespace ptoas {

enum class ScalarForm : std::uint8_t {
  Plain,    // %r = op %a, ... : T
  Select,   // %r = op %cond, %a, %b : T
  Compare,  // %r = op predicate, %a, %b : T      the result is i1
  Convert,  // %r = op %a : T to U
};

// How the bit widths of a conversion must compare; index counts as 64.
enum class Widths : std::uint8_t { Any, Grow, Shrink };

struct ComparePredicate {
  std::string_view name;
  std::string_view cpp;
};

struct ScalarSpec {
  std::string_view mnemonic;
  ScalarForm form;
  std::uint8_t arity;
  Elements from;  // of the operands (of a select: of the two chosen from)
  Elements to;    // of the result; unused where it is the operand type or i1
  // $0 $1 $2: the operands; $S, $T: C++ types of operands and result. Comparisons use a
  // predicate's.
  std::string_view cpp;
  // May end in a run-time fault, so its place must be recorded first.
  bool faults = false;
  Widths widths = Widths::Any;
  std::span<const ComparePredicate> predicates{};
};

std::span<const ScalarSpec> scalar_table();
const ScalarSpec* scalar_named(std::string_view mnemonic);

// The header that declares what a template of these tables calls; none where it calls nothing.
std::string_view header_of(std::string_view cpp);

}  // namespace ptoas
