"""Which created tensors each core has a copy of, and how the orchestration says so."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from types import MappingProxyType

import pypto.language as pl
import pytest
from pypto.backend import BackendType
from pypto.codegen import generate
from pypto.codegen.scratch import scratch_tensors
from pypto.ir.external import ExternalKernel, ExternalPart
from pypto.ir.nodes import Program
from pypto.ir.passes import limits_of, run_passes

TENSOR = "pl.Tensor[[16, 64], pl.FP32]"


def program(body: str) -> Program:
    """An orchestration that has `x`, `out` and `n`, and a core function to call."""
    text = f"""
import pypto.language as pl


@pl.program
class entry:
    @pl.function(type=pl.FunctionType.InCore)
    def work(self, x: {TENSOR}, t: pl.InOut[{TENSOR}], out: pl.Out[{TENSOR}]):
        t = pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], t)
        out = pl.store(pl.load(t, [0, 0], [16, 64]), [0, 0], out)
        return t, out

    @pl.function(type=pl.FunctionType.Orchestration)
    def entry(self, x: {TENSOR}, n: pl.Scalar[pl.INDEX], out: pl.InOut[{TENSOR}]):
{textwrap.indent(textwrap.dedent(body).strip(), " " * 8)}
        return out
"""
    return pl.parse(text)


CREATED = "t = pl.create_tensor([16, 64], dtype=pl.FP32)\n"
CALLED = "_, out, _ = pl.spmd_submit(self.work, x, t, out, core_num=8)\n"


def scratch_of(lowered: Program) -> list[str]:
    found = scratch_tensors(lowered, lowered.functions[lowered.entry])
    return [var.name for var in found]


def lowered(body: str) -> Program:
    return run_passes(program(body), limits_of(BackendType.Ascend910B))


@pytest.mark.parametrize(
    "body",
    [
        CREATED + CALLED,
        CREATED + CALLED.replace("core_num=8", "core_num=n"),
        "for i in pl.range(3):\n" + textwrap.indent(CREATED + CALLED, "    "),
        "if n > 1:\n" + textwrap.indent(CREATED + CALLED, "    "),
        "with pl.manual_scope():\n" + textwrap.indent(CREATED + CALLED, "    "),
    ],
    ids=["blocks", "run-time blocks", "in a loop", "in a branch", "in a manual scope"],
)
def test_what_one_task_in_blocks_alone_uses_is_scratch(body: str) -> None:
    assert scratch_of(lowered(body)) == ["t"]


@pytest.mark.parametrize(
    "body",
    [
        CREATED + "_, out, _ = pl.submit(self.work, x, t, out)\n",
        CREATED + CALLED.replace("core_num=8", "core_num=1"),
        CREATED + CALLED + CALLED,
        CREATED + CALLED.replace("_,", "t,", 1) + "_, out, _ = pl.submit(self.work, t, t, out)\n",
        CREATED + "for i in pl.range(3):\n    " + CALLED,
        CREATED.replace("pl.FP32", "pl.FP32, init_value=0") + CALLED,
        "t = x\n" + CALLED,
    ],
    ids=[
        "one block",
        "one block by number",
        "two tasks",
        "read afterwards",
        "kept through a loop",
        "with a first value",
        "an argument",
    ],
)
def test_what_others_may_see_is_shared(body: str) -> None:
    assert scratch_of(lowered(body)) == []


def test_what_a_kernel_in_cpp_gets_is_shared() -> None:
    made = lowered(CREATED + CALLED)
    external = ExternalKernel((ExternalPart("aiv", "/kernels/work.cpp"),))
    work = replace(made.functions["work"], external=external, body=())
    functions = MappingProxyType({**made.functions, "work": work})
    assert scratch_of(made) == ["t"]
    assert scratch_of(replace(made, functions=functions)) == []


@pytest.mark.parametrize(
    ("created", "arguments"),
    [
        (CREATED, "DType::FP32, false, true"),
        (CREATED.replace("pl.FP32", "pl.FP32, manual_dep=True"), "DType::FP32, true, true"),
    ],
    ids=["by memory", "manual"],
)
def test_the_orchestration_asks_for_a_copy_for_each_core(created: str, arguments: str) -> None:
    text = generate(lowered(created + CALLED), "a2a3").orchestration
    assert f"TensorCreateInfo(t_t_shape, 2, {arguments})" in text
    assert "params_t0.add_inout(t_t);" in text


@pytest.mark.parametrize(
    "call",
    [
        "out, _ = pl.spmd_submit(self.product, x, out, core_num=n)",
        "for i in pl.spmd(n):\n            raised = pl.add(x, 1.0)\n"
        "            out[:] = pl.matmul(raised, x, b_trans=True)",
    ],
    ids=["function", "block"],
)
def test_memory_that_the_compiler_adds_to_blocks_is_scratch(call: str) -> None:
    """A product takes what a vector operation computed from a tensor that nobody else sees."""
    square = "pl.Tensor[[64, 64], pl.FP32]"
    made = pl.parse(f"""
import pypto.language as pl


@pl.program
class entry:
    @pl.function(type=pl.FunctionType.InCore)
    def product(self, x: {square}, out: pl.Out[{square}]):
        out[:] = pl.matmul(pl.add(x, 1.0), x, b_trans=True)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def entry(self, x: {square}, n: pl.Scalar[pl.INDEX], out: pl.Out[{square}]):
        {call}
        return out
""")
    done = run_passes(made, limits_of(BackendType.Ascend910B))
    entry = done.functions[done.entry]
    created = [op.result for op in entry.body if getattr(op, "op", "") == "tensor.create"]
    assert created
    assert scratch_tensors(done, entry) == frozenset(created)
