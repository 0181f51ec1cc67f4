// Views, tiles and the instructions on them.
#include "function_verifier.h"

namespace ptoas {
namespace {

std::string ordinal_of(std::size_t dim) { return "dimension " + std::to_string(dim); }

OperandKind kind_of(const Type& type) {
  if (std::holds_alternative<TileType>(type)) return OperandKind::Tile;
  if (std::holds_alternative<PartitionType>(type)) return OperandKind::Partition;
  if (std::holds_alternative<ScalarType>(type)) return OperandKind::Scalar;
  return OperandKind::None;
}

bool kinds_match(const InstructionSpec& spec, const std::vector<const Type*>& types) {
  if (types.size() != spec.sources() + 1) return false;
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (kind_of(*types[i]) != spec.operands[i].kind) return false;
  }
  return true;
}

Element element_of(const Type& type) {
  return std::visit([](const auto& t) { return t.element; }, type);
}

}  // namespace

void FunctionVerifier::check(Statement& statement, MakeViewOp& op) {
  const auto* view = std::get_if<ViewType>(&op.type.type);
  if (view == nullptr) {
    report(op.type.position, "expected a !pto.tensor_view type, not " + quoted(op.type.type));
    define(statement.results[0], op.type.type);
    return;
  }
  use(op.pointer, PointerType{view->element});
  const std::size_t rank = view->extents.rank;
  if (op.shape.size() != rank || op.strides.size() != rank) {
    report(statement.position, "the view has " + std::to_string(rank) + " dimensions but " +
                                   std::to_string(op.shape.size()) + " extents and " +
                                   std::to_string(op.strides.size()) + " strides");
  }
  if (op.layout == "NZ" && rank != 2) {
    report(statement.position, "a view in layout nz has two dimensions");
  }
  Extents known = view->extents;
  for (std::size_t i = 0; i < op.shape.size(); ++i) {
    const auto extent = use_index(op.shape[i]);
    if (extent && *extent < 0) report(op.shape[i].position, "an extent cannot be negative");
    if (i >= rank) continue;
    if (view->extents.values[i] == kDynamic) {
      known.values[i] = extent.value_or(kDynamic);
    } else if (extent != view->extents.values[i]) {
      report(op.shape[i].position,
             ordinal_of(i) + " is " + std::to_string(view->extents.values[i]) +
                 " in the type, so its extent must be that constant (or write '?')");
    }
  }
  for (Operand& stride : op.strides) {
    const auto value = use_index(stride);
    if (value && *value < 0) report(stride.position, "a stride cannot be negative");
  }
  define(statement.results[0], *view).known_extents = known;
}

void FunctionVerifier::check(Statement& statement, PartitionOp& op) {
  const auto* view = std::get_if<ViewType>(&op.view_type.type);
  const auto* part = std::get_if<PartitionType>(&op.type.type);
  if (view == nullptr) {
    report(op.view_type.position,
           "expected a !pto.tensor_view type, not " + quoted(op.view_type.type));
  }
  if (part == nullptr) {
    report(op.type.position,
           "expected a !pto.partition_tensor_view type, not " + quoted(op.type.type));
  }
  const ValueInfo* source = use(op.view, op.view_type.type);
  const Extents whole = source != nullptr ? source->known_extents : Extents{};
  if (view != nullptr && part != nullptr) {
    const std::size_t rank = view->extents.rank;
    if (part->element != view->element) {
      report(op.type.position, "the partition is " + quoted(info(part->element).name) +
                                   " but the view is " + quoted(info(view->element).name));
    }
    if (part->extents.rank != rank || op.offsets.size() != rank || op.sizes.size() != rank) {
      report(statement.position, "the view has " + std::to_string(rank) +
                                     " dimensions; offsets, sizes and the partition's type must "
                                     "have as many");
      define(statement.results[0], op.type.type);
      return;
    }
    for (std::size_t i = 0; i < rank; ++i) {
      const auto offset = use_index(op.offsets[i]);
      const auto size = use_index(op.sizes[i]);
      const std::int64_t written = part->extents.values[i];
      if (written != kDynamic && size != written) {
        report(op.sizes[i].position, ordinal_of(i) + " is " + std::to_string(written) +
                                         " in the type, so its size must be that constant (or "
                                         "write '?')");
      }
      if (offset && *offset < 0) report(op.offsets[i].position, "an offset cannot be negative");
      if (size && *size < 0) report(op.sizes[i].position, "a size cannot be negative");
      const std::int64_t extent = i < whole.rank ? whole.values[i] : kDynamic;
      const std::int64_t from = offset.value_or(0);
      const std::int64_t count = size.value_or(0);
      if (extent == kDynamic || from < 0 || count < 0) continue;
      if (count > extent || from > extent - count) {
        report(op.offsets[i].position, ordinal_of(i) + ": offset " + std::to_string(from) +
                                           " and size " + std::to_string(count) +
                                           " reach outside the view's extent " +
                                           std::to_string(extent));
      }
    }
  }
  define(statement.results[0], op.type.type);
}

void FunctionVerifier::check_address(const AllocTileOp& op, const TileType& tile) {
  const std::int64_t limit = target_.bytes_of(tile.space);
  const std::string room = std::to_string(limit) + " bytes of '" +
                           std::string(info(tile.space).name) + "' memory of " +
                           std::string(target_.arch);
  if (tile.bytes() > limit) {
    report(op.type.position,
           "a tile of " + std::to_string(tile.bytes()) + " bytes does not fit the " + room);
    return;
  }
  const ValueInfo& value = values_[op.address->value];
  if (!value.constant) return;  // checked when the kernel runs
  const std::int64_t address = value.constant->bits;
  if (address < 0 || address % kAddressAlignment != 0) {
    report(op.address->position, "address " + std::to_string(address) + " is not a multiple of " +
                                     std::to_string(kAddressAlignment));
  } else if (address > limit - tile.bytes()) {
    report(op.address->position, "a tile of " + std::to_string(tile.bytes()) +
                                     " bytes at address " + std::to_string(address) +
                                     " does not fit the " + room);
  }
}

void FunctionVerifier::check_valid_operand(Operand& operand, std::int64_t extent,
                                           std::string_view name) {
  const auto value = use_index(operand);
  if (value && (*value < 0 || *value > extent)) {
    report(operand.position, std::string(name) + " is " + std::to_string(*value) +
                                 " but must be from 0 to " + std::to_string(extent));
  }
}

void FunctionVerifier::check(Statement& statement, AllocTileOp& op) {
  const auto* tile = std::get_if<TileType>(&op.type.type);
  if (tile == nullptr) {
    report(op.type.position, "expected a !pto.tile_buf type, not " + quoted(op.type.type));
    define(statement.results[0], op.type.type);
    return;
  }
  if (function_.kind == KernelKind::Vector && tile->space != Space::Vec) {
    report(op.type.position,
           "a vector kernel has only 'vec' tiles, not " + quoted(info(tile->space).name));
  }
  if (!op.address) {
    report(statement.position, "a tile needs its address: addr = %value");
  } else if (use(*op.address, ScalarType{Element::I64}) != nullptr) {
    check_address(op, *tile);
  }
  struct Valid {
    std::optional<Operand>& operand;
    std::int64_t written;
    std::int64_t extent;
    std::string_view name;
    std::string_view field;
  };
  const Valid both[] = {{op.valid_rows, tile->valid_rows, tile->rows, "valid_row", "v_row"},
                        {op.valid_cols, tile->valid_cols, tile->cols, "valid_col", "v_col"}};
  for (const Valid& valid : both) {
    if (valid.operand) check_valid_operand(*valid.operand, valid.extent, valid.name);
    if (valid.operand.has_value() == (valid.written == kDynamic)) continue;
    report(
        valid.operand ? valid.operand->position : statement.position,
        std::string(valid.name) + " is given exactly when " + std::string(valid.field) + " is '?'");
  }
  define(statement.results[0], *tile);
}

void FunctionVerifier::check(Statement&, SetValidShapeOp& op) {
  const auto* tile = std::get_if<TileType>(&op.type.type);
  if (tile == nullptr) {
    report(op.type.position, "expected a !pto.tile_buf type, not " + quoted(op.type.type));
    return;
  }
  use(op.tile, *tile);
  check_valid_operand(op.rows, tile->rows, "the valid row count");
  check_valid_operand(op.cols, tile->cols, "the valid column count");
  if (tile->valid_rows != kDynamic || tile->valid_cols != kDynamic) {
    report(op.type.position,
           "the valid region of this tile is fixed by its type; write v_row=? and v_col=?");
  }
}

std::optional<Element> FunctionVerifier::check_element(Operand& operand, const TypeUse& type,
                                                       std::vector<Operand>& indices) {
  const ValueInfo* value = use(operand, type.type);
  Extents extents;
  std::optional<Element> element;
  if (const auto* view = std::get_if<ViewType>(&type.type)) {
    extents = value != nullptr ? value->known_extents : view->extents;
    element = view->element;
  } else if (const auto* tile = std::get_if<TileType>(&type.type);
             tile != nullptr && tile->space == Space::Vec) {
    extents.rank = 2;
    extents.values[0] = tile->rows;
    extents.values[1] = tile->cols;
    element = tile->element;
  } else {
    report(type.position,
           "elements are those of a !pto.tensor_view or of a tile in 'vec', not of " +
               quoted(type.type));
    return std::nullopt;
  }
  if (indices.size() != extents.rank) {
    report(operand.position, std::to_string(indices.size()) + " indices where " +
                                 std::to_string(extents.rank) + " are needed");
  }
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const auto index = use_index(indices[i]);
    if (!index || i >= extents.rank) continue;
    const std::int64_t extent = extents.values[i];
    if (*index < 0 || (extent != kDynamic && *index >= extent)) {
      report(indices[i].position, ordinal_of(i) + ": index " + std::to_string(*index) +
                                      " is outside the extent " +
                                      (extent == kDynamic ? "?" : std::to_string(extent)));
    }
  }
  return element;
}

void FunctionVerifier::check(Statement& statement, LoadElementOp& op) {
  const auto element = check_element(op.source, op.source_type, op.indices);
  if (element && op.type.type != Type{ScalarType{*element}}) {
    report(op.type.position, "the element is " + quoted(Type{ScalarType{*element}}) + ", not " +
                                 quoted(op.type.type));
  }
  define(statement.results[0], element ? Type{ScalarType{*element}} : op.type.type);
}

void FunctionVerifier::check(Statement&, StoreElementOp& op) {
  const auto element = check_element(op.target, op.target_type, op.indices);
  if (!element) return;
  if (op.type.type != Type{ScalarType{*element}}) {
    report(op.type.position, "the element is " + quoted(Type{ScalarType{*element}}) + ", not " +
                                 quoted(op.type.type));
    return;
  }
  use(op.value, op.type.type);
}

void FunctionVerifier::check_attribute(InstructionOp& op) {
  const AttributeSpec* spec = op.spec->attribute;
  if (spec != nullptr) op.attribute_value = &spec->values[spec->fallback];
  if (!op.attribute) return;
  if (spec == nullptr || op.attribute->name != spec->name) {
    report(op.attribute->position,
           quoted(op.mnemonic) + (spec == nullptr
                                      ? " has no attribute"
                                      : " has only the attribute " + std::string(spec->name)));
    return;
  }
  std::string known;
  for (const AttributeValue& value : spec->values) {
    if (op.attribute->kind == spec->kind && op.attribute->value == value.name) {
      op.attribute_value = &value;
      const Element element = element_of(op.out_types[0].type);
      if (!contains(value.result, element)) {
        report(op.attribute->position, std::string(value.name) + " works on " +
                                           names_of(value.result) + ", not " +
                                           quoted(info(element).name));
      }
      return;
    }
    known += (known.empty() ? "" : ", ") + std::string(value.name);
  }
  report(op.attribute->position, std::string(spec->name) + " is #pto<" + std::string(spec->kind) +
                                     " VALUE> with a value of " + known);
}

bool FunctionVerifier::check_row(const InstructionSpec& spec, InstructionOp& op, Position position,
                                 const std::vector<const Type*>& types) {
  const auto place = [&](std::size_t i) {
    return i == 0 ? op.outs[0].position : op.ins[i - 1].position;
  };
  for (std::size_t i = 0; i < types.size(); ++i) {
    const OperandSpec& operand = spec.operands[i];
    const std::string the = "the " + std::string(operand.role) + " of " + quoted(spec.mnemonic);
    if (const auto* tile = std::get_if<TileType>(types[i]);
        tile != nullptr && !contains(operand.spaces, tile->space)) {
      report(place(i), the + " must be in " + names_of(operand.spaces) + ", not " +
                           quoted(info(tile->space).name));
      return false;
    }
    if (!contains(operand.elements, element_of(*types[i]))) {
      report(place(i), the + " must be " + names_of(operand.elements) + ", not " +
                           quoted(info(element_of(*types[i])).name));
      return false;
    }
  }
  for (const Rule& rule : spec.rules) {
    if (rule.check == nullptr) break;
    if (std::string wrong = rule.check(types, spec, rule.on); !wrong.empty()) {
      report(position, quoted(spec.mnemonic) + ": " + wrong);
      return false;
    }
  }
  return true;
}

void FunctionVerifier::check(Statement& statement, InstructionOp& op) {
  const auto rows = instructions_named(op.mnemonic);
  if (op.in_types.size() != op.ins.size() || op.out_types.size() != op.outs.size()) {
    report(statement.position, quoted(op.mnemonic) + " needs one type for each operand");
    return;
  }
  bool resolved = true;
  for (std::size_t i = 0; i < op.ins.size(); ++i) {
    resolved &= use(op.ins[i], op.in_types[i].type) != nullptr;
  }
  for (std::size_t i = 0; i < op.outs.size(); ++i) {
    resolved &= use(op.outs[i], op.out_types[i].type) != nullptr;
  }
  if (!resolved) return;
  std::vector<const Type*> types;
  for (const TypeUse& type : op.out_types) types.push_back(&type.type);
  for (const TypeUse& type : op.in_types) types.push_back(&type.type);
  std::string forms;
  for (const InstructionSpec& spec : rows) {
    if (op.outs.size() == 1 && kinds_match(spec, types)) op.spec = &spec;
    forms += (forms.empty() ? "" : " or ") + form_text(spec);
  }
  if (op.spec == nullptr) {
    report(statement.position, "expected " + forms);
    return;
  }
  if (check_row(*op.spec, op, statement.position, types)) check_attribute(op);
}

}  // namespace ptoas
