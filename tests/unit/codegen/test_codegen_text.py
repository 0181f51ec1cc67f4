"""Generated text: what it says, and that it says the same each time."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from pypto.backend import BackendType
from pypto.codegen import GeneratedSources, generate
from pypto.codegen.kernel_wrapper import (
    BODY_BEGINS,
    ENTRY_BEGINS,
    LONG_BODY_LINES,
    embedded_body,
    instruction_headers,
)
from pypto.codegen.literals import cpp_literal, float_bits, pto_literal
from pypto.codegen.names import Names, function_names
from pypto.ir.dtypes import BF16, BOOL, FP16, FP32, INDEX, INT32, INT64
from pypto.ir.nodes import Const, Program
from pypto.ir.passes import limits_of, run_passes


def generated(program: Program, backend: BackendType = BackendType.Ascend910B) -> GeneratedSources:
    return generate(run_passes(program, limits_of(backend)), backend.arch)


def test_softmax_is_one_vector_kernel(softmax: Program) -> None:
    (kernel,) = generated(softmax).kernels
    assert kernel.core_type == "aiv"
    assert kernel.name == "softmax_rows"
    lines = kernel.pto.splitlines()
    assert lines[0] == 'module attributes {pto.target_arch = "a2a3"} {'
    assert lines[1] == (
        "  func.func @softmax_rows(%arg0: !pto.ptr<f32>, %arg1: !pto.ptr<f32>) "
        "attributes {pto.kernel_kind = #pto.kernel_kind<vector>} {"
    )
    calls = [line.split()[0] for line in lines if line.strip().startswith("pto.")]
    assert calls == [
        "pto.tload",
        "pto.trowmax",
        "pto.trowexpandsub",
        "pto.texp",
        "pto.trowsum",
        "pto.trowexpanddiv",
        "pto.tstore",
    ]
    assert 'loc("tests:kernel":2:4)' in kernel.pto
    assert "cols=1, v_row=16, v_col=1, blayout=col_major" in kernel.pto


def test_matmul_is_one_cube_kernel_with_its_factors_placed(matmul: Program) -> None:
    (kernel,) = generated(matmul).kernels
    assert kernel.core_type == "aic"
    assert "#pto.kernel_kind<cube>" in kernel.pto
    for space in ("loc=mat", "loc=left", "loc=right", "loc=acc"):
        assert space in kernel.pto
    assert kernel.pto.count("pto.tmov") == 2


def test_left_tiles_have_the_layout_of_the_architecture(matmul: Program) -> None:
    def left(backend: BackendType) -> str:
        (kernel,) = generated(matmul, backend).kernels
        (line,) = [
            text for text in kernel.pto.splitlines() if "alloc_tile" in text and "loc=left" in text
        ]
        return line

    assert "blayout=row_major, slayout=row_major" in left(BackendType.Ascend910B)
    assert "blayout=col_major, slayout=row_major" in left(BackendType.Ascend950)


def test_the_same_program_gives_the_same_text(softmax: Program) -> None:
    first, second = generated(softmax), generated(softmax)
    assert first.kernels[0].pto == second.kernels[0].pto
    assert first.orchestration == second.orchestration


@pytest.mark.conforms("language.68")
def test_the_orchestration_submits_tensors_by_direction(softmax: Program) -> None:
    text = generated(softmax).orchestration
    assert text.startswith('#include "pypto_rt/pto_orchestration_api.h"\n')
    assert "expected_arg_count = 2" in text
    assert "params_t0.add_input(ext_x);" in text
    assert "params_t0.add_output(ext_out);" in text
    assert "rt_submit_aiv_task(0, params_t0);" in text


def test_the_wrapper_holds_the_body_once_and_exports_only_its_entry(softmax: Program) -> None:
    (kernel,) = generated(softmax).kernels
    body = (
        '#include "pto/pto-inst.hpp"\nusing namespace pto;\n\n'
        "__global__ AICORE void softmax_rows(__gm__ float* v1, __gm__ float* v2) {\n}\n"
    )
    text = kernel.wrapper(body)
    assert text.count("#include") == 2
    assert text.count("using namespace pto;") == 1
    assert text.index(BODY_BEGINS) < text.index("static AICORE void softmax_rows")
    assert text.index("static AICORE void softmax_rows") < text.index(ENTRY_BEGINS)
    assert "__global__" not in text
    assert "softmax_rows(tensor_data<float>(t0)," in text


@pytest.mark.parametrize(
    ("text", "headers"),
    [
        (
            '#include "pto/sim/fault.hpp"\n#include "pto/sim/tile.hpp"\nusing namespace pto;\n',
            ["pto/sim/fault.hpp", "pto/sim/tile.hpp"],
        ),
        ('#include "pto/pto-inst.hpp"\n', ["pto/pto-inst.hpp"]),
        ('#include "common/instructions.hpp"\n#include "pto/sim/tile.hpp"\n', ["pto/pto-inst.hpp"]),
        ("#include <cmath>\n", ["pto/pto-inst.hpp"]),
        ("int a;\n", ["pto/pto-inst.hpp"]),
    ],
)
def test_the_wrapper_includes_what_the_text_says_or_every_instruction(
    softmax: Program, text: str, headers: list[str]
) -> None:
    assert instruction_headers(text) == headers
    (kernel,) = generated(softmax).kernels
    lines = kernel.wrapper(text).splitlines()
    assert lines[: len(headers) + 4] == [
        '#include "pypto_rt/kernel_abi.h"',
        "",
        BODY_BEGINS,
        *(f'#include "{header}"' for header in headers),
        "using namespace pto;",
    ]


def test_a_long_body_is_translated_as_it_stands() -> None:
    head, statement = "__global__ AICORE void f() {\n", "  pto::TADD(a, b, c);\n"
    short = embedded_body(head + statement * (LONG_BODY_LINES - 2) + "}\n")
    assert "\nstatic AICORE void f() {" in short
    assert "PTO_LONG_BODY" not in short
    long = embedded_body(head + statement * (LONG_BODY_LINES - 1) + "}\n")
    assert "#ifndef PTO_LONG_BODY\n#define PTO_LONG_BODY\n#endif\n" in long
    assert "\nPTO_LONG_BODY static AICORE void f() {" in long


def test_an_embedded_body_keeps_what_only_looks_like_an_include() -> None:
    assert embedded_body("// #include <x>\nint a;\n#include <y>\n") == (
        '#include "pto/pto-inst.hpp"\nusing namespace pto;\n\n// #include <x>\nint a;'
    )


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (True, BOOL, "true"),
        (-3, INDEX, "-3"),
        (1.5, FP32, "1.500000e+00"),
        (float("inf"), FP32, "0x7F800000"),
        (float("-inf"), FP16, "0xFC00"),
        (float("inf"), BF16, "0x7F80"),
    ],
)
def test_pto_literals(value: bool | int | float, dtype: object, text: str) -> None:
    assert pto_literal(Const(value, dtype)) == text  # type: ignore[arg-type]


def test_float_literals_lose_nothing() -> None:
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 2**63, 500, dtype=np.int64)
    for number in bits.view(np.float64):
        if np.isfinite(number):
            assert float(pto_literal(Const(float(number), FP32))) == number


def test_float_bits_round_to_nearest_even() -> None:
    rng = np.random.default_rng(4)
    numbers = np.concatenate(
        (
            rng.standard_normal(400) * 10.0 ** rng.integers(-12, 12, 400),
            [0.0, -0.0, 1e6, 65519.9, 65520],
        )
    ).astype(np.float32)
    with np.errstate(over="ignore"):
        halves = numbers.astype(np.float16).view(np.uint16)
    for number, half in zip(numbers, halves, strict=True):
        assert float_bits(float(number), FP16) == half
        assert float_bits(float(number), FP32) == struct.unpack("<I", struct.pack("<f", number))[0]
        brain = float_bits(float(number), BF16)
        below = struct.unpack("<I", struct.pack("<f", number))[0] & 0xFFFF0000
        near = [np.uint32(p).view(np.float32) for p in (below, below + 0x10000)]
        error = [abs(float(n) - float(number)) for n in near]
        chosen = float(np.uint32(brain << 16).view(np.float32))
        assert abs(chosen - float(number)) == min(error)


def test_cpp_literals() -> None:
    assert cpp_literal(Const(-5, INT64)) == "int64_t{-5}"
    assert cpp_literal(Const(-(2**63), INDEX)) == "INT64_MIN"
    assert cpp_literal(Const(7, INT32)) == "int32_t{7}"
    assert cpp_literal(Const(1.0, FP32)) == "from_u64<float>(0x3F800000)"
    assert cpp_literal(Const(1.0, BF16)) == "static_cast<uint16_t>(0x3F80)"


def test_function_names_are_identifiers_and_distinct() -> None:
    names = function_names(("main", "int", "a-b", "a_b", "2x", "ok"))
    assert names["ok"] == "ok"
    assert len(set(names.values())) == len(names)
    assert all(n.isidentifier() for n in names.values())
    assert not {"main", "int"} & set(names.values())


def test_names_are_never_given_twice() -> None:
    names = Names()
    given = [names.new(stem) for stem in ("a", "a", "a_0", "a", "a_0_0", "a_0")]
    assert len(set(given)) == len(given)


def test_a_kernel_takes_the_strides_of_a_part(parts: Program) -> None:
    sources = generated(parts)
    (kernel,) = sources.kernels
    lines = [line.strip() for line in kernel.pto.splitlines()]
    assert lines[1].startswith(
        "func.func @taken(%arg0: !pto.ptr<f32>, %arg1: !pto.ptr<f32>, %arg2: index) "
    )
    (strided,) = [line for line in lines if "make_tensor_view %arg0" in line]
    assert "shape = [%c8_index, %c16_index], strides = [%arg2, %c1_index]" in strided
    (whole,) = [line for line in lines if "make_tensor_view %arg1" in line]
    assert "strides = [%c16_index, %c1_index]" in whole
    assert "t0->strides[0]);" in kernel.wrapper("")
    text = sources.orchestration
    assert "const int64_t t_part_shape[] = {1, 8, 16};" in text
    assert "const int64_t t_part_offset[] = {s_i, int64_t{0}, int64_t{4}};" in text
    assert (
        "const ChipTensor t_part = ext_x.view(t_part_shape, t_part_offset).without_axis(0);" in text
    )
    assert "add_input(t_part)" in text
    assert text.index('PTO2_AT("tests:kernel"') < text.index("ext_x.view(")
