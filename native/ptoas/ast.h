// What the parser makes of the text. Names are unresolved until the verifier has filled in the
// `value` of every operand and result; views point into the Source.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "instruction_table.h"
#include "scalar_table.h"
#include "source.h"
#include "types.h"

namespace ptoas {

// Index of a value in its function, in order of definition.
using ValueId = std::uint32_t;
constexpr ValueId kUnresolved = 0xffffffffu;

// A use of a value.
struct Operand {
  std::string_view name;
  Position position = 0;
  ValueId value = kUnresolved;
};

// A definition of a value.
struct Result {
  std::string_view name;
  Position position = 0;
  ValueId value = kUnresolved;
  // `%r:2` defines two results of one name, used as %r#0 and %r#1; otherwise kWhole.
  static constexpr std::int32_t kWhole = -1;
  std::int32_t part = kWhole;
};

// A type written at a place, so that a message can point at it.
struct TypeUse {
  Type type;
  Position position = 0;
};

// The user's place, from a trailing loc("unit":line:column). The unit is unescaped.
struct UserLocation {
  std::string unit;
  std::int64_t line = 0;
  std::int64_t column = 0;
};

// {name = #pto.kind<value>}, also written #pto<kind value>.
struct Attribute {
  std::string_view name;
  std::string_view kind;
  std::string_view value;
  Position position = 0;
};

struct Statement;

struct Parameter {
  Result name;
  TypeUse type;
};

// Statements between braces. `yields` are the operands of the scf.yield that ends it, or of the
// scf.condition of a while loop's first block, which has a truth value besides.
struct Block {
  std::vector<Parameter> arguments;  // ^name(%a: T), of a while loop's second block only
  std::vector<Statement> statements;
  std::vector<Operand> yields;
  std::vector<TypeUse> yield_types;
  std::optional<Operand> condition;
  Position end = 0;  // of the yield, or of the closing brace
};

// A value of an arith.constant. Bits are the value's own bit pattern, sign extended for integers.
struct Constant {
  Element element;
  std::int64_t bits = 0;
};

struct ConstantOp {
  Constant constant;
};

struct ScalarOp {
  const ScalarSpec* spec = nullptr;
  const ComparePredicate* predicate = nullptr;  // of a comparison only
  std::vector<Operand> operands;
  TypeUse source;  // of the operands
  TypeUse target;  // of the result
};

struct MakeViewOp {
  Operand pointer;
  std::vector<Operand> shape;
  std::vector<Operand> strides;
  std::string_view layout = "ND";  // of #pto.layout<nd>, <dn> or <nz>, as C++ spells it
  TypeUse type;
};

struct PartitionOp {
  Operand view;
  std::vector<Operand> offsets;
  std::vector<Operand> sizes;
  TypeUse view_type;
  TypeUse type;
};

struct AllocTileOp {
  std::optional<Operand> address;
  std::optional<Operand> valid_rows;
  std::optional<Operand> valid_cols;
  TypeUse type;
};

struct SetValidShapeOp {
  Operand tile;
  Operand rows;
  Operand cols;
  TypeUse type;
};

// mnemonic ins(...) outs(...) {attribute}
struct InstructionOp {
  std::string_view mnemonic;
  std::vector<Operand> ins;
  std::vector<TypeUse> in_types;
  std::vector<Operand> outs;
  std::vector<TypeUse> out_types;
  std::optional<Attribute> attribute;
  const InstructionSpec* spec = nullptr;            // chosen by the verifier
  const AttributeValue* attribute_value = nullptr;  // likewise; null where the row has none
};

struct ForOp {
  Result induction;
  Operand lower, upper, step;
  std::vector<Result> carried;  // iter_args, as seen in the body
  std::vector<Operand> initial;
  std::vector<TypeUse> types;
  Block body;
};

struct IfOp {
  Operand condition;
  std::vector<TypeUse> types;
  Block then_block;
  std::optional<Block> else_block;
};

// The carried values are the arguments of `before`; what its scf.condition hands on are those of
// `after` and, once the condition is false, the results.
struct WhileOp {
  std::vector<Result> carried;
  std::vector<Operand> initial;
  std::vector<TypeUse> carried_types;
  std::vector<TypeUse> types;
  Block before;
  Block after;
};

// One element of a view or a tile.
struct LoadElementOp {
  Operand source;
  std::vector<Operand> indices;
  TypeUse source_type;
  TypeUse type;
};

struct StoreElementOp {
  Operand value;
  Operand target;
  std::vector<Operand> indices;
  TypeUse type;
  TypeUse target_type;
};

using Node =
    std::variant<ConstantOp, ScalarOp, MakeViewOp, PartitionOp, AllocTileOp, SetValidShapeOp,
                 InstructionOp, LoadElementOp, StoreElementOp, ForOp, IfOp, WhileOp>;

struct Statement {
  Position position = 0;
  std::vector<Result> results;
  std::optional<UserLocation> location;
  Node node;
};

enum class KernelKind : std::uint8_t { Unspecified, Vector, Cube };

struct Function {
  std::string_view name;
  Position position = 0;
  std::vector<Parameter> parameters;
  KernelKind kind = KernelKind::Unspecified;
  Block body;
};

struct Module {
  Position position = 0;
  std::optional<std::string_view> arch;
  Position arch_position = 0;
  std::vector<Function> functions;
};

}  // namespace ptoas
