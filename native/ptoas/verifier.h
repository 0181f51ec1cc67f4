// Syntax tree to a module that is known to mean something.
#pragma once

#include <optional>
#include <vector>

#include "ast.h"
#include "targets.h"

namespace ptoas {

// More complaints about one text do not help.
constexpr std::size_t kMaxDiagnostics = 20;

struct ValueInfo {
  Type type;
  Position position = 0;             // of its definition
  std::optional<Constant> constant;  // of an arith.constant
  Extents known_extents;             // of a view: constants where known, else kDynamic
};

// Every operand and result has its ValueId, every instruction its row. Values of function i are in
// values[i], parameters first.
struct CheckedModule {
  Module module;
  const Target* target = nullptr;
  std::vector<std::vector<ValueInfo>> values;
};

// `arch` is the architecture asked for from outside, or empty; the module's own must not differ.
Expected<CheckedModule, Diagnostics> verify(Module module, std::string_view arch);

}  // namespace ptoas
