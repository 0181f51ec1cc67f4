#include "verifier.h"

#include <algorithm>
#include <string>
#include <unordered_set>

#include "function_verifier.h"

namespace ptoas {
namespace {

// Words that a C++ function cannot be named by. The function's name is emitted as it is written.
constexpr std::string_view kReserved[] = {
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "char16_t",
    "char32_t",
    "char8_t",
    "class",
    "co_await",
    "co_return",
    "co_yield",
    "compl",
    "concept",
    "const",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "kernel_entry",
    "long",
    "main",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "pto",
    "pypto_rt",
    "public",
    "register",
    "reinterpret_cast",
    "requires",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
};

bool is_identifier(std::string_view name) {
  const auto part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') &&
         std::all_of(name.begin(), name.end(), part);
}

std::string known_arches() {
  std::string out;
  for (const Target& target : all_targets()) {
    out += (out.empty() ? "" : ", ") + std::string(target.arch);
  }
  return out;
}

Expected<const Target*, Diagnostics> choose_target(const Module& module, std::string_view arch) {
  const auto fail = [&](Position position, std::string message) {
    return Unexpected{Diagnostics{{position, std::move(message)}}};
  };
  if (!module.arch && arch.empty()) {
    return fail(module.position,
                "no architecture: write module attributes {pto.target_arch = \"a2a3\"} or pass "
                "--pto-arch");
  }
  const std::string_view name = module.arch ? *module.arch : arch;
  const Position position = module.arch ? module.arch_position : module.position;
  const Target* target = target_named(name);
  if (target == nullptr) {
    return fail(position, "unknown architecture; known are " + known_arches());
  }
  if (module.arch && !arch.empty() && *module.arch != arch) {
    return fail(position, "the module is for " + std::string(name) + " but --pto-arch is " +
                              std::string(arch));
  }
  return target;
}

std::string wrong_name(std::string_view name) {
  if (!is_identifier(name)) return "a function name must be a C++ identifier";
  if (std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved)) {
    return "'" + std::string(name) + "' is a reserved word of C++ and cannot name a function";
  }
  return {};
}

}  // namespace

Expected<CheckedModule, Diagnostics> verify(Module module, std::string_view arch) {
  auto target = choose_target(module, arch);
  if (!target) return Unexpected{std::move(target.error())};
  CheckedModule checked;
  checked.module = std::move(module);
  checked.target = *target;
  Diagnostics diagnostics;
  if (checked.module.functions.empty()) {
    diagnostics.push_back({checked.module.position, "the module has no function"});
  }
  std::unordered_set<std::string_view> names;
  for (Function& function : checked.module.functions) {
    if (std::string wrong = wrong_name(function.name); !wrong.empty()) {
      diagnostics.push_back({function.position, std::move(wrong)});
    } else if (!names.insert(function.name).second) {
      diagnostics.push_back(
          {function.position, "a second function '@" + std::string(function.name) + "'"});
    }
    checked.values.push_back(FunctionVerifier(**target, function, diagnostics).run());
    if (diagnostics.size() >= kMaxDiagnostics) break;
  }
  if (!diagnostics.empty()) return Unexpected{std::move(diagnostics)};
  return checked;
}

}  // namespace ptoas
