// Blocks, loops and branches.
#include "annotation_parser.h"
#include "parser.h"
#include "statement_parser.h"

namespace ptoas {

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
