from __future__ import annotations

import sys
from typing import Any

import pypto.language as pl
import pytest
import torch
from pypto import cache_stats
from pypto.ir.errors import CompileError
from pypto.jit import JITFunction
from pypto.runtime.options import RunOptions


@pl.jit
def kernel(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    """Adds one."""
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.store(pl.add(pl.load(x, [0, 0], [16, 64]), 1.0), [0, 0], out)
    return out


@pl.jit
def printing(x: pl.Tensor[[16, 64], pl.FP32]):
    pl.static_print("a line")


@pl.jit(auto_scope=False)
def unscoped(x: pl.Tensor):
    return x


@pl.jit.incore
def helper(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    return pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], out)


@pl.jit.incore(level=pl.Level.CORE_GROUP)
def levelled(x: pl.Tensor):
    return x


@pl.jit.opaque()
def staged(x: pl.Tensor):
    return x


@pl.jit.inline(auto_scope=False)
def spliced(x: pl.Tensor):
    return x


@pl.jit
def invalid(x: pl.Tensor[[16, 64], pl.FP32]):
    import os  # noqa: F401


@pytest.mark.conforms("language.33")
def test_it_is_called_what_the_function_is_called() -> None:
    assert isinstance(kernel, JITFunction)
    assert kernel.__name__ == "kernel"
    assert kernel.__doc__ == "Adds one."
    assert kernel.__module__ == __name__
    assert repr(kernel) == "JITFunction('kernel', func_type='orchestration')"
    assert repr(helper) == "JITFunction('helper', func_type='incore')"
    assert repr(spliced) == "JITFunction('spliced', func_type='inline')"
    assert repr(staged) == "JITFunction('staged', func_type='opaque')"


@pytest.mark.conforms("language.33")
def test_parameters() -> None:
    assert kernel.param_names == ("x", "out")
    assert kernel.output_param_names == ("out",)


@pytest.mark.conforms("language.34")
def test_decorations_are_recorded() -> None:
    assert kernel.declaration.auto_scope
    assert not unscoped.declaration.auto_scope
    assert not spliced.declaration.auto_scope
    assert levelled.declaration.level is pl.Level.CORE_GROUP


@pytest.mark.conforms("language.35")
def test_decorating_does_not_parse() -> None:
    with pytest.raises(Exception, match="import"):
        invalid.specialize()


@pytest.mark.conforms("language.34")
def test_what_cannot_be_decorated_is_refused() -> None:
    with pytest.raises(TypeError, match="def"):
        pl.jit(3)
    with pytest.raises(TypeError, match="def"):
        pl.jit(len)
    with pytest.raises(TypeError, match="auto_scope"):
        pl.jit.incore(auto_scope=False)
    with pytest.raises(TypeError, match="auto_scope"):
        pl.jit.opaque(auto_scope=False)
    with pytest.raises(TypeError, match="level"):
        pl.jit(level=pl.Level.CORE_GROUP)
    with pytest.raises(TypeError, match="level"):
        pl.jit.inline(level=pl.Level.CORE_GROUP)
    with pytest.raises(TypeError, match="auto_scope"):
        pl.jit(auto_scope=1)(lambda x: x)


@pytest.mark.conforms("language.156")
@pytest.mark.parametrize("name", ["compile", "warmup", "lower", "specialize", "__call__"])
def test_helpers_are_no_entries(name: str) -> None:
    with pytest.raises(TypeError, match=r"call it from a @pl\.jit function"):
        getattr(helper, name)()


def test_the_representation_changes_no_counter() -> None:
    before = cache_stats()
    assert "kernel" in kernel.specialize().functions
    assert kernel.lower().entry == "kernel"
    assert cache_stats() == before


def make(rows: int) -> Any:
    n = pl.dynamic("N")

    @pl.jit
    def made(x: pl.Tensor[[n, 64], pl.FP32], out: pl.Out[pl.Tensor[[rows, 64], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.store(pl.load(x, [0, 0], [rows, 64]), [0, 0], out)
        return out

    return made


@pytest.mark.conforms("language.38")
def test_a_kernel_of_a_factory_sees_the_names_of_its_factory() -> None:
    shapes = [
        made.specialize().functions["made"].params[1].var.type.shape[0]
        for made in (make(16), make(32))
    ]
    assert shapes == [16, 32]


def test_only_functions_that_def_defines_are_decorated() -> None:
    async def later(x: pl.Tensor) -> None: ...

    for function, what in ((lambda x: None, "a lambda"), (later, "an async function")):
        for decorate in (pl.jit, pl.jit.incore, pl.jit.inline):
            with pytest.raises(TypeError, match=f"with def, not {what}: .*test_decorator.py:"):
                decorate(function)


@pytest.mark.conforms("language.121")
@pytest.mark.parametrize("config", [3, {}, "a2a3sim", RunOptions(platform="a2a3sim")])
def test_a_configuration_is_a_run_config(config: Any) -> None:
    tensors = torch.empty(16, 64, device="meta"), torch.empty(16, 64, device="meta")
    message = f"config must be a pypto.runtime.RunConfig, got {type(config).__name__}"
    for request in (kernel, kernel.compile, kernel.warmup, kernel.lower, kernel.specialize):
        for error in (TypeError, AttributeError):
            with pytest.raises(error, match=message):
                request(*tensors, config=config)


@pl.jit
def misplaced(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    out[:] = pl.add(x, 1.0)
    return out


@pytest.mark.conforms("language.46")
def test_computing_outside_a_scope_is_refused_where_code_is_generated() -> None:
    misplaced.lower()
    message = (
        r"Misplaced tensor op 'tensor.adds' in Orchestration function \(should be inside InCore "
        r"block\): put it inside `with pl.at"
    )
    with pytest.raises(CompileError, match=message) as caught:
        misplaced.compile()
    line = misplaced.__wrapped__.__code__.co_firstlineno + 2
    assert f"test_decorator.py:{line}:" in str(caught.value)


@pytest.mark.parametrize("entry", [kernel, printing])
def test_a_process_without_standard_output_compiles(
    monkeypatch: pytest.MonkeyPatch, entry: JITFunction
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert entry.specialize().name == entry.__name__


@pl.inline
def program_inline(tile):
    return pl.add(tile, 1.0)


@pl.function(type=pl.FunctionType.InCore)
def program_kernel(
    x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
) -> pl.Tensor[[16, 64], pl.FP32]:
    return pl.store(program_inline(pl.load(x, [0, 0], [16, 64])), [0, 0], out)


@pl.jit
def calls_program_functions(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    between = pl.create_tensor([16, 64], dtype=pl.FP32)
    between = program_kernel(x, between)
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.store(program_inline(pl.load(between, [0, 0], [16, 64])), [0, 0], out)
    return out


@pytest.mark.conforms("language.56")
def test_kernels_may_call_functions_of_programs() -> None:
    x = torch.zeros(16, 64)
    program = calls_program_functions.specialize(x, torch.zeros(16, 64))
    assert list(program.functions) == ["program_kernel", "calls_program_functions"]
    bypass = calls_program_functions._source()[0].bypass
    assert bypass is not None
    assert "is a function of programs; decorate it with pl.jit.inline or pl.jit.incore" in bypass


@pytest.mark.conforms("language.56")
def test_programs_may_call_helpers_of_kernels() -> None:
    @pl.program
    class Mixed:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self,
            x: pl.Tensor[[16, 64], pl.FP32],
            out: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
        ):
            return helper(spliced(x), out)

    assert list(Mixed.functions) == ["helper", "main"]
