// module -> functions -> blocks -> statements. The statements' own forms are in
// statement_parser.cc.
#include "parser.h"

#include "annotation_parser.h"
#include "statement_parser.h"
#include "type_parser.h"

namespace ptoas {
namespace {

struct KindRow {
  std::string_view name;
  KernelKind kind;
};

constexpr KindRow kKernelKinds[] = {{"vector", KernelKind::Vector}, {"cube", KernelKind::Cube}};

// {pto.kernel_kind = #pto.kernel_kind<vector>}
Parsed<Done> parse_function_attributes(TokenStream& tokens, Function& function) {
  PTOAS_TRY(attributes, parse_attributes(tokens));
  for (const Attribute& attribute : attributes) {
    if (attribute.name != "pto.kernel_kind" || function.kind != KernelKind::Unspecified) {
      return Unexpected{Diagnostic{
          attribute.position, "a function takes one attribute, " + std::string("pto.kernel_kind")}};
    }
    for (const KindRow& row : kKernelKinds) {
      if (attribute.kind == "kernel_kind" && attribute.value == row.name) function.kind = row.kind;
    }
    if (function.kind == KernelKind::Unspecified) {
      return Unexpected{Diagnostic{attribute.position,
                                   "pto.kernel_kind must be #pto.kernel_kind<vector> or "
                                   "#pto.kernel_kind<cube>"}};
    }
  }
  return Done{};
}

Parsed<Done> parse_parameters(TokenStream& tokens, Function& function) {
  PTOAS_TRY(open, tokens.expect('('));
  if (tokens.accept(')')) return Done{};
  do {
    const Position at = tokens.position();
    PTOAS_TRY(name, tokens.expect(TokenKind::Value, "a parameter such as %arg0"));
    PTOAS_TRY(colon, tokens.expect(':'));
    const Position type_at = tokens.position();
    PTOAS_TRY(type, parse_type(tokens));
    function.parameters.push_back({Result{name.text, at}, TypeUse{type, type_at}});
  } while (tokens.accept(','));
  PTOAS_TRY(close, tokens.expect(')'));
  return Done{};
}

// A function body: statements, then `return`.
Parsed<Block> parse_body(TokenStream& tokens) {
  PTOAS_TRY(open, tokens.expect('{'));
  StatementParser statements(tokens);
  Block block;
  while (!tokens.now().is("return") && !tokens.now().is("func.return")) {
    if (tokens.now().is('}')) return tokens.expected("'return' at the end of the function");
    PTOAS_TRY(statement, statements.parse());
    block.statements.push_back(std::move(statement));
  }
  block.end = tokens.position();
  tokens.take();
  PTOAS_TRY(location, parse_location(tokens));
  PTOAS_TRY(close, tokens.expect('}'));
  return block;
}

Parsed<Function> parse_function(TokenStream& tokens) {
  PTOAS_TRY(keyword, tokens.expect("func.func"));
  Function function;
  function.position = tokens.position();
  PTOAS_TRY(name, tokens.expect(TokenKind::Symbol, "a function name such as @softmax"));
  function.name = name.text;
  PTOAS_TRY(parameters, parse_parameters(tokens, function));
  if (tokens.accept("attributes")) {
    PTOAS_TRY(attributes, parse_function_attributes(tokens, function));
  }
  PTOAS_TRY(body, parse_body(tokens));
  function.body = std::move(body);
  PTOAS_TRY(location, parse_location(tokens));
  return function;
}

// {pto.target_arch = "a2a3"}
Parsed<Done> parse_module_attributes(TokenStream& tokens, Module& module) {
  PTOAS_TRY(open, tokens.expect('{'));
  if (tokens.accept('}')) return Done{};
  PTOAS_TRY(name, tokens.expect("pto.target_arch"));
  PTOAS_TRY(equals, tokens.expect('='));
  module.arch_position = tokens.position();
  PTOAS_TRY(arch, tokens.expect(TokenKind::String, "an architecture such as \"a2a3\""));
  module.arch = arch.text;
  PTOAS_TRY(close, tokens.expect('}'));
  return Done{};
}

}  // namespace

Parsed<Module> parse(const Source& source) {
  TokenStream tokens(source.text());
  Module module;
  module.position = tokens.position();
  PTOAS_TRY(keyword, tokens.expect("module"));
  if (tokens.accept("attributes")) {
    PTOAS_TRY(attributes, parse_module_attributes(tokens, module));
  }
  PTOAS_TRY(open, tokens.expect('{'));
  while (!tokens.now().is('}')) {
    if (!tokens.now().is("func.func")) return tokens.expected("'func.func' or '}'");
    PTOAS_TRY(function, parse_function(tokens));
    module.functions.push_back(std::move(function));
  }
  tokens.take();
  PTOAS_TRY(location, parse_location(tokens));
  if (tokens.now().kind != TokenKind::End) return tokens.expected("nothing after the module");
  return module;
}

}  // namespace ptoas
