// Texts that several tests share, built from the assembler's own tables so that a new row is in
// every test that uses them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "../instruction_table.h"
#include "../scalar_table.h"
#include "../types.h"

namespace ptoas::test {

inline std::string tile_text(Space space, Element element, std::int64_t rows, std::int64_t cols) {
  TileType tile;
  tile.space = space;
  tile.element = element;
  tile.rows = tile.valid_rows = rows;
  tile.cols = tile.valid_cols = cols;
  return to_text(tile);
}

// A module around a body whose %p is a pointer and whose %n is an index.
inline std::string in_function(const std::string& body, std::string_view element = "f32") {
  return "module attributes {pto.target_arch = \"a2a3\"} {\nfunc.func @f(%p: !pto.ptr<" +
         std::string(element) + ">, %n: index) {\n%c0 = arith.constant 0 : i64\n" + body +
         "return\n}\n}\n";
}

struct Extent {
  std::int64_t rows;
  std::int64_t cols;
};

// Extents that satisfy the row's rules: matrices 16 x 16, per-row columns 16 x 1, and so on.
inline Extent extent_of(const InstructionSpec& spec, std::size_t operand) {
  const std::string_view role = spec.operands[operand].role;
  if (role == "per-row operand") return {16, 1};
  if (role == "per-column operand") return {1, 16};
  if (spec.mnemonic.starts_with("pto.trow") && !spec.mnemonic.starts_with("pto.trowexpand") &&
      operand == 0) {
    return {16, 1};
  }
  if (spec.mnemonic.starts_with("pto.tcol") && !spec.mnemonic.starts_with("pto.tcolexpand") &&
      operand == 0) {
    return {1, 16};
  }
  if (spec.mnemonic == "pto.tconcat" && operand == 0) return {16, 32};
  return {16, 16};
}

inline Space space_of(const InstructionSpec& spec, std::size_t operand) {
  for (const SpaceInfo& space : all_spaces()) {
    if (contains(spec.operands[operand].spaces, space.space)) return space.space;
  }
  return Space::Vec;
}

// The operand whose elements say what the row works on: the last that is not an offset.
inline const OperandSpec& worked_on(const InstructionSpec& spec) {
  std::size_t last = spec.sources();
  while (spec.operands[last].elements == bit(Element::Index)) --last;
  return spec.operands[last];
}

// A use of the row on tiles of one element; matrix products get their accumulator's.
inline std::string use_of(const InstructionSpec& spec, Element element) {
  const auto element_at = [&](std::size_t i) {
    if (contains(spec.operands[i].elements, element)) return element;
    if (spec.operands[i].elements == bit(Element::I1)) return Element::I1;
    return info(element).family == Family::Integer ? Element::I32 : Element::F32;
  };
  const std::string name(info(element).name);
  const bool products = spec.mnemonic.starts_with("pto.tmatmul");
  std::string head, names[kMaxOperands], types[kMaxOperands];
  for (std::size_t i = 0; i <= spec.sources(); ++i) {
    names[i] = "%o" + std::to_string(i);
    switch (spec.operands[i].kind) {
      case OperandKind::Tile: {
        const bool accumulates = products && space_of(spec, i) == Space::Acc;
        const Element sum = info(element).family == Family::Integer ? Element::I32 : Element::F32;
        const Extent extent = extent_of(spec, i);
        types[i] = tile_text(space_of(spec, i), accumulates ? sum : element_at(i), extent.rows,
                             extent.cols);
        head += names[i] + " = pto.alloc_tile addr = %c0 : " + types[i] + "\n";
        break;
      }
      case OperandKind::Partition:
        types[i] = "!pto.partition_tensor_view<16x16x" + name + ">";
        head +=
            "%i0 = arith.constant 0 : index\n%i16 = arith.constant 16 : index\n"
            "%w = pto.make_tensor_view %p, shape = [%n, %n], strides = [%n, %n] : "
            "!pto.tensor_view<?x?x" +
            name + ">\n" + names[i] +
            " = pto.partition_view %w, offsets = [%i0, %i0], sizes = [%i16, %i16] : "
            "!pto.tensor_view<?x?x" +
            name + "> -> " + types[i] + "\n";
        break;
      case OperandKind::Scalar: {
        const Element own = contains(spec.operands[i].elements, element) ? element : Element::Index;
        const bool is_float = info(own).family == Family::Float;
        types[i] = info(own).name;
        const std::string_view value = is_float ? "1.5" : own == Element::I1 ? "1" : "3";
        head += names[i] + " = arith.constant " + std::string(value) + " : " + types[i] + "\n";
        break;
      }
      case OperandKind::None:
        break;
    }
  }
  std::string ins, in_types;
  for (std::size_t i = 1; i <= spec.sources(); ++i) {
    ins += (i > 1 ? ", " : "") + names[i];
    in_types += (i > 1 ? ", " : "") + types[i];
  }
  return in_function(head + std::string(spec.mnemonic) + " ins(" + ins + " : " + in_types +
                         ") outs(" + names[0] + " : " + types[0] + ")\n",
                     name);
}

// A use of a scalar row.
inline std::string use_of(const ScalarSpec& spec, Element from, Element to) {
  const std::string source(info(from).name), target(info(to).name);
  const bool selects = spec.form == ScalarForm::Select;
  std::string line = "%r = " + std::string(spec.mnemonic) + " ";
  if (!spec.predicates.empty()) line += std::string(spec.predicates.back().name) + ", ";
  for (int i = 0; i < spec.arity; ++i) {
    line += (i > 0 ? ", " : "") + std::string(selects && i == 0 ? "%b" : "%a");
  }
  line += " : " + source;
  if (spec.form == ScalarForm::Convert) line += " to " + target;
  return "module attributes {pto.target_arch = \"a5\"} {\nfunc.func @f(%a: " + source +
         ", %b: i1) {\n" + line + "\nreturn\n}\n}\n";
}

// Control flow, every structural statement and both spellings of operands.
inline constexpr std::string_view kStructure = R"(// comment
module attributes {pto.target_arch = "a5"} {
  func.func @g(%arg0: !pto.ptr<bf16>, %n: index, %x: f32, %q: i1) attributes {pto.kernel_kind = #pto.kernel_kind<vector>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %a = arith.constant 0x60 : i64
    %inf = arith.constant 0x7F800000 : f32
    %view = pto.make_tensor_view %arg0, shape = [%n, %c8], strides = [%c8, %c1] {layout = #pto.layout<dn>} : !pto.tensor_view<?x8xbf16>
    %t = pto.alloc_tile addr = %a valid_row = %n valid_col = %c8 : !pto.tile_buf<loc=vec, dtype=bf16, rows=16, cols=16, v_row=?, v_col=?, blayout=row_major, slayout=none_box, fractal=512, pad=2>
    %sum, %last = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x, %k = %c0) -> (f32, index) {
      %p = pto.partition_view %view, offsets = [%i, %c0], sizes = [%n, %c8] : !pto.tensor_view<?x8xbf16> -> !pto.partition_tensor_view<?x8xbf16>
      pto.tload ins(%p : !pto.partition_tensor_view<?x8xbf16>) outs(%t : !pto.tile_buf<loc=vec, dtype=bf16, rows=16, cols=16, v_row=?, v_col=?, blayout=row_major, slayout=none_box, fractal=512, pad=2>) loc("m:f":3:4)
      pto.set_validshape %t, %c1, %c8 : !pto.tile_buf<loc=vec, dtype=bf16, rows=16, cols=16, v_row=?, v_col=?, blayout=row_major, slayout=none_box, fractal=512, pad=2>
      %both:2 = scf.if %q -> (f32, index) {
        %d = arith.divsi %i, %n : index
        scf.yield %inf, %d : f32, index
      } else {
        scf.yield %s, %k : f32, index
      }
      scf.yield %both#0, %both#1 : f32, index
    }
    return
  }
}
)";

// One valid text for every row of every table, and the structural one.
inline std::vector<std::string> all_samples() {
  std::vector<std::string> out{std::string(kStructure)};
  for (const InstructionSpec& spec : instruction_table()) {
    for (const ElementInfo& element : all_elements()) {
      if (element.in_memory && contains(worked_on(spec).elements, element.element)) {
        out.push_back(use_of(spec, element.element));
      }
    }
  }
  for (const ScalarSpec& spec : scalar_table()) {
    for (const ElementInfo& from : all_elements()) {
      if (!contains(spec.from, from.element)) continue;
      if (spec.form != ScalarForm::Convert) {
        out.push_back(use_of(spec, from.element, from.element));
        continue;
      }
      for (const ElementInfo& to : all_elements()) {
        const bool fits = spec.widths == Widths::Any ||
                          (spec.widths == Widths::Grow ? to.bits > from.bits : to.bits < from.bits);
        if (contains(spec.to, to.element) && fits) {
          out.push_back(use_of(spec, from.element, to.element));
        }
      }
    }
  }
  return out;
}

}  // namespace ptoas::test
