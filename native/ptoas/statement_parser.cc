#include "statement_parser.h"

#include "number.h"
#include "parser.h"
#include "spelling.h"
#include "type_parser.h"

namespace ptoas {
namespace {

Unexpected<Diagnostic> error_at(Position position, std::string message) {
  return {Diagnostic{position, std::move(message)}};
}

// The bytes a string literal stands for: \" \\ \n \t and \XX (two hexadecimal digits).
std::string unescape(std::string_view text) {
  const auto digit = [](char c) -> int {
    if (is_digit(c)) return c - '0';
    const char lower = static_cast<char>(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
  };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 >= text.size()) {
      out += text[i];
      continue;
    }
    const char next = text[++i];
    const int high = digit(next);
    const int low = i + 1 < text.size() ? digit(text[i + 1]) : -1;
    if (high >= 0 && low >= 0) {
      out += static_cast<char>(high * 16 + low);
      ++i;
    } else {
      out += next == 'n' ? '\n' : next == 't' ? '\t' : next;
    }
  }
  return out;
}

Parsed<std::int64_t> parse_location_number(TokenStream& tokens) {
  PTOAS_TRY(colon, tokens.expect(':'));
  const Position at = tokens.position();
  PTOAS_TRY(token, tokens.expect(TokenKind::Integer, "a number"));
  const auto value = parse_integer(token.text);
  if (!value || *value < 0 || *value > INT32_MAX) return error_at(at, "not a line or column");
  return *value;
}

std::string unknown_operation(const Token& mnemonic) {
  std::string message = "unknown operation " + describe(mnemonic);
  const std::string_view near = nearest_mnemonic(mnemonic.text);
  if (!near.empty()) message += "; did you mean '" + std::string(near) + "'?";
  return message;
}

}  // namespace

Parsed<std::optional<UserLocation>> parse_location(TokenStream& tokens) {
  if (!tokens.accept("loc")) return std::optional<UserLocation>{};
  PTOAS_TRY(open, tokens.expect('('));
  std::optional<UserLocation> location;
  if (!tokens.accept("unknown")) {
    PTOAS_TRY(unit, tokens.expect(TokenKind::String, "\"unit\" or unknown"));
    PTOAS_TRY(line, parse_location_number(tokens));
    PTOAS_TRY(column, parse_location_number(tokens));
    location = UserLocation{unescape(unit.text), line, column};
  }
  PTOAS_TRY(close, tokens.expect(')'));
  return location;
}

Parsed<std::vector<Attribute>> parse_attributes(TokenStream& tokens) {
  std::vector<Attribute> attributes;
  PTOAS_TRY(open, tokens.expect('{'));
  if (tokens.accept('}')) return attributes;
  do {
    Attribute attribute;
    attribute.position = tokens.position();
    PTOAS_TRY(name, tokens.expect(TokenKind::Name, "an attribute name"));
    PTOAS_TRY(equals, tokens.expect('='));
    PTOAS_TRY(hash, tokens.expect('#'));
    PTOAS_TRY(kind, tokens.expect(TokenKind::Name, "an attribute such as #pto.layout<nd>"));
    PTOAS_TRY(less, tokens.expect('<'));
    attribute.name = name.text;
    if (kind.text == "pto") {
      PTOAS_TRY(inner, tokens.expect(TokenKind::Name, "an attribute such as #pto<layout nd>"));
      attribute.kind = inner.text;
    } else if (kind.text.starts_with("pto.")) {
      attribute.kind = kind.text.substr(4);
    } else {
      return error_at(kind.position, "an attribute value starts with #pto");
    }
    PTOAS_TRY(value, tokens.expect(TokenKind::Name, "the attribute's value"));
    attribute.value = value.text;
    PTOAS_TRY(greater, tokens.expect('>'));
    attributes.push_back(attribute);
  } while (tokens.accept(','));
  PTOAS_TRY(close, tokens.expect('}'));
  return attributes;
}

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
    {"scf.for", &StatementParser::parse_for, std::nullopt},
    {"scf.if", &StatementParser::parse_if, std::nullopt},
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
    constexpr std::int64_t kMaxParts = 64;
    const Position count_at = tokens_.position();
    PTOAS_TRY(count_token, tokens_.expect(TokenKind::Integer, "the number of results"));
    const auto count = parse_integer(count_token.text);
    if (!count || *count < 1 || *count > kMaxParts) {
      return error_at(count_at, "the number of results must be from 1 to 64");
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
    return error_at(literal.position,
                    describe(literal) + " is no value of '" + std::string(info(element).name) + "'");
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
    PTOAS_TRY(name, tokens_.expect(TokenKind::Name, "a predicate such as " +
                                                        std::string(spec.predicates[0].name)));
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

// %v = pto.make_tensor_view %p, shape = [..], strides = [..] {layout = #pto.layout<nd>} : T
Parsed<Done> StatementParser::parse_make_view(const Token&, Statement& statement) {
  MakeViewOp op;
  PTOAS_TRY(pointer, parse_operand());
  op.pointer = pointer;
  PTOAS_TRY(comma, tokens_.expect(','));
  PTOAS_TRY(shape_word, tokens_.expect("shape"));
  PTOAS_TRY(shape_equals, tokens_.expect('='));
  PTOAS_TRY(shape, parse_operand_list());
  op.shape = std::move(shape);
  PTOAS_TRY(second_comma, tokens_.expect(','));
  PTOAS_TRY(strides_word, tokens_.expect("strides"));
  PTOAS_TRY(strides_equals, tokens_.expect('='));
  PTOAS_TRY(strides, parse_operand_list());
  op.strides = std::move(strides);
  if (tokens_.now().is('{')) {
    PTOAS_TRY(attributes, parse_attributes(tokens_));
    for (const Attribute& attribute : attributes) {
      const bool known = attribute.name == "layout" && attribute.kind == "layout" &&
                         (attribute.value == "nd" || attribute.value == "dn");
      if (!known || attributes.size() > 1) {
        return error_at(attribute.position,
                        "a view takes one attribute, layout = #pto.layout<nd> or <dn>");
      }
      op.column_major = attribute.value == "dn";
    }
  }
  PTOAS_TRY(colon, tokens_.expect(':'));
  PTOAS_TRY(type, parse_type_use());
  op.type = type;
  statement.node = std::move(op);
  return Done{};
}

// %p = pto.partition_view %v, offsets = [..], sizes = [..] : T -> U
Parsed<Done> StatementParser::parse_partition(const Token&, Statement& statement) {
  PartitionOp op;
  PTOAS_TRY(view, parse_operand());
  op.view = view;
  PTOAS_TRY(comma, tokens_.expect(','));
  PTOAS_TRY(offsets_word, tokens_.expect("offsets"));
  PTOAS_TRY(offsets_equals, tokens_.expect('='));
  PTOAS_TRY(offsets, parse_operand_list());
  op.offsets = std::move(offsets);
  PTOAS_TRY(second_comma, tokens_.expect(','));
  PTOAS_TRY(sizes_word, tokens_.expect("sizes"));
  PTOAS_TRY(sizes_equals, tokens_.expect('='));
  PTOAS_TRY(sizes, parse_operand_list());
  op.sizes = std::move(sizes);
  PTOAS_TRY(colon, tokens_.expect(':'));
  PTOAS_TRY(view_type, parse_type_use());
  op.view_type = view_type;
  PTOAS_TRY(arrow, tokens_.expect(TokenKind::Arrow, "'->' and the partition's type"));
  PTOAS_TRY(type, parse_type_use());
  op.type = type;
  statement.node = std::move(op);
  return Done{};
}

// %t = pto.alloc_tile addr = %a valid_row = %r valid_col = %c : T
Parsed<Done> StatementParser::parse_alloc_tile(const Token&, Statement& statement) {
  AllocTileOp op;
  struct Argument {
    std::string_view name;
    std::optional<Operand>& operand;
  };
  const Argument arguments[] = {
      {"addr", op.address}, {"valid_row", op.valid_rows}, {"valid_col", op.valid_cols}};
  for (const Argument& argument : arguments) {
    if (!tokens_.accept(argument.name)) continue;
    PTOAS_TRY(equals, tokens_.expect('='));
    PTOAS_TRY(operand, parse_operand());
    argument.operand = operand;
  }
  if (!tokens_.now().is(':')) {
    return tokens_.expected("addr, valid_row, valid_col (in this order) or ':'");
  }
  tokens_.take();
  PTOAS_TRY(type, parse_type_use());
  op.type = type;
  statement.node = std::move(op);
  return Done{};
}

// pto.set_validshape %t, %r, %c : T
Parsed<Done> StatementParser::parse_set_valid_shape(const Token&, Statement& statement) {
  SetValidShapeOp op;
  PTOAS_TRY(tile, parse_operand());
  PTOAS_TRY(comma, tokens_.expect(','));
  PTOAS_TRY(rows, parse_operand());
  PTOAS_TRY(second_comma, tokens_.expect(','));
  PTOAS_TRY(cols, parse_operand());
  PTOAS_TRY(colon, tokens_.expect(':'));
  PTOAS_TRY(type, parse_type_use());
  statement.node = SetValidShapeOp{tile, rows, cols, type};
  return Done{};
}

// (%a, %b : T, U), also written (%a : T, %b : U)
Parsed<Done> StatementParser::parse_typed_group(std::vector<Operand>& operands,
                                                std::vector<TypeUse>& types) {
  PTOAS_TRY(open, tokens_.expect('('));
  while (true) {
    PTOAS_TRY(operand, parse_operand());
    operands.push_back(operand);
    if (tokens_.accept(',')) continue;
    PTOAS_TRY(colon, tokens_.expect(':'));
    bool more_operands = false;
    do {
      if (tokens_.now().kind == TokenKind::Value) {
        more_operands = true;
        break;
      }
      PTOAS_TRY(type, parse_type_use());
      types.push_back(type);
    } while (tokens_.accept(','));
    if (!more_operands) break;
  }
  PTOAS_TRY(close, tokens_.expect(')'));
  return Done{};
}

// pto.tadd ins(..) outs(..) {attribute}
Parsed<Done> StatementParser::parse_instruction(const Token& mnemonic, Statement& statement) {
  InstructionOp op;
  op.mnemonic = mnemonic.text;
  PTOAS_TRY(ins_word, tokens_.expect("ins"));
  PTOAS_TRY(ins, parse_typed_group(op.ins, op.in_types));
  PTOAS_TRY(outs_word, tokens_.expect("outs"));
  PTOAS_TRY(outs, parse_typed_group(op.outs, op.out_types));
  if (tokens_.now().is('{')) {
    PTOAS_TRY(attributes, parse_attributes(tokens_));
    if (attributes.size() > 1) {
      return error_at(attributes[1].position, "an instruction takes at most one attribute");
    }
    if (!attributes.empty()) op.attribute = attributes[0];
  }
  statement.node = std::move(op);
  return Done{};
}

// -> (index, f32)
Parsed<std::vector<TypeUse>> StatementParser::parse_result_types() {
  std::vector<TypeUse> types;
  if (tokens_.now().kind != TokenKind::Arrow) return types;
  tokens_.take();
  PTOAS_TRY(open, tokens_.expect('('));
  do {
    PTOAS_TRY(type, parse_type_use());
    types.push_back(type);
  } while (tokens_.accept(','));
  PTOAS_TRY(close, tokens_.expect(')'));
  return types;
}

// { statements, scf.yield }
Parsed<Block> StatementParser::parse_block() {
  const Position start = tokens_.position();
  PTOAS_TRY(open, tokens_.expect('{'));
  if (depth_ == kMaxNesting) {
    return error_at(start, "blocks are nested deeper than " + std::to_string(kMaxNesting));
  }
  ++depth_;
  Block block;
  while (!tokens_.now().is('}') && !tokens_.now().is("scf.yield")) {
    PTOAS_TRY(statement, parse());
    block.statements.push_back(std::move(statement));
  }
  block.end = tokens_.position();
  if (tokens_.accept("scf.yield")) {
    block.has_yield = true;
    if (tokens_.now().kind == TokenKind::Value) {
      do {
        PTOAS_TRY(operand, parse_operand());
        block.yields.push_back(operand);
      } while (tokens_.accept(','));
      PTOAS_TRY(colon, tokens_.expect(':'));
      do {
        PTOAS_TRY(type, parse_type_use());
        block.yield_types.push_back(type);
      } while (tokens_.accept(','));
    }
    PTOAS_TRY(location, parse_location(tokens_));
  }
  PTOAS_TRY(close, tokens_.expect('}'));
  --depth_;
  return block;
}

// %r = scf.for %i = %lo to %hi step %st iter_args(%x = %init) -> (index) { .. }
Parsed<Done> StatementParser::parse_for(const Token&, Statement& statement) {
  ForOp op;
  const Position at = tokens_.position();
  PTOAS_TRY(induction, tokens_.expect(TokenKind::Value, "the loop variable"));
  op.induction = Result{induction.text, at};
  PTOAS_TRY(equals, tokens_.expect('='));
  PTOAS_TRY(lower, parse_operand());
  op.lower = lower;
  PTOAS_TRY(to, tokens_.expect("to"));
  PTOAS_TRY(upper, parse_operand());
  op.upper = upper;
  PTOAS_TRY(step_word, tokens_.expect("step"));
  PTOAS_TRY(step, parse_operand());
  op.step = step;
  if (tokens_.accept("iter_args")) {
    PTOAS_TRY(open, tokens_.expect('('));
    do {
      const Position carried_at = tokens_.position();
      PTOAS_TRY(carried, tokens_.expect(TokenKind::Value, "a carried value"));
      PTOAS_TRY(carried_equals, tokens_.expect('='));
      PTOAS_TRY(initial, parse_operand());
      op.carried.push_back({carried.text, carried_at});
      op.initial.push_back(initial);
    } while (tokens_.accept(','));
    PTOAS_TRY(close, tokens_.expect(')'));
  }
  PTOAS_TRY(types, parse_result_types());
  op.types = std::move(types);
  PTOAS_TRY(body, parse_block());
  op.body = std::move(body);
  statement.node = std::move(op);
  return Done{};
}

// %r = scf.if %c -> (index) { .. } else { .. }
Parsed<Done> StatementParser::parse_if(const Token&, Statement& statement) {
  IfOp op;
  PTOAS_TRY(condition, parse_operand());
  op.condition = condition;
  PTOAS_TRY(types, parse_result_types());
  op.types = std::move(types);
  PTOAS_TRY(then_block, parse_block());
  op.then_block = std::move(then_block);
  if (tokens_.accept("else")) {
    PTOAS_TRY(else_block, parse_block());
    op.else_block = std::move(else_block);
  }
  statement.node = std::move(op);
  return Done{};
}

}  // namespace ptoas
