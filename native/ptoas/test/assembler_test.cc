// Every row of every table can be used, and what is emitted for it.
#include "../assembler.h"

#include "check.h"
#include "samples.h"

namespace {

using namespace ptoas;
using namespace ptoas::test;

std::string assembled(const std::string& text) {
  auto source = Source::from_text("t.pto", text);
  auto out = assemble(*source, "");
  if (out) return *out;
  std::string errors;
  for (const Diagnostic& diagnostic : out.error()) errors += source->render(diagnostic);
  return errors;
}

bool succeeds(const std::string& text) {
  auto source = Source::from_text("t.pto", text);
  return static_cast<bool>(assemble(*source, ""));
}

void every_row_is_usable() {
  for (const std::string& text : all_samples()) {
    if (!succeeds(text)) fail(__FILE__, __LINE__, assembled(text) + text);
  }
}

void every_row_emits_its_call() {
  for (const InstructionSpec& spec : instruction_table()) {
    const Elements takes = worked_on(spec).elements;
    const Element element = contains(takes, Element::F32) ? Element::F32 : Element::I32;
    const std::string out = assembled(use_of(spec, element));
    CHECK_HOLDS(out, "pto::" + std::string(spec.call) + "(");
  }
}

void rows_of_a_mnemonic_stand_together() {
  for (const InstructionSpec& spec : instruction_table()) {
    const auto rows = instructions_named(spec.mnemonic);
    CHECK(&spec >= rows.data() && &spec < rows.data() + rows.size());
  }
}

// The reserved results: the same text gives the same bytes under any file name.
void output_is_deterministic() {
  auto a = Source::from_text("/some/where/a.pto", std::string(kStructure));
  auto b = Source::from_text("b.pto", std::string(kStructure));
  CHECK_EQ(*assemble(*a, ""), *assemble(*b, "a5"));
}

void structure() {
  const std::string out = assembled(std::string(kStructure));
  CHECK_EQ(out, R"(#include "pto/sim/dtypes.hpp"
#include "pto/sim/fault.hpp"
#include "pto/sim/global_tensor.hpp"
#include "pto/sim/scalar_ops.hpp"
#include "pto/sim/tile.hpp"
#include "pto/sim/transfer.hpp"
using namespace pto;

__global__ AICORE void g(__gm__ pto::bfloat16_t* v1, int64_t v2, float v3, bool v4) {
  PTO_AT(9, "", 0, 0);
  pto::GlobalTensor<pto::bfloat16_t, pto::Shape<1, 1, 1, -1, 8>, pto::Stride<1, 1, 1, 8, 1>, pto::Layout::DN> v5(v1, pto::Shape<1, 1, 1, -1, 8>(1, 1, 1, v2, 8), pto::Stride<1, 1, 1, 8, 1>(1, 1, 1, 8, 1));
  PTO_AT(10, "", 0, 0);
  pto::Tile<pto::TileType::Vec, pto::bfloat16_t, 16, 16, pto::BLayout::RowMajor, -1, -1, pto::SLayout::NoneBox, 512, pto::PadValue::Max> v6(v2, 8);
  pto::TASSIGN(v6, 96);
  float v7 = v3;
  int64_t v8 = 0;
  for (int64_t v9 = 0; v9 < v2; ++v9) {
    PTO_AT(12, "", 0, 0);
    auto v10 = pto::partition_view(v5, {0, 0, 0, v9, 0}, {1, 1, 1, v2, 8});
    PTO_AT(13, "m:f", 3, 4);
    pto::TLOAD(v6, v10);
    PTO_AT(14, "", 0, 0);
    v6.SetValidShape(1, 8);
    float v11{};
    int64_t v12{};
    if (v4) {
      PTO_AT(16, "", 0, 0);
      const int64_t v13 = pto::scalar::divsi<int64_t>(v9, v2);
      v11 = __builtin_bit_cast(float, static_cast<uint32_t>(0x7F800000));
      v12 = v13;
    } else {
      v11 = v7;
      v12 = v8;
    }
    v7 = v11;
    v8 = v12;
  }
}
)");
}

// A yield may exchange carried values; assigning one after the other would lose one.
void yields_are_simultaneous() {
  const std::string out = assembled(in_function(
      "%i0 = arith.constant 0 : index\n%i3 = arith.constant 3 : index\n"
      "%a, %b = scf.for %i = %i0 to %n step %i3 iter_args(%x = %i0, %y = %n) -> (index, index) {\n"
      "scf.yield %y, %x : index, index\n}\n"));
  CHECK_HOLDS(out, R"(  int64_t v3 = 0;
  int64_t v4 = v2;
  for (int64_t v5 = 0; v5 < v2; v5 = pto::scalar::loop_next(v5, 3)) {
    PTO_AT(6, "", 0, 0);
    const int64_t v6 = v4;
    const int64_t v7 = v3;
    v3 = v6;
    v4 = v7;
  }
)");
}

void while_loops() {
  const std::string out = assembled(
      in_function("%i0 = arith.constant 0 : index\n%i3 = arith.constant 3 : index\n"
                  "%a, %b = scf.while (%x = %i0, %y = %n) : (index, index) -> (index, index) {\n"
                  "%more = arith.cmpi slt, %x, %n : index\n"
                  "scf.condition(%more) %y, %x : index, index\n} do {\n"
                  "^bb0(%u: index, %w: index):\n"
                  "%next = arith.addi %w, %i3 : index\n"
                  "scf.yield %next, %u : index, index\n}\n"
                  "%sum = arith.addi %a, %b : index\n"));
  CHECK_HOLDS(out, R"(  int64_t v3 = 0;
  int64_t v4 = v2;
  int64_t v5{};
  int64_t v6{};
  while (true) {
    PTO_AT(6, "", 0, 0);
    const bool v7 = v3 < v2;
    v5 = v4;
    v6 = v3;
    if (!v7) break;
    const int64_t v8 = pto::scalar::addi<int64_t>(v6, 3);
    v3 = v8;
    v4 = v5;
  }
  const int64_t v9 = pto::scalar::addi<int64_t>(v5, v6);
)");
}

// Tiles are changed in place, so a loop may carry nothing.
void while_loops_may_carry_nothing() {
  const std::string out = assembled(
      in_function("%b = arith.constant true\nscf.while : () -> () {\nscf.condition(%b)\n} do {\n"
                  "scf.yield\n}\n"));
  CHECK_HOLDS(out, R"(  while (true) {
    PTO_AT(5, "", 0, 0);
    if (!true) break;
  }
)");
}

void elements() {
  const std::string tile = tile_text(Space::Vec, Element::F32, 8, 8);
  const std::string view = "!pto.tensor_view<?x?xf32>";
  const std::string out = assembled(
      in_function("%i8 = arith.constant 8 : index\n%i1 = arith.constant 1 : index\n"
                  "%v = pto.make_tensor_view %p, shape = [%n, %i8], strides = [%i8, %i1] : " +
                  view + "\n%t = pto.alloc_tile addr = %c0 : " + tile +
                  "\n%e = pto.load_scalar %v[%n, %i1] : " + view + " -> f32\n" +
                  "pto.store_scalar %e, %t[%i1, %n] : f32, " + tile +
                  "\n%g = pto.load_scalar %t[%n, %n] : " + tile + " -> f32\n" +
                  "pto.store_scalar %g, %v[%i1, %i1] : f32, " + view + " loc(\"m:f\":3:4)\n"));
  CHECK_HOLDS(out, "const float v5 = v3.GetValue({0, 0, 0, v2, 1});");
  CHECK_HOLDS(out, "v4.SetValue(1, v2, v5);");
  CHECK_HOLDS(out, "const float v6 = v4.GetValue(v2, v2);");
  CHECK_HOLDS(out, "PTO_AT(11, \"m:f\", 3, 4);\n  v3.SetValue({0, 0, 0, 1, 1}, v6);");
}

void dynamic_steps_are_checked() {
  const std::string out = assembled(in_function("scf.for %i = %n to %n step %n {\n}\n"));
  CHECK_HOLDS(out, "const int64_t v3 = pto::scalar::loop_step(v2);");
}

// Text of the input cannot become C++.
void strings_are_escaped() {
  const std::string out = assembled(
      in_function("%t = pto.alloc_tile addr = %c0 : " + tile_text(Space::Vec, Element::F32, 8, 8) +
                  " loc(\"a\\\"); evil(); \\5C ?\?/ \\0A\xC3\xA9\":1:2)\n"));
  CHECK_HOLDS(out, R"(PTO_AT(4, "a\042); evil(); \134 \077\077/ \012\303\251", 1, 2);)");
}

void old_operand_spelling() {
  const std::string tile = tile_text(Space::Vec, Element::F32, 8, 8);
  CHECK(succeeds(in_function("%t = pto.alloc_tile addr = %c0 : " + tile + "\npto.tadd ins(%t : " +
                             tile + ", %t : " + tile + ") outs(%t : " + tile + ")\n")));
}

void attributes_choose_the_mode() {
  const std::string from = tile_text(Space::Vec, Element::F32, 8, 8);
  const std::string to = tile_text(Space::Vec, Element::I32, 8, 8);
  const auto with = [&](const std::string& attribute) {
    return assembled(in_function(
        "%a = pto.alloc_tile addr = %c0 : " + from + "\n%b = pto.alloc_tile addr = %c0 : " + to +
        "\npto.tcvt ins(%a : " + from + ") outs(%b : " + to + ") " + attribute + "\n"));
  };
  CHECK_HOLDS(with(""), "pto::TCVT(v4, v3, pto::RoundMode::CAST_RINT);");
  CHECK_HOLDS(with("{rmode = #pto<round_mode TRUNC>}"), "pto::RoundMode::CAST_TRUNC);");
  CHECK_HOLDS(with("{rmode = #pto.round_mode<FLOOR>}"), "pto::RoundMode::CAST_FLOOR);");
  CHECK_HOLDS(with("{rmode = #pto<round_mode SIDEWAYS>}"), "error: rmode is #pto<round_mode");
  CHECK_HOLDS(with("{mode = #pto<round_mode TRUNC>}"), "has only the attribute rmode");
}

void a_store_may_add() {
  const auto with = [](Element element, const std::string& attribute) {
    const std::string tile = tile_text(Space::Vec, element, 8, 32);
    const std::string name(info(element).name);
    const std::string view = "!pto.tensor_view<?x?x" + name + ">";
    const std::string part = "!pto.partition_tensor_view<8x32x" + name + ">";
    return assembled(
        "module attributes {pto.target_arch = \"a2a3\"} { func.func @f(%p: !pto.ptr<" + name +
        ">, %n: index) {\n" +
        "%zero = arith.constant 0 : index\n%eight = arith.constant 8 : index\n" +
        "%wide = arith.constant 32 : index\n%c0 = arith.constant 0 : i64\n" +
        "%v = pto.make_tensor_view %p, shape = [%n, %wide], strides = [%wide, %n] : " + view +
        "\n%t = pto.alloc_tile addr = %c0 : " + tile +
        "\n%w = pto.partition_view %v, offsets = [%zero, %zero], sizes = [%eight, %wide] : " +
        view + " -> " + part + "\npto.tstore ins(%t : " + tile + ") outs(%w : " + part + ") " +
        attribute + "\nreturn } }");
  };
  const std::string add = "{atomicType = #pto<atomic_type atomic_add>}";
  for (const Element element : {Element::F32, Element::F16, Element::BF16, Element::I32}) {
    CHECK_HOLDS(with(element, add), ", pto::AtomicType::AtomicAdd);");
  }
  const std::string none = with(Element::F32, "{atomicType = #pto<atomic_type atomic_none>}");
  CHECK_EQ(none, with(Element::F32, ""));
  CHECK(none.find("Atomic") == std::string::npos);
  CHECK_HOLDS(with(Element::UI8, add),
              "error: atomic_add works on f32, f16, bf16, i8, i16, i32, not 'ui8'");
}

}  // namespace

int main() {
  every_row_is_usable();
  every_row_emits_its_call();
  rows_of_a_mnemonic_stand_together();
  output_is_deterministic();
  structure();
  yields_are_simultaneous();
  dynamic_steps_are_checked();
  while_loops();
  while_loops_may_carry_nothing();
  elements();
  strings_are_escaped();
  old_operand_spelling();
  attributes_choose_the_mode();
  a_store_may_add();
  return result();
}
