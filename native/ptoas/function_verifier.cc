// Scalars, control flow and names. Memory and instructions are in memory_verifier.cc.
#include "function_verifier.h"

namespace ptoas {
namespace {

std::string visible_name(const Result& result) {
  std::string name(result.name);
  if (result.part != Result::kWhole) name += "#" + std::to_string(result.part);
  return name;
}

int width(Element element) { return info(element).bits; }

std::string count_text(std::size_t count, std::string_view what) {
  return std::to_string(count) + " " + std::string(what) + (count == 1 ? "" : "s");
}

}  // namespace

void FunctionVerifier::report(Position position, std::string message) {
  if (diagnostics_.size() < kMaxDiagnostics) {
    diagnostics_.push_back({position, std::move(message)});
  }
}

ValueInfo& FunctionVerifier::define(Result& result, Type type) {
  result.value = static_cast<ValueId>(values_.size());
  values_.push_back({type, result.position, std::nullopt, {}});
  if (!scope_.define(visible_name(result), result.value)) {
    report(result.position, quoted("%" + visible_name(result)) + " is defined already");
  }
  return values_.back();
}

const ValueInfo* FunctionVerifier::use(Operand& operand) {
  operand.value = scope_.find(operand.name);
  if (operand.value != kUnresolved) return &values_[operand.value];
  report(operand.position, quoted("%" + std::string(operand.name)) + " is not defined here");
  return nullptr;
}

const ValueInfo* FunctionVerifier::use(Operand& operand, const Type& type) {
  const ValueInfo* value = use(operand);
  if (value == nullptr || value->type == type) return value;
  report(operand.position, quoted("%" + std::string(operand.name)) + " is " + quoted(value->type) +
                               ", not " + quoted(type));
  return nullptr;
}

std::optional<std::int64_t> FunctionVerifier::use_index(Operand& operand) {
  const ValueInfo* value = use(operand, ScalarType{Element::Index});
  if (value == nullptr || !value->constant) return std::nullopt;
  return value->constant->bits;
}

std::vector<ValueInfo> FunctionVerifier::run() {
  scope_.open();
  for (Parameter& parameter : function_.parameters) {
    const Type& type = parameter.type.type;
    if (!std::holds_alternative<PointerType>(type) && !std::holds_alternative<ScalarType>(type)) {
      report(parameter.type.position, "a parameter is a pointer or a scalar, not " + quoted(type));
    }
    define(parameter.name, type);
  }
  for (Statement& statement : function_.body.statements) check_statement(statement);
  scope_.close();
  return std::move(values_);
}

void FunctionVerifier::check_statement(Statement& statement) {
  if (diagnostics_.size() >= kMaxDiagnostics) return;
  std::visit([&](auto& op) { check(statement, op); }, statement.node);
}

void FunctionVerifier::check(Statement& statement, ConstantOp& op) {
  define(statement.results[0], ScalarType{op.constant.element}).constant = op.constant;
}

void FunctionVerifier::check(Statement& statement, ScalarOp& op) {
  const ScalarSpec& spec = *op.spec;
  const auto element_in = [&](const TypeUse& written, Elements allowed) -> std::optional<Element> {
    const auto* scalar = std::get_if<ScalarType>(&written.type);
    if (scalar != nullptr && contains(allowed, scalar->element)) return scalar->element;
    report(written.position, quoted(spec.mnemonic) + " takes " + names_of(allowed) + " here, not " +
                                 quoted(written.type));
    return std::nullopt;
  };
  const auto from = element_in(op.source, spec.from);
  std::size_t first = 0;
  if (spec.form == ScalarForm::Select) {
    use(op.operands[0], ScalarType{Element::I1});
    first = 1;
  }
  for (std::size_t i = first; i < op.operands.size(); ++i) {
    if (from) {
      use(op.operands[i], op.source.type);
    } else {
      use(op.operands[i]);  // the type was complained about already
    }
  }

  Type result = op.source.type;
  if (spec.form == ScalarForm::Compare) result = ScalarType{Element::I1};
  if (spec.form == ScalarForm::Convert) {
    const auto to = element_in(op.target, spec.to);
    result = op.target.type;
    const bool grows = from && to && width(*to) > width(*from);
    const bool shrinks = from && to && width(*to) < width(*from);
    if (from && to &&
        ((spec.widths == Widths::Grow && !grows) || (spec.widths == Widths::Shrink && !shrinks))) {
      report(op.target.position, quoted(spec.mnemonic) + " needs a " +
                                     (spec.widths == Widths::Grow ? "wider" : "narrower") +
                                     " type than " + quoted(op.source.type));
    }
  }
  define(statement.results[0], result);
}

bool FunctionVerifier::require_scalars(const std::vector<TypeUse>& types) {
  for (const TypeUse& type : types) {
    if (std::holds_alternative<ScalarType>(type.type)) continue;
    report(type.position, "only scalars are carried out of a block, not " + quoted(type.type) +
                              " (tiles are changed in place)");
    return false;
  }
  return true;
}

void FunctionVerifier::check_block(Block& block, const std::vector<TypeUse>& types,
                                   std::string_view what) {
  for (Statement& statement : block.statements) check_statement(statement);
  if (block.yields.size() != types.size() || block.yield_types.size() != block.yields.size()) {
    report(block.end, std::string(what) + " of " + count_text(types.size(), "typed value"));
    return;
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (block.yield_types[i].type != types[i].type) {
      report(block.yield_types[i].position, "the yielded value must be " + quoted(types[i].type));
    }
    use(block.yields[i], types[i].type);
  }
}

void FunctionVerifier::check_initial(std::vector<Operand>& initial,
                                     const std::vector<TypeUse>& types) {
  for (std::size_t i = 0; i < initial.size(); ++i) {
    if (i < types.size()) {
      use(initial[i], types[i].type);
    } else {
      use(initial[i]);
    }
  }
}

void FunctionVerifier::check(Statement& statement, ForOp& op) {
  use_index(op.lower);
  use_index(op.upper);
  const auto step = use_index(op.step);
  if (step && *step <= 0) report(op.step.position, "the step of a loop must be positive");
  const bool counts_agree =
      op.carried.size() == op.types.size() && statement.results.size() == op.types.size();
  if (!counts_agree) {
    report(statement.position, "the loop has " + count_text(op.carried.size(), "carried value") +
                                   ", " + count_text(op.types.size(), "result type") + " and " +
                                   count_text(statement.results.size(), "result"));
  }
  require_scalars(op.types);
  check_initial(op.initial, op.types);
  const Type fallback = ScalarType{Element::Index};
  const auto type_of = [&](std::size_t i) {
    return i < op.types.size() ? op.types[i].type : fallback;
  };
  scope_.open();
  define(op.induction, fallback);
  for (std::size_t i = 0; i < op.carried.size(); ++i) define(op.carried[i], type_of(i));
  check_block(op.body, op.types, "the loop body must end with scf.yield");
  scope_.close();
  for (std::size_t i = 0; i < statement.results.size(); ++i) {
    define(statement.results[i], type_of(i));
  }
}

void FunctionVerifier::check(Statement& statement, IfOp& op) {
  use(op.condition, ScalarType{Element::I1});
  if (statement.results.size() != op.types.size()) {
    report(statement.position, "the branch has " + count_text(op.types.size(), "result type") +
                                   " and " + count_text(statement.results.size(), "result"));
  }
  require_scalars(op.types);
  scope_.open();
  check_block(op.then_block, op.types, "the branch must end with scf.yield");
  scope_.close();
  if (op.else_block) {
    scope_.open();
    check_block(*op.else_block, op.types, "the else branch must end with scf.yield");
    scope_.close();
  } else if (!op.types.empty()) {
    report(statement.position, "a branch with results needs an else");
  }
  for (std::size_t i = 0; i < statement.results.size(); ++i) {
    const bool typed = i < op.types.size();
    define(statement.results[i], typed ? op.types[i].type : Type{ScalarType{Element::Index}});
  }
}

// Defines what a while loop's second block receives.
void FunctionVerifier::check_arguments(Block& block, const std::vector<TypeUse>& types,
                                       Position position) {
  if (block.arguments.size() != types.size()) {
    report(position, "the body of the loop has " + count_text(block.arguments.size(), "argument") +
                         " but receives " + count_text(types.size(), "value"));
  }
  for (std::size_t i = 0; i < block.arguments.size(); ++i) {
    Parameter& argument = block.arguments[i];
    if (i < types.size() && argument.type.type != types[i].type) {
      report(argument.type.position, "this argument receives " + quoted(types[i].type));
    }
    define(argument.name, argument.type.type);
  }
}

void FunctionVerifier::check(Statement& statement, WhileOp& op) {
  if (op.carried.size() != op.carried_types.size() || statement.results.size() != op.types.size()) {
    report(statement.position, "the loop has " + count_text(op.carried.size(), "carried value") +
                                   " of " + count_text(op.carried_types.size(), "type") + " and " +
                                   count_text(statement.results.size(), "result") + " of " +
                                   count_text(op.types.size(), "type"));
  }
  require_scalars(op.carried_types);
  require_scalars(op.types);
  check_initial(op.initial, op.carried_types);
  const Type fallback = ScalarType{Element::Index};
  scope_.open();
  for (std::size_t i = 0; i < op.carried.size(); ++i) {
    const bool typed = i < op.carried_types.size();
    define(op.carried[i], typed ? op.carried_types[i].type : fallback);
  }
  check_block(op.before, op.types, "the first block of the loop must end with scf.condition");
  if (op.before.condition) {
    use(*op.before.condition, ScalarType{Element::I1});
  } else {
    report(op.before.end, "the first block of the loop must end with scf.condition");
  }
  scope_.close();
  scope_.open();
  check_arguments(op.after, op.types, statement.position);
  check_block(op.after, op.carried_types, "the loop body must end with scf.yield");
  scope_.close();
  for (std::size_t i = 0; i < statement.results.size(); ++i) {
    define(statement.results[i], i < op.types.size() ? op.types[i].type : fallback);
  }
}

}  // namespace ptoas
