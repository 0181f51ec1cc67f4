// What each mistake is called, and where it is said to be.
#include <algorithm>

#include "../assembler.h"
#include "../parser.h"
#include "check.h"
#include "samples.h"

namespace {

using namespace ptoas;
using namespace ptoas::test;

std::string errors_of(const std::string& text, std::string_view arch = "") {
  auto source = Source::from_text("t.pto", text);
  if (!source) return source.error().message;
  auto out = assemble(*source, arch);
  if (out) return "no error";
  std::string errors;
  for (const Diagnostic& diagnostic : out.error()) errors += source->render(diagnostic);
  return errors;
}

struct Case {
  std::string body;  // in a function with %p: ptr<f32>, %n: index, %c0 = 0 : i64
  std::string message;
};

std::string vec(std::int64_t rows, std::int64_t cols, Element element = Element::F32) {
  return tile_text(Space::Vec, element, rows, cols);
}
std::string alloc(const std::string& name, const std::string& type) {
  return "%" + name + " = pto.alloc_tile addr = %c0 : " + type + "\n";
}
std::string typed(const std::string& what, const std::string& type) { return what + " : " + type; }

const std::string kF8 = vec(8, 8);
const std::string kConstants =
    "%i0 = arith.constant 0 : index\n%i1 = arith.constant 1 : index\n"
    "%i8 = arith.constant 8 : index\n%im = arith.constant -1 : index\n";
const std::string kView =
    kConstants +
    "%v = pto.make_tensor_view %p, shape = [%i8, %i8], strides = [%i8, %i1] : "
    "!pto.tensor_view<?x?xf32>\n";

const Case kCases[] = {
    // Names and types.
    {"%r = arith.addi %n, %m : index\n", "t.pto:4:21: error: '%m' is not defined here"},
    {"%n = arith.constant 1 : index\n", "'%n' is defined already"},
    {"%r = arith.addi %n, %c0 : index\n", "'%c0' is 'i64', not 'index'"},
    {"%r = arith.addi %n, %n : f32\n",
     "'arith.addi' takes i8, i16, i32, i64, ui8, ui16, ui32, ui64, index here, not 'f32'"},
    {"%r = arith.cmpi near, %n, %n : index\n", "unknown predicate 'near' (one of eq, ne, slt"},
    {"%r = arith.extsi %n : index to i32\n", "'arith.extsi' needs a wider type than 'index'"},
    {"%r = arith.constant 300 : i8\n", "'300' is no value of 'i8'"},
    {"%r = arith.constant 1.5 : i32\n", "'1.5' is no value of 'i32'"},
    {"%r = arith.constant true : index\n", "'true' is no value of 'index'"},
    {"%r = arith.constant 1e999 : f32\n", "'1e999' is no value of 'f32'"},
    {"%r = arith.addj %n, %n : index\n",
     "unknown operation 'arith.addj'; did you mean 'arith.addi'?"},
    {"pto.tadd\n", "expected 'ins', found 'return'"},
    {"arith.constant 1 : index\n", "'arith.constant' defines exactly one value"},
    {"%x = pto.set_validshape %p, %n, %n : f32\n", "'pto.set_validshape' defines no value"},
    {"%r#1 = arith.constant 1 : index\n", "a name that is defined has no '#'"},

    // Views.
    {kConstants + "%v = pto.make_tensor_view %n, shape = [%i8], strides = [%i1] : "
                  "!pto.tensor_view<?xf32>\n",
     "'%n' is 'index', not '!pto.ptr<f32>'"},
    {kConstants + "%v = pto.make_tensor_view %p, shape = [%i8], strides = [%i1] : "
                  "!pto.tensor_view<?x?xf32>\n",
     "the view has 2 dimensions but 1 extents and 1 strides"},
    {kConstants + "%v = pto.make_tensor_view %p, shape = [%i8], strides = [%i1] : "
                  "!pto.tensor_view<9xf32>\n",
     "dimension 0 is 9 in the type"},
    {kConstants + "%v = pto.make_tensor_view %p, shape = [%im], strides = [%im] : "
                  "!pto.tensor_view<?xf32>\n",
     "an extent cannot be negative"},
    {kView + "%q = pto.partition_view %v, offsets = [%i1, %i0], sizes = [%i8, %i8] : "
             "!pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<8x8xf32>\n",
     "dimension 0: offset 1 and size 8 reach outside the view's extent 8"},
    {kView + "%q = pto.partition_view %v, offsets = [%im, %i0], sizes = [%i8, %i8] : "
             "!pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<8x8xf32>\n",
     "an offset cannot be negative"},
    {kView + "%q = pto.partition_view %v, offsets = [%i0, %i0], sizes = [%n, %i8] : "
             "!pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<8x8xf32>\n",
     "dimension 0 is 8 in the type, so its size must be that constant (or write '?')"},
    {kView + "%q = pto.partition_view %v, offsets = [%i0], sizes = [%i8] : "
             "!pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<8xf32>\n",
     "offsets, sizes and the partition's type must have as many"},
    {kView + "%q = pto.partition_view %v, offsets = [%i0, %i0], sizes = [%i8, %i8] : "
             "!pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<8x8xf16>\n",
     "the partition is 'f16' but the view is 'f32'"},
    {kConstants + "%v = pto.make_tensor_view %p, shape = [%i8], strides = [%i1] "
                  "{layout = #pto.layout<zz>} : !pto.tensor_view<?xf32>\n",
     "a view takes one attribute, layout = #pto.layout<nd>, <dn> or <nz>"},
    {kConstants + "%v = pto.make_tensor_view %p, shape = [%i8], strides = [%i1] : "
                  "!pto.tensor_view<1x2x3x4x5x6xf32>\n",
     "a view has at most 5 dimensions"},
    {"%v = pto.make_tensor_view %p, shape = [], strides = [] : !pto.tensor_view<99999999999999x"
     "99999999999999999999xf32>\n",
     "this extent is too large"},

    // Tiles.
    {"%t = pto.alloc_tile : " + kF8 + "\n", "a tile needs its address: addr = %value"},
    {"%t = pto.alloc_tile addr = %n : " + kF8 + "\n", "'%n' is 'index', not 'i64'"},
    {"%a = arith.constant 48 : i64\n%t = pto.alloc_tile addr = %a : " + kF8 + "\n",
     "address 48 is not a multiple of 32"},
    {"%a = arith.constant -32 : i64\n%t = pto.alloc_tile addr = %a : " + kF8 + "\n",
     "address -32 is not a multiple of 32"},
    {"%a = arith.constant 196480 : i64\n%t = pto.alloc_tile addr = %a : " + kF8 + "\n",
     "a tile of 256 bytes at address 196480 does not fit the 196608 bytes of 'vec' memory of a2a3"},
    {alloc("t", vec(1024, 1024)), "a tile of 4194304 bytes does not fit"},
    {alloc("t", tile_text(Space::Left, Element::F32, 128, 256)),
     "a tile of 131072 bytes does not fit the 65536 bytes of 'left' memory"},
    {"%t = pto.alloc_tile addr = %c0 valid_row = %n : " + kF8 + "\n",
     "valid_row is given exactly when v_row is '?'"},
    {"%t = pto.alloc_tile addr = %c0 : !pto.tile_buf<loc=vec, dtype=f32, rows=8, cols=8, "
     "v_row=?>\n",
     "valid_row is given exactly when v_row is '?'"},
    {"%i9 = arith.constant 9 : index\n%t = pto.alloc_tile addr = %c0 valid_row = %i9 : "
     "!pto.tile_buf<loc=vec, dtype=f32, rows=8, cols=8, v_row=?>\n",
     "valid_row is 9 but must be from 0 to 8"},
    {alloc("t", "!pto.tile_buf<loc=vec, dtype=f32, rows=8, cols=8, v_row=9>"),
     "v_row exceeds rows"},
    {alloc("t", "!pto.tile_buf<loc=vec, dtype=f32, rows=8>"), "the tile type lacks cols"},
    {alloc("t", "!pto.tile_buf<loc=vec, dtype=f32, rows=8, cols=8, rows=8>"),
     "'rows' is given twice"},
    {alloc("t", "!pto.tile_buf<loc=gm, dtype=f32, rows=8, cols=8>"),
     "expected one of vec, mat, left, right, acc, bias, found 'gm'"},
    {alloc("t", "!pto.tile_buf<loc=vec, dtype=index, rows=8, cols=8>"),
     "'index' cannot be stored in memory"},
    {alloc("t", "!pto.tile_buf<loc=vec, dtype=f32, rows=8, cols=8, fractal=7>"),
     "fractal must be 512 or 1024"},
    {alloc("t", "!pto.tile_buf<loc=vec, dtype=f32, rows=8, cols=8, pad=4>"),
     "this number must be from 0 to 3"},
    {alloc("t", "!pto.tile_buf<loc=vec, dtype=f32, rows=0, cols=8>"),
     "this number must be from 1 to 1048576"},
    {alloc("t", "!pto.tile_buf<loc=vec, size=1>"), "a tile type has no field 'size'"},
    {alloc("t", "!pto.tile<4>"), "unknown type 'pto.tile'"},
    {alloc("t", "f32"), "expected a !pto.tile_buf type, not 'f32'"},
    {alloc("t", kF8) + "pto.set_validshape %t, %n, %n : " + kF8 + "\n",
     "the valid region of this tile is fixed by its type"},

    // Instructions.
    {alloc("t", kF8) + "pto.tadd ins(" + typed("%t", kF8) + ") outs(" + typed("%t", kF8) + ")\n",
     "expected pto.tadd ins(tile, tile) outs(tile)"},
    {alloc("t", kF8) + "pto.tdivs ins(%n, %n : index, index) outs(" + typed("%t", kF8) + ")\n",
     "expected pto.tdivs ins(tile, scalar) outs(tile) or pto.tdivs ins(scalar, tile) outs(tile)"},
    {alloc("t", kF8) + "pto.tadd ins(%t, %t : " + kF8 + ") outs(" + typed("%t", kF8) + ")\n",
     "'pto.tadd' needs one type for each operand"},
    {alloc("t", kF8) + alloc("u", vec(8, 16)) + "pto.tadd ins(%t, %u : " + kF8 + ", " + vec(8, 16) +
         ") outs(" + typed("%t", kF8) + ")\n",
     "'pto.tadd': the right operand has 8x16 valid elements but the left operand has 8x8"},
    {alloc("t", kF8) + alloc("u", vec(8, 8, Element::F16)) + "pto.tadd ins(%t, %t : " + kF8 + ", " +
         kF8 + ") outs(" + typed("%u", vec(8, 8, Element::F16)) + ")\n",
     "'pto.tadd': the result is 'f16' but the left operand is 'f32'"},
    {alloc("t", kF8) + "pto.tadds ins(%t, %c0 : " + kF8 + ", i64) outs(" + typed("%t", kF8) + ")\n",
     "'pto.tadds': the scalar is 'i64' but the tile is 'f32'"},
    {alloc("t", vec(8, 8, Element::I32)) + "pto.texp ins(" + typed("%t", vec(8, 8, Element::I32)) +
         ") outs(" + typed("%t", vec(8, 8, Element::I32)) + ")\n",
     "the result of 'pto.texp' must be f32, f16, bf16, not 'i32'"},
    {alloc("t", kF8) + "pto.trowmax ins(%t, %t : " + kF8 + ", " + kF8 + ") outs(" +
         typed("%t", kF8) + ")\n",
     "the result must have 8x1 valid elements, one for each row of the source, not 8x8"},
    {alloc("t", kF8) + alloc("s", vec(1, 8)) + alloc("r", vec(8, 1)) + "pto.trowsum ins(%t, %s : " +
         kF8 + ", " + vec(1, 8) + ") outs(" + typed("%r", vec(8, 1)) + ")\n",
     "the scratch tile has only 1x8 elements; the source has 8x8"},
    {alloc("t", kF8) + "pto.tmov ins(" + typed("%t", kF8) + ") outs(" + typed("%t", vec(8, 9)) +
         ")\n",
     "'%t' is '" + kF8 + "', not"},
    {alloc("t", kF8) + alloc("m", tile_text(Space::Mat, Element::F32, 8, 8)) + "pto.tmov ins(" +
         typed("%t", kF8) + ") outs(" + typed("%m", tile_text(Space::Mat, Element::F32, 8, 8)) +
         ")\n",
     "a tile in 'vec' cannot be moved to 'mat' (only to vec)"},
    {alloc("t", kF8) + "pto.tadd ins(%t, %t : " + kF8 + ", " + kF8 + ") outs(" + typed("%t", kF8) +
         ") {rmode = #pto<round_mode RINT>}\n",
     "'pto.tadd' has no attribute"},

    // Control flow.
    {kConstants + "scf.for %i = %i0 to %n step %i0 {\n}\n", "the step of a loop must be positive"},
    {kConstants + "scf.for %i = %i0 to %n step %i1 {\n}\n%r = arith.addi %i, %i : index\n",
     "'%i' is not defined here"},
    {kConstants + "scf.for %n = %i0 to %i8 step %i1 {\n}\n", "'%n' is defined already"},
    {kConstants + "%r = scf.for %i = %i0 to %n step %i1 iter_args(%x = %i0) -> (index) {\n}\n",
     "the loop body must end with scf.yield of 1 typed value"},
    {kConstants + "%r = scf.for %i = %i0 to %n step %i1 iter_args(%x = %i0) -> (f32) {\n"
                  "scf.yield %i : index\n}\n",
     "the yielded value must be 'f32'"},
    {kConstants + "scf.for %i = %i0 to %n step %i1 iter_args(%x = %i0) -> (index) {\n"
                  "scf.yield %i : index\n}\n",
     "the loop has 1 carried value, 1 result type and 0 results"},
    {"scf.if %n {\n}\n", "'%n' is 'index', not 'i1'"},
    {"%b = arith.constant true\n%r = scf.if %b -> (index) {\nscf.yield %n : index\n}\n",
     "a branch with results needs an else"},
    {alloc("t", kF8) + "%b = arith.constant true\n%r = scf.if %b -> (" + kF8 +
         ") {\nscf.yield %t : " + kF8 + "\n} else {\nscf.yield %t : " + kF8 + "\n}\n",
     "only scalars are carried out of a block"},

    {kConstants + "scf.while (%x = %i0) : (index) -> () {\nscf.condition(%x)\n} do {\n"
                  "scf.yield %i0 : index\n}\n",
     "'%x' is 'index', not 'i1'"},
    {kConstants + "scf.while (%x = %i0) : (index) -> () {\n} do {\nscf.yield %i0 : index\n}\n",
     "the first block of the loop must end with scf.condition"},
    {kConstants + "%b = arith.constant true\n%r = scf.while (%x = %i0) : (index) -> (index) {\n"
                  "scf.condition(%b) %x : index\n} do {\nscf.yield %i0 : index\n}\n",
     "the body of the loop has 0 arguments but receives 1 value"},
    {kConstants + "%b = arith.constant true\n%r = scf.while (%x = %i0) : (index) -> (index) {\n"
                  "scf.condition(%b) %x : index\n} do {\n^bb0(%y: f32):\n"
                  "scf.yield %i0 : index\n}\n",
     "this argument receives 'index'"},
    {kConstants + "%b = arith.constant true\n%r = scf.while (%x = %i0) : (index) -> (index) {\n"
                  "scf.condition(%b) %x : index\n} do {\n^bb0(%y: index):\n"
                  "scf.yield %x : index\n}\n",
     "'%x' is not defined here"},
    {kConstants + "%b = arith.constant true\nscf.while (%x = %i0) : (index) -> (index) {\n"
                  "scf.condition(%b) %x : index\n} do {\n^bb0(%y: index):\n"
                  "scf.yield %i0 : index\n}\n",
     "the loop has 1 carried value of 1 type and 0 results of 1 type"},
    {kConstants + "scf.while (%x = %i0) : (index) {\n", "expected '->' and the result types"},

    // Elements.
    {kConstants + alloc("t", kF8) + "%e = pto.load_scalar %t[%i8, %i0] : " + kF8 + " -> f32\n",
     "dimension 0: index 8 is outside the extent 8"},
    {kConstants + alloc("t", kF8) + "%e = pto.load_scalar %t[%i0] : " + kF8 + " -> f32\n",
     "1 indices where 2 are needed"},
    {kConstants + alloc("t", kF8) + "%e = pto.load_scalar %t[%i0, %i0] : " + kF8 + " -> i32\n",
     "the element is 'f32', not 'i32'"},
    {kConstants + alloc("t", kF8) + "pto.store_scalar %i0, %t[%i0, %i0] : f32, " + kF8 + "\n",
     "'%i0' is 'index', not 'f32'"},
    {kConstants + alloc("m", tile_text(Space::Mat, Element::F32, 8, 8)) +
         "%e = pto.load_scalar %m[%i0, %i0] : " + tile_text(Space::Mat, Element::F32, 8, 8) +
         " -> f32\n",
     "elements are those of a !pto.tensor_view or of a tile in 'vec'"},

    // Characters.
    {"^ = arith.constant 1 : index\n", "a name must follow '^'"},
    {"%t = arith.constant \x01 : index\n", "unexpected byte 0x01"},
    {"% = arith.constant 1 : index\n", "a name must follow '%'"},
    {"scf.if %b {\n} loc(\"abc\n", "this string does not end on its line"},
};

void each_mistake_is_named() {
  for (const Case& one : kCases) CHECK_HOLDS(errors_of(in_function(one.body)), one.message);
}

void matrix_products() {
  const std::string l = tile_text(Space::Left, Element::F16, 16, 32);
  const std::string r = tile_text(Space::Right, Element::F16, 16, 16);
  const std::string c = tile_text(Space::Acc, Element::F32, 16, 16);
  const std::string head = alloc("l", l) + alloc("r", r) + alloc("c", c);
  const std::string body = "pto.tmatmul ins(%l, %r : " + l + ", " + r + ") outs(%c : " + c + ")\n";
  CHECK_HOLDS(errors_of(in_function(head + body)),
              "the left operand has 32 valid columns but the right operand has 16 valid rows");
  const std::string swapped =
      "pto.tmatmul ins(%r, %l : " + r + ", " + l + ") outs(%c : " + c + ")\n";
  CHECK_HOLDS(errors_of(in_function(head + swapped)),
              "the left operand of 'pto.tmatmul' must be in left, not 'right'");
  const std::string i = tile_text(Space::Acc, Element::I32, 16, 16);
  const std::string wrong = alloc("l", l) + alloc("r", r) + alloc("c", i) +
                            "pto.tmatmul ins(%l, %r : " + l + ", " + r + ") outs(%c : " + i + ")\n";
  CHECK_HOLDS(errors_of(in_function(wrong)),
              "the accumulator must be 'f32' for 'f16' operands, not 'i32'");
}

void modules_and_functions() {
  CHECK_HOLDS(errors_of(""), "t.pto:1:1: error: expected 'module', found the end of the input");
  CHECK_HOLDS(errors_of("module {\n}\n"), "no architecture");
  CHECK_HOLDS(errors_of("module {\n}\n", "a5"), "the module has no function");
  CHECK_HOLDS(errors_of("module attributes {pto.target_arch = \"a9\"} {\n}\n"),
              "t.pto:1:38: error: unknown architecture; known are a2a3, a5");
  CHECK_HOLDS(errors_of("module attributes {pto.target_arch = \"a5\"} {\n}\n", "a2a3"),
              "the module is for a5 but --pto-arch is a2a3");
  const auto named = [](const std::string& name) {
    return "func.func @" + name + "() {\nreturn\n}\n";
  };
  CHECK_HOLDS(errors_of("module {\n" + named("template") + "}\n", "a5"),
              "'template' is a reserved word of C++");
  CHECK_HOLDS(errors_of("module {\n" + named("a.b") + "}\n", "a5"),
              "a function name must be a C++ identifier");
  CHECK_HOLDS(errors_of("module {\n" + named("f") + named("f") + "}\n", "a5"),
              "t.pto:5:11: error: a second function '@f'");
  CHECK_HOLDS(errors_of("module {\nfunc.func @f(%t: " + kF8 + ") {\nreturn\n}\n}\n", "a5"),
              "a parameter is a pointer or a scalar");
  CHECK_HOLDS(errors_of("module {\nfunc.func @f() {\n}\n}\n", "a5"),
              "expected 'return' at the end of the function, found '}'");
  CHECK_HOLDS(errors_of("module {\n" + named("f") + "} x", "a5"),
              "expected nothing after the module, found 'x'");
  CHECK_HOLDS(errors_of("module {\nfunc.func @f() attributes {pto.kernel_kind = "
                        "#pto.kernel_kind<scalar>} {\nreturn\n}\n}\n",
                        "a5"),
              "pto.kernel_kind must be");
  CHECK_HOLDS(errors_of("module {\nfunc.func @f() attributes {pto.kernel_kind = "
                        "#pto.kernel_kind<vector>} {\n%a = arith.constant 0 : i64\n"
                        "%t = pto.alloc_tile addr = %a : " +
                            tile_text(Space::Acc, Element::F32, 8, 8) + "\nreturn\n}\n}\n",
                        "a5"),
              "a vector kernel has only 'vec' tiles, not 'acc'");
}

void several_mistakes_are_all_told() {
  std::string body;
  for (int i = 0; i < 100; ++i) body += "%r" + std::to_string(i) + " = arith.addi %x, %n : index\n";
  const std::string errors = errors_of(in_function(body));
  CHECK_HOLDS(errors, "t.pto:4:18");
  CHECK_HOLDS(errors, "t.pto:23:19");
  CHECK(errors.find("t.pto:24:") == std::string::npos);
}

void the_place_is_shown() {
  CHECK_EQ(errors_of(in_function("\t%r = arith.addi %n, %zz : index\n")),
           "t.pto:4:22: error: '%zz' is not defined here\n"
           "  \t%r = arith.addi %n, %zz : index\n"
           "  \t                    ^\n");
  // Of a very long line a part around the place.
  const std::string errors = errors_of(std::string(5000, ' ') + "?" + std::string(5000, ' '));
  CHECK(errors.size() < 600);
  CHECK_HOLDS(errors, "t.pto:1:5001: error: expected 'module', found '?'");
}

void limits_hold() {
  const auto nested = [](int depth) {
    std::string body = "%b = arith.constant true\n";
    for (int i = 0; i < depth; ++i) body += "scf.if %b {\n";
    for (int i = 0; i < depth; ++i) body += "}\n";
    return in_function(body);
  };
  CHECK_EQ(errors_of(nested(kMaxNesting)), "no error");
  CHECK_HOLDS(errors_of(nested(kMaxNesting + 1)), "blocks are nested deeper than 64");
  CHECK_HOLDS(errors_of(nested(200000)), "blocks are nested deeper than 64");
  CHECK_HOLDS(errors_of(std::string(Source::kMaxBytes + 1, ' ')), "the limit is 4194304");
  std::string wide = "%x = arith.addi ";
  for (int i = 0; i < 100000; ++i) wide += "%n, ";
  CHECK_HOLDS(errors_of(in_function(wide + "\n")), "expected ':', found ','");
}

}  // namespace

int main() {
  each_mistake_is_named();
  matrix_products();
  modules_and_functions();
  several_mistakes_are_all_told();
  the_place_is_shown();
  limits_hold();
  return result();
}
