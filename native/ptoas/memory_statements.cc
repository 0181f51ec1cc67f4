// Statements on views and tiles.
#include "annotation_parser.h"
#include "statement_parser.h"

namespace ptoas {
namespace {

// What C++ calls the layout of a view; empty for what is none.
std::string_view view_layout(std::string_view name) {
  if (name == "nd") return "ND";
  if (name == "dn") return "DN";
  return name == "nz" ? "NZ" : "";
}

}  // namespace

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
      const std::string_view layout = view_layout(attribute.value);
      if (attribute.name != "layout" || attribute.kind != "layout" || layout.empty() ||
          attributes.size() > 1) {
        return error_at(attribute.position,
                        "a view takes one attribute, layout = #pto.layout<nd>, <dn> or <nz>");
      }
      op.layout = layout;
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

// %s = pto.load_scalar %x[%i, %j] : T -> f32
Parsed<Done> StatementParser::parse_load_element(const Token&, Statement& statement) {
  LoadElementOp op;
  PTOAS_TRY(source, parse_operand());
  op.source = source;
  PTOAS_TRY(indices, parse_operand_list());
  op.indices = std::move(indices);
  PTOAS_TRY(colon, tokens_.expect(':'));
  PTOAS_TRY(source_type, parse_type_use());
  op.source_type = source_type;
  PTOAS_TRY(arrow, tokens_.expect(TokenKind::Arrow, "'->' and the element's type"));
  PTOAS_TRY(type, parse_type_use());
  op.type = type;
  statement.node = std::move(op);
  return Done{};
}

// pto.store_scalar %s, %x[%i, %j] : f32, T
Parsed<Done> StatementParser::parse_store_element(const Token&, Statement& statement) {
  StoreElementOp op;
  PTOAS_TRY(value, parse_operand());
  op.value = value;
  PTOAS_TRY(comma, tokens_.expect(','));
  PTOAS_TRY(target, parse_operand());
  op.target = target;
  PTOAS_TRY(indices, parse_operand_list());
  op.indices = std::move(indices);
  PTOAS_TRY(colon, tokens_.expect(':'));
  PTOAS_TRY(type, parse_type_use());
  op.type = type;
  PTOAS_TRY(second_comma, tokens_.expect(','));
  PTOAS_TRY(target_type, parse_type_use());
  op.target_type = target_type;
  statement.node = std::move(op);
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

}  // namespace ptoas
