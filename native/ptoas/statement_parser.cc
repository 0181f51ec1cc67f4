// Dispatch on the mnemonic, and the statements on scalars. Those on memory and control flow have
// files of their own.
#include "statement_parser.h"

#include "annotation_parser.h"
#include "number.h"
#include "spelling.h"
#include "type_parser.h"

namespace ptoas {
namespace {

std::string unknown_operation(const Token& mnemonic) {
  std::string message = "unknown operation " + describe(mnemonic);
  const std::string_view near = nearest_mnemonic(mnemonic.text);
  if (!near.empty()) message += "; did you mean '" + std::string(near) + "'?";
  return message;
}

}  // namespace

struct StatementParser::FormRow {
  std::string_view mnemonic;
  Form read;
  // Of statements that always define exactly one value, or never any; the rest check themselves.
  std::optional<std::size_t> results;
};

const StatementParser::FormRow StatementParser::kForms[] = {
    {"arith.constant", &StatementParser::parse_constant, 1},
    {"pto.make_tensor_view", &StatementParser::parse_make_view, 1},
    {"pto.partition_view", &StatementParser::parse_partition, 1},
    {"pto.alloc_tile", &StatementParser::parse_alloc_tile, 1},
    {"pto.set_validshape", &StatementParser::parse_set_valid_shape, 0},
    {"pto.load_scalar", &StatementParser::parse_load_element, 1},
    {"pto.store_scalar", &StatementParser::parse_store_element, 0},
    {"scf.for", &StatementParser::parse_for, std::nullopt},
    {"scf.if", &StatementParser::parse_if, std::nullopt},
    {"scf.while", &StatementParser::parse_while, std::nullopt},
};

Parsed<Statement> StatementParser::parse() {
  Statement statement;
  PTOAS_TRY(results, parse_results(statement));
  statement.position = tokens_.position();
  PTOAS_TRY(mnemonic, tokens_.expect(TokenKind::Name, "an operation"));

  Form form = nullptr;
  std::optional<std::size_t> wanted;
  for (const FormRow& row : kForms) {
    if (row.mnemonic != mnemonic.text) continue;
    form = row.read;
    wanted = row.results;
  }
  const ScalarSpec* scalar = scalar_named(mnemonic.text);
  if (scalar != nullptr) {
    wanted = 1;
  } else if (form == nullptr && !instructions_named(mnemonic.text).empty()) {
    form = &StatementParser::parse_instruction;
    wanted = 0;
  } else if (form == nullptr) {
    return error_at(mnemonic.position, unknown_operation(mnemonic));
  }
  if (wanted && *wanted != statement.results.size()) {
    return error_at(mnemonic.position, describe(mnemonic) + " defines " +
                                           (*wanted == 0 ? "no value" : "exactly one value"));
  }
  if (scalar != nullptr) {
    PTOAS_TRY(done, parse_scalar(mnemonic, *scalar, statement));
  } else {
    PTOAS_TRY(done, (this->*form)(mnemonic, statement));
  }
  PTOAS_TRY(location, parse_location(tokens_));
  statement.location = std::move(location);
  return statement;
}

// %a = / %a, %b = / %r:2 =
Parsed<Done> StatementParser::parse_results(Statement& statement) {
  if (tokens_.now().kind != TokenKind::Value) return Done{};
  do {
    const Position at = tokens_.position();
    PTOAS_TRY(name, tokens_.expect(TokenKind::Value, "a result such as %0"));
    if (name.text.find('#') != std::string_view::npos) {
      return error_at(at, "a name that is defined has no '#'");
    }
    if (!tokens_.accept(':')) {
      statement.results.push_back({name.text, at});
      continue;
    }
    constexpr std::int64_t kMaxParts = 1024;
    const Position count_at = tokens_.position();
    PTOAS_TRY(count_token, tokens_.expect(TokenKind::Integer, "the number of results"));
    const auto count = parse_integer(count_token.text);
    if (!count || *count < 1 || *count > kMaxParts) {
      return error_at(count_at, "the number of results must be from 1 to 1024");
    }
    for (std::int32_t part = 0; part < *count; ++part) {
      statement.results.push_back({name.text, at, kUnresolved, part});
    }
  } while (tokens_.accept(','));
  PTOAS_TRY(equals, tokens_.expect('='));
  return Done{};
}

Parsed<Operand> StatementParser::parse_operand() {
  const Position at = tokens_.position();
  PTOAS_TRY(token, tokens_.expect(TokenKind::Value, "a value such as %0"));
  return Operand{token.text, at};
}

// [%a, %b]
Parsed<std::vector<Operand>> StatementParser::parse_operand_list() {
  std::vector<Operand> operands;
  PTOAS_TRY(open, tokens_.expect('['));
  if (tokens_.accept(']')) return operands;
  do {
    PTOAS_TRY(operand, parse_operand());
    operands.push_back(operand);
  } while (tokens_.accept(','));
  PTOAS_TRY(close, tokens_.expect(']'));
  return operands;
}

Parsed<TypeUse> StatementParser::parse_type_use() {
  const Position at = tokens_.position();
  PTOAS_TRY(type, parse_type(tokens_));
  return TypeUse{type, at};
}

// %r = arith.constant 7 : index
Parsed<Done> StatementParser::parse_constant(const Token&, Statement& statement) {
  const Token literal = tokens_.now();
  const bool is_bool = literal.is("true") || literal.is("false");
  if (!is_bool && literal.kind != TokenKind::Integer && literal.kind != TokenKind::Float) {
    return tokens_.expected("a number, true or false");
  }
  tokens_.take();
  Element element = Element::I1;
  if (!is_bool || tokens_.now().is(':')) {
    PTOAS_TRY(colon, tokens_.expect(':'));
    PTOAS_TRY(written, parse_element(tokens_));
    element = written;
  }
  std::optional<std::int64_t> bits;
  if (is_bool) {
    if (element == Element::I1) bits = literal.is("true") ? 1 : 0;
  } else if (info(element).family == Family::Float) {
    bits = float_bits(literal.text, element);
  } else if (literal.kind == TokenKind::Integer) {
    bits = integer_bits(literal.text, element);
  }
  if (!bits) {
    return error_at(literal.position, describe(literal) + " is no value of '" +
                                          std::string(info(element).name) + "'");
  }
  statement.node = ConstantOp{{element, *bits}};
  return Done{};
}

Parsed<Done> StatementParser::parse_scalar(const Token&, const ScalarSpec& spec,
                                           Statement& statement) {
  ScalarOp op;
  op.spec = &spec;
  if (spec.form == ScalarForm::Compare) {
    const Position at = tokens_.position();
    PTOAS_TRY(name, tokens_.expect(TokenKind::Name,
                                   "a predicate such as " + std::string(spec.predicates[0].name)));
    for (const ComparePredicate& predicate : spec.predicates) {
      if (predicate.name == name.text) op.predicate = &predicate;
    }
    if (op.predicate == nullptr) {
      std::string known;
      for (const ComparePredicate& predicate : spec.predicates) {
        known += (known.empty() ? "" : ", ") + std::string(predicate.name);
      }
      return error_at(at, "unknown predicate " + describe(name) + " (one of " + known + ")");
    }
    PTOAS_TRY(comma, tokens_.expect(','));
  }
  for (std::size_t i = 0; i < spec.arity; ++i) {
    if (i > 0) {
      PTOAS_TRY(comma, tokens_.expect(','));
    }
    PTOAS_TRY(operand, parse_operand());
    op.operands.push_back(operand);
  }
  PTOAS_TRY(colon, tokens_.expect(':'));
  PTOAS_TRY(source, parse_type_use());
  op.source = source;
  op.target = source;
  if (spec.form == ScalarForm::Convert) {
    PTOAS_TRY(to, tokens_.expect("to"));
    PTOAS_TRY(target, parse_type_use());
    op.target = target;
  }
  statement.node = std::move(op);
  return Done{};
}

}  // namespace ptoas
