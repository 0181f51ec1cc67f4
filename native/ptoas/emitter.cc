#include "emitter.h"

#include <cstdio>

#include "headers.h"
#include "number.h"

namespace ptoas {
namespace {

// Every byte that is not plain text becomes a three-digit octal escape, which, unlike a
// hexadecimal one, cannot swallow what follows. '?' would start trigraphs.
std::string cpp_string(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte > 0x7e || c == '"' || c == '\\' || c == '?') {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\%03o", byte);
      out += escape;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// A template's text with $0.. and $S, $T replaced.
std::string expand(std::string_view text, const std::vector<std::string>& operands,
                   std::string_view source, std::string_view target) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$') {
      out += text[i];
      continue;
    }
    const char what = text[++i];
    if (what == 'S') {
      out += source;
    } else if (what == 'T') {
      out += target;
    } else {
      out += operands[static_cast<std::size_t>(what - '0')];
    }
  }
  return out;
}

class FunctionEmitter {
 public:
  FunctionEmitter(const Function& function, const std::vector<ValueInfo>& values,
                  const Source& source, std::string& out, Headers& headers)
      : function_(function),
        values_(values),
        source_(source),
        out_(out),
        headers_(headers),
        names_(values.size()) {}

  void run() {
    out_ += "__global__ AICORE void " + std::string(function_.name) + "(";
    for (const Parameter& parameter : function_.parameters) {
      if (&parameter != &function_.parameters.front()) out_ += ", ";
      out_ += parameter_cpp(parameter.type.type) + " " + name(parameter.name);
    }
    out_ += ") {\n";
    emit_statements(function_.body);
    out_ += "}\n";
  }

 private:
  // What is written next is declared there; nothing where it is the language's own.
  void need(std::string_view header) {
    if (!header.empty()) headers_.insert(header);
  }

  std::string_view element_cpp(Element element) {
    need(info(element).header);
    return info(element).cpp;
  }

  std::string_view scalar_cpp(const TypeUse& type) {
    return element_cpp(std::get<ScalarType>(type.type).element);
  }

  std::string parameter_cpp(const Type& type) {
    if (const auto* pointer = std::get_if<PointerType>(&type)) {
      return "__gm__ " + std::string(element_cpp(pointer->element)) + "*";
    }
    return std::string(element_cpp(std::get<ScalarType>(type).element));
  }

  std::string tile_cpp(const TileType& tile) {
    need(header::kTile);
    std::string out = "pto::Tile<pto::TileType::";
    out += info(tile.space).cpp;
    out += ", ";
    out += element_cpp(tile.element);
    out += ", " + std::to_string(tile.rows) + ", " + std::to_string(tile.cols) + ", pto::BLayout::";
    out += block_layouts()[tile.block_layout].cpp;
    out += ", -1, -1, pto::SLayout::";
    out += inner_layouts()[tile.inner_layout].cpp;
    out += ", " + std::to_string(tile.fractal) + ", pto::PadValue::";
    out += pad_values()[tile.pad].cpp;
    return out + ">";
  }

  std::string fresh() { return "v" + std::to_string(++last_); }

  const std::string& name(const Result& result) { return names_[result.value] = fresh(); }

  // The variable of a value, or the literal of a constant.
  std::string text(const Operand& operand) {
    const ValueInfo& value = values_[operand.value];
    if (!value.constant) return names_[operand.value];
    need(info(value.constant->element).header);
    return cpp_literal(value.constant->element, value.constant->bits);
  }

  std::optional<std::int64_t> constant(const Operand& operand) const {
    const ValueInfo& value = values_[operand.value];
    if (!value.constant) return std::nullopt;
    return value.constant->bits;
  }

  void line(const std::string& text) {
    out_.append(2 * static_cast<std::size_t>(depth_), ' ');
    out_ += text;
    out_ += '\n';
  }

  void place(const Statement& statement) {
    const UserLocation nowhere;
    const UserLocation& user = statement.location ? *statement.location : nowhere;
    line("PTO_AT(" + std::to_string(source_.locate(statement.position).line) + ", " +
         cpp_string(user.unit) + ", " + std::to_string(user.line) + ", " +
         std::to_string(user.column) + ");");
  }

  void emit_statements(const Block& block) {
    ++depth_;
    for (const Statement& statement : block.statements) {
      if (records_place(statement)) place(statement);
      std::visit([&](const auto& op) { emit(statement, op); }, statement.node);
    }
    --depth_;
  }

  // What may end in a fault says first where it came from.
  bool records_place(const Statement& statement) const {
    const Node& node = statement.node;
    if (const auto* op = std::get_if<ScalarOp>(&node)) return op->spec->faults;
    if (const auto* op = std::get_if<ForOp>(&node)) return !constant(op->step);
    if (std::holds_alternative<WhileOp>(node)) return false;
    return !std::holds_alternative<ConstantOp>(node) && !std::holds_alternative<IfOp>(node);
  }

  bool records_place(const Block& block) const {
    for (const Statement& statement : block.statements) {
      if (records_place(statement)) return true;
    }
    return false;
  }

  void emit(const Statement&, const ConstantOp&) {}  // written where it is used

  void emit(const Statement& statement, const ScalarOp& op) {
    std::vector<std::string> operands;
    for (const Operand& operand : op.operands) operands.push_back(text(operand));
    const bool compares = op.spec->form == ScalarForm::Compare;
    const std::string_view cpp = compares ? op.predicate->cpp : op.spec->cpp;
    need(header_of(cpp));
    const std::string value = expand(cpp, operands, scalar_cpp(op.source), scalar_cpp(op.target));
    const std::string type = compares ? "bool" : std::string(scalar_cpp(op.target));
    line("const " + type + " " + name(statement.results[0]) + " = " + value + ";");
  }

  // Five extents, right-aligned: what is missing in front is `filler`. Constants become template
  // arguments, the rest -1; all are passed to the constructor.
  std::string five(std::string_view type, const std::vector<Operand>& operands) const {
    std::string fixed;
    for (std::size_t i = 0; i < kMaxRank; ++i) {
      const std::size_t missing = kMaxRank - operands.size();
      const auto value =
          i < missing ? std::optional<std::int64_t>(1) : constant(operands[i - missing]);
      fixed += (i == 0 ? "" : ", ") + std::to_string(value.value_or(-1));
    }
    return "pto::" + std::string(type) + "<" + fixed + ">";
  }

  std::string padded(const std::vector<Operand>& operands, std::string_view filler) {
    std::string out;
    for (std::size_t i = 0; i < kMaxRank; ++i) {
      if (i != 0) out += ", ";
      const std::size_t missing = kMaxRank - operands.size();
      out += i < missing ? std::string(filler) : text(operands[i - missing]);
    }
    return out;
  }

  void emit(const Statement& statement, const MakeViewOp& op) {
    const auto& view = std::get<ViewType>(op.type.type);
    need(header::kGlobalTensor);
    const std::string shape = five("Shape", op.shape);
    const std::string stride = five("Stride", op.strides);
    line("pto::GlobalTensor<" + std::string(element_cpp(view.element)) + ", " + shape + ", " +
         stride + ", pto::Layout::" + std::string(op.layout) + "> " + name(statement.results[0]) +
         "(" + text(op.pointer) + ", " + shape + "(" + padded(op.shape, "1") + "), " + stride +
         "(" + padded(op.strides, "1") + "));");
  }

  void emit(const Statement& statement, const PartitionOp& op) {
    need(header::kGlobalTensor);
    const std::string view = text(op.view);
    line("auto " + name(statement.results[0]) + " = pto::partition_view(" + view + ", {" +
         padded(op.offsets, "0") + "}, {" + padded(op.sizes, "1") + "});");
  }

  void emit(const Statement& statement, const AllocTileOp& op) {
    const auto& tile = std::get<TileType>(op.type.type);
    const auto extent = [&](const std::optional<Operand>& operand, std::int64_t fixed) {
      return operand ? text(*operand) : std::to_string(fixed);
    };
    const std::string& variable = name(statement.results[0]);
    line(tile_cpp(tile) + " " + variable + "(" + extent(op.valid_rows, tile.valid_rows) + ", " +
         extent(op.valid_cols, tile.valid_cols) + ");");
    line("pto::TASSIGN(" + variable + ", " + text(*op.address) + ");");
  }

  void emit(const Statement&, const SetValidShapeOp& op) {
    line(text(op.tile) + ".SetValidShape(" + text(op.rows) + ", " + text(op.cols) + ");");
  }

  // The indices of an element; a view has five.
  std::string element(const TypeUse& type, const std::vector<Operand>& indices) {
    if (std::holds_alternative<ViewType>(type.type)) return "{" + padded(indices, "0") + "}";
    return text(indices[0]) + ", " + text(indices[1]);
  }

  void emit(const Statement& statement, const LoadElementOp& op) {
    line("const " + std::string(scalar_cpp(op.type)) + " " + name(statement.results[0]) + " = " +
         text(op.source) + ".GetValue(" + element(op.source_type, op.indices) + ");");
  }

  void emit(const Statement&, const StoreElementOp& op) {
    line(text(op.target) + ".SetValue(" + element(op.target_type, op.indices) + ", " +
         text(op.value) + ");");
  }

  void emit(const Statement&, const InstructionOp& op) {
    need(op.spec->header);
    std::string call = "pto::" + std::string(op.spec->call) + "(";
    for (const char index : op.spec->arguments) {
      if (index != op.spec->arguments.front()) call += ", ";
      const auto i = static_cast<std::size_t>(index - '0');
      call += text(i == 0 ? op.outs[0] : op.ins[i - 1]);
    }
    if (op.attribute_value != nullptr && !op.attribute_value->cpp.empty()) {
      call += ", " + std::string(op.attribute_value->cpp);
    }
    line(call + ");");
  }

  // Assigns all at once: a yielded value may be a carried one that is assigned here too.
  void assign(const std::vector<std::string>& targets, const Block& block,
              const std::vector<TypeUse>& types) {
    ++depth_;
    std::vector<std::string> sources;
    bool crossing = false;
    for (std::size_t i = 0; i < targets.size(); ++i) {
      sources.push_back(text(block.yields[i]));
      for (std::size_t j = 0; j < i; ++j) crossing |= sources[i] == targets[j];
    }
    if (crossing) {
      for (std::size_t i = 0; i < targets.size(); ++i) {
        const std::string held = fresh();
        line("const " + std::string(scalar_cpp(types[i])) + " " + held + " = " + sources[i] + ";");
        sources[i] = held;
      }
    }
    for (std::size_t i = 0; i < targets.size(); ++i) {
      if (sources[i] != targets[i]) line(targets[i] + " = " + sources[i] + ";");
    }
    --depth_;
  }

  void emit(const Statement& statement, const ForOp& op) {
    std::string step = text(op.step);
    if (!constant(op.step)) {
      need(header::kScalarOps);
      const std::string checked = fresh();
      line("const int64_t " + checked + " = pto::scalar::loop_step(" + step + ");");
      step = checked;
    }
    std::vector<std::string> carried;
    for (std::size_t i = 0; i < op.carried.size(); ++i) {
      const std::string initial = text(op.initial[i]);
      carried.push_back(name(op.carried[i]));
      line(std::string(scalar_cpp(op.types[i])) + " " + carried[i] + " = " + initial + ";");
    }
    const std::string i = name(op.induction);
    std::string next = "++" + i;
    if (constant(op.step) != 1) {
      need(header::kScalarOps);
      next = i + " = pto::scalar::loop_next(" + i + ", " + step + ")";
    }
    line("for (int64_t " + i + " = " + text(op.lower) + "; " + i + " < " + text(op.upper) + "; " +
         next + ") {");
    place_round(statement, records_place(op.body));
    emit_statements(op.body);
    assign(carried, op.body, op.types);
    line("}");
    // After the loop nothing assigns the carried variables, so they are the results.
    for (std::size_t r = 0; r < statement.results.size(); ++r) {
      names_[statement.results[r].value] = carried[r];
    }
  }

  // Every round of a loop has a place, where a run that was cancelled ends.
  void place_round(const Statement& statement, bool has_place) {
    if (has_place) return;
    ++depth_;
    place(statement);
    --depth_;
  }

  void emit(const Statement& statement, const WhileOp& op) {
    std::vector<std::string> carried;
    for (std::size_t i = 0; i < op.carried.size(); ++i) {
      const std::string initial = text(op.initial[i]);
      carried.push_back(name(op.carried[i]));
      line(std::string(scalar_cpp(op.carried_types[i])) + " " + carried[i] + " = " + initial + ";");
    }
    // What the condition hands on outlives the loop: it is also the results.
    std::vector<std::string> handed;
    for (std::size_t i = 0; i < op.types.size(); ++i) {
      handed.push_back(name(op.after.arguments[i].name));
      names_[statement.results[i].value] = handed[i];
      line(std::string(scalar_cpp(op.types[i])) + " " + handed[i] + "{};");
    }
    line("while (true) {");
    place_round(statement, records_place(op.before) || records_place(op.after));
    emit_statements(op.before);
    assign(handed, op.before, op.types);
    ++depth_;
    line("if (!" + text(*op.before.condition) + ") break;");
    --depth_;
    emit_statements(op.after);
    assign(carried, op.after, op.carried_types);
    line("}");
  }

  void emit(const Statement& statement, const IfOp& op) {
    std::vector<std::string> results;
    for (std::size_t i = 0; i < statement.results.size(); ++i) {
      results.push_back(name(statement.results[i]));
      line(std::string(scalar_cpp(op.types[i])) + " " + results[i] + "{};");
    }
    line("if (" + text(op.condition) + ") {");
    emit_statements(op.then_block);
    assign(results, op.then_block, op.types);
    if (op.else_block) {
      line("} else {");
      emit_statements(*op.else_block);
      assign(results, *op.else_block, op.types);
    }
    line("}");
  }

  const Function& function_;
  const std::vector<ValueInfo>& values_;
  const Source& source_;
  std::string& out_;
  Headers& headers_;
  std::vector<std::string> names_;  // by ValueId
  std::uint32_t last_ = 0;
  int depth_ = 0;
};

}  // namespace

std::string emit(const CheckedModule& checked, const Source& source) {
  std::string functions;
  Headers headers{header::kFault};  // the places of statements, and the words before a function
  for (std::size_t i = 0; i < checked.module.functions.size(); ++i) {
    functions += '\n';
    FunctionEmitter(checked.module.functions[i], checked.values[i], source, functions, headers)
        .run();
  }
  std::string out;
  for (const std::string_view header : headers) out += "#include \"" + std::string(header) + "\"\n";
  return out + "using namespace pto;\n" + functions;
}

}  // namespace ptoas
