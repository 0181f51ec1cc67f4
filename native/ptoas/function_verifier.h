// Checks one function and resolves its names.
#pragma once

#include <string>
#include <vector>

#include "scope.h"
#include "verifier.h"

namespace ptoas {

class FunctionVerifier {
 public:
  FunctionVerifier(const Target& target, Function& function, Diagnostics& diagnostics)
      : target_(target), function_(function), diagnostics_(diagnostics) {}

  // The function's values. What is wrong is in the diagnostics.
  std::vector<ValueInfo> run();

 private:
  void check_statement(Statement& statement);
  void check(Statement& statement, ConstantOp& op);
  void check(Statement& statement, ScalarOp& op);
  void check(Statement& statement, MakeViewOp& op);
  void check(Statement& statement, PartitionOp& op);
  void check(Statement& statement, AllocTileOp& op);
  void check(Statement& statement, SetValidShapeOp& op);
  void check(Statement& statement, InstructionOp& op);
  void check(Statement& statement, ForOp& op);
  void check(Statement& statement, IfOp& op);
  void check(Statement& statement, WhileOp& op);
  void check(Statement& statement, LoadElementOp& op);
  void check(Statement& statement, StoreElementOp& op);

  // An element of a view or a tile; reports and returns nothing where there is none.
  std::optional<Element> check_element(Operand& operand, const TypeUse& type,
                                       std::vector<Operand>& indices);
  void check_initial(std::vector<Operand>& initial, const std::vector<TypeUse>& types);
  void check_arguments(Block& block, const std::vector<TypeUse>& types, Position position);
  void check_block(Block& block, const std::vector<TypeUse>& types, std::string_view what);
  void check_address(const AllocTileOp& op, const TileType& tile);
  void check_valid_operand(Operand& operand, std::int64_t extent, std::string_view name);
  bool check_row(const InstructionSpec& spec, InstructionOp& op, Position position,
                 const std::vector<const Type*>& types);
  void check_attribute(InstructionOp& op);

  void report(Position position, std::string message);
  // Defines a result; the value exists even when its name was taken, so that checking can go on.
  ValueInfo& define(Result& result, Type type);
  // Resolves a use. Null (and reported) if nothing of that name is visible.
  const ValueInfo* use(Operand& operand);
  // Resolves a use that must have this type.
  const ValueInfo* use(Operand& operand, const Type& type);
  // Resolves a use that must be an index; its value if it is a constant.
  std::optional<std::int64_t> use_index(Operand& operand);
  bool require_scalars(const std::vector<TypeUse>& types);

  const Target& target_;
  Function& function_;
  Diagnostics& diagnostics_;
  Scope scope_;
  std::vector<ValueInfo> values_;
};

}  // namespace ptoas
