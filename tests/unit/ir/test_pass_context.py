"""Instruments that watch the passes, and the passes as an object."""

from __future__ import annotations

import threading

import pypto.language as pl
import pytest
from pypto import ir
from pypto.backend import BackendType
from pypto.ir.pass_context import active_instruments
from pypto.ir.passes.pipeline import PASSES

PROGRAM = pl.parse(
    """
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out[:] = pl.add(x, 1.0)
        return out
"""
)
MANAGER = ir.PassManager.get_strategy(ir.OptimizationStrategy.Default)


class Watching(ir.PassInstrument):
    def __init__(self) -> None:
        self.seen: list[tuple[str, str, ir.Program]] = []

    def before_pass(self, name: str, program: ir.Program) -> None:
        self.seen.append(("before", name, program))

    def after_pass(self, name: str, program: ir.Program) -> None:
        self.seen.append(("after", name, program))


def test_an_instrument_sees_each_pass_before_and_after():
    watching = Watching()
    with ir.PassContext([watching]) as context:
        assert context.instruments == (watching,)
        lowered = MANAGER.run_passes(PROGRAM)
    names = [(when, name) for when, name, _ in watching.seen]
    assert names == [(when, p.__name__) for p in PASSES for when in ("before", "after")]
    assert watching.seen[0][2] is PROGRAM and watching.seen[-1][2] is lowered
    for (_, _, left), (_, _, right) in zip(watching.seen[1::2], watching.seen[2::2], strict=False):
        assert left is right
    assert MANAGER.pass_names == tuple(p.__name__ for p in PASSES)


def test_callbacks():
    before: list[str] = []
    after: list[str] = []
    instruments = [
        ir.CallbackInstrument(before_pass=lambda name, program: before.append(name)),
        ir.CallbackInstrument(after_pass=lambda name, program: after.append(name)),
    ]
    with ir.PassContext(instruments):
        MANAGER.run_passes(PROGRAM)
    assert before == after == list(MANAGER.pass_names)


def test_what_an_instrument_raises_ends_the_compilation():
    def refuse(name: str, program: ir.Program) -> None:
        raise KeyError(name)

    context = ir.PassContext([ir.CallbackInstrument(after_pass=refuse)])
    with pytest.raises(KeyError, match=PASSES[0].__name__), context:
        MANAGER.run_passes(PROGRAM)
    assert active_instruments() == ()


def test_the_innermost_context_counts_and_only_in_its_thread():
    outer, inner = Watching(), Watching()
    elsewhere: list[object] = []
    context = ir.PassContext([outer])
    with context:
        with ir.PassContext([inner]):
            assert active_instruments() == (inner,)
            with context:
                assert active_instruments() == (outer,)
            assert active_instruments() == (inner,)
            thread = threading.Thread(target=lambda: elsewhere.append(active_instruments()))
            thread.start()
            thread.join()
        assert active_instruments() == (outer,)
        with ir.PassContext():
            assert active_instruments() == ()
    assert active_instruments() == () and elsewhere == [()]


def test_wrong_arguments():
    with pytest.raises(TypeError, match=r"ir\.PassContext takes ir\.PassInstrument objects, not 3"):
        ir.PassContext([3])
    with pytest.raises(TypeError, match=r"takes an ir\.OptimizationStrategy such as"):
        ir.PassManager.get_strategy("Default")
    with pytest.raises(TypeError, match=r"run_passes takes an ir\.Program, not int"):
        MANAGER.run_passes(3)


@pytest.mark.parametrize("backend", BackendType)
@pytest.mark.parametrize("level", ir.VerificationLevel)
def test_every_level_of_verification_gives_the_same(backend, level):
    manager = ir.PassManager.get_strategy(backend_type=backend)
    lowered = manager.run_passes(PROGRAM, verification_level=level)
    ir.assert_structural_equal(lowered, manager.run_passes(PROGRAM))


def test_verification_after_every_pass_names_the_pass(monkeypatch):
    from dataclasses import replace

    from pypto.ir.passes import pipeline

    def breaking(program, target):
        return replace(program, entry="gone")

    monkeypatch.setattr(pipeline, "PASSES", (*PASSES[:2], breaking, *PASSES[2:]))
    every = ir.VerificationLevel.EVERY_PASS
    with pytest.raises(ir.VerifyError, match=r"^after the pass breaking: the entry 'gone' is not"):
        MANAGER.run_passes(PROGRAM, verification_level=every)


def test_printing_by_function():
    assert ir.python_print(PROGRAM) == PROGRAM.as_python()
    function = PROGRAM.functions["main"]
    assert ir.python_print(function) == function.as_python()
    ir.assert_structural_equal(pl.parse(function.as_python()), function)
