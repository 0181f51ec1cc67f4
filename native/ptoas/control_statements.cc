// Blocks, loops and branches.
#include "annotation_parser.h"
#include "parser.h"
#include "statement_parser.h"

namespace ptoas {

// -> (index, f32)
Parsed<std::vector<TypeUse>> StatementParser::parse_result_types() {
  if (tokens_.now().kind != TokenKind::Arrow) return std::vector<TypeUse>{};
  tokens_.take();
  return parse_type_group();
}

// (index, f32)
Parsed<std::vector<TypeUse>> StatementParser::parse_type_group() {
  std::vector<TypeUse> types;
  PTOAS_TRY(open, tokens_.expect('('));
  if (tokens_.accept(')')) return types;
  do {
    PTOAS_TRY(type, parse_type_use());
    types.push_back(type);
  } while (tokens_.accept(','));
  PTOAS_TRY(close, tokens_.expect(')'));
  return types;
}

// (%x = %init, %y = %other)
Parsed<Done> StatementParser::parse_carried(std::vector<Result>& carried,
                                            std::vector<Operand>& initial) {
  PTOAS_TRY(open, tokens_.expect('('));
  do {
    const Position at = tokens_.position();
    PTOAS_TRY(name, tokens_.expect(TokenKind::Value, "a carried value"));
    PTOAS_TRY(equals, tokens_.expect('='));
    PTOAS_TRY(value, parse_operand());
    carried.push_back({name.text, at});
    initial.push_back(value);
  } while (tokens_.accept(','));
  PTOAS_TRY(close, tokens_.expect(')'));
  return Done{};
}

// ^name(%a: T, %b: U): or nothing
Parsed<std::vector<Parameter>> StatementParser::parse_block_arguments() {
  std::vector<Parameter> arguments;
  if (tokens_.now().kind != TokenKind::Label) return arguments;
  tokens_.take();
  if (tokens_.accept('(')) {
    do {
      const Position at = tokens_.position();
      PTOAS_TRY(name, tokens_.expect(TokenKind::Value, "an argument such as %0"));
      PTOAS_TRY(colon, tokens_.expect(':'));
      PTOAS_TRY(type, parse_type_use());
      arguments.push_back({Result{name.text, at}, type});
    } while (tokens_.accept(','));
    PTOAS_TRY(close, tokens_.expect(')'));
  }
  PTOAS_TRY(colon, tokens_.expect(':'));
  return arguments;
}

// { statements, scf.yield %a : T } or { statements, scf.condition(%c) %a : T }
Parsed<Block> StatementParser::parse_block(std::string_view terminator) {
  const Position start = tokens_.position();
  PTOAS_TRY(open, tokens_.expect('{'));
  if (depth_ == kMaxNesting) {
    return error_at(start, "blocks are nested deeper than " + std::to_string(kMaxNesting));
  }
  ++depth_;
  Block block;
  PTOAS_TRY(arguments, parse_block_arguments());
  block.arguments = std::move(arguments);
  while (!tokens_.now().is('}') && !tokens_.now().is(terminator)) {
    PTOAS_TRY(statement, parse());
    block.statements.push_back(std::move(statement));
  }
  block.end = tokens_.position();
  if (tokens_.accept(terminator)) {
    if (terminator == "scf.condition") {
      PTOAS_TRY(open_condition, tokens_.expect('('));
      PTOAS_TRY(condition, parse_operand());
      PTOAS_TRY(close_condition, tokens_.expect(')'));
      block.condition = condition;
    }
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
    PTOAS_TRY(carried, parse_carried(op.carried, op.initial));
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

// %r = scf.while (%x = %init) : (index) -> (index) { .. scf.condition(%c) %x : index } do {
// ^bb0(%y: index): .. scf.yield %z : index }
Parsed<Done> StatementParser::parse_while(const Token&, Statement& statement) {
  WhileOp op;
  if (tokens_.now().is('(')) {
    PTOAS_TRY(carried, parse_carried(op.carried, op.initial));
  }
  PTOAS_TRY(colon, tokens_.expect(':'));
  PTOAS_TRY(carried_types, parse_type_group());
  op.carried_types = std::move(carried_types);
  if (tokens_.now().kind != TokenKind::Arrow) return tokens_.expected("'->' and the result types");
  PTOAS_TRY(types, parse_result_types());
  op.types = std::move(types);
  PTOAS_TRY(before, parse_block("scf.condition"));
  op.before = std::move(before);
  PTOAS_TRY(word, tokens_.expect("do"));
  PTOAS_TRY(after, parse_block());
  op.after = std::move(after);
  statement.node = std::move(op);
  return Done{};
}

}  // namespace ptoas
