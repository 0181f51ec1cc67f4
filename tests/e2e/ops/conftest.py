"""Kernels written as text, through every stage: parser, passes, assembler, compiler, chip."""

from __future__ import annotations

import ast
import builtins
import os
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pypto.language as pl
import pytest
from pypto import ir
from pypto.backend import Target
from pypto.compiler import driver
from pypto.ir.dtypes import DataType
from pypto.ir.nodes import DynDim, FunctionKind, Program, ScalarType, TensorType
from pypto.ir.options import VerificationLevel
from pypto.ir.passes import PassObserver
from pypto.ir.structure import assert_structural_equal
from pypto.language.parser.program import parse_program
from pypto.language.source import FunctionSource
from pypto.runtime.compiled_program import CompiledProgram

sys.path.insert(0, os.path.dirname(__file__))

Shape = tuple[int | str, ...]
Compile = Callable[..., CompiledProgram]


def _source(text: str, kind: FunctionKind, namespace: dict[str, object]) -> FunctionSource:
    text = textwrap.dedent(text).strip() + "\n"
    tree = ast.parse(text).body[0]
    assert isinstance(tree, ast.FunctionDef)
    return FunctionSource(
        name=tree.name,
        unit=f"tests:{tree.name}",
        kind=kind,
        tree_of=lambda: tree,
        file="kernel.py",
        first_line=1,
        namespace={**vars(builtins), "pl": pl, **namespace},
        lines=tuple(text.splitlines()),
    )


def _type(value: object) -> TensorType | ScalarType:
    if isinstance(value, DataType):
        return ScalarType(value)
    assert isinstance(value, tuple)
    shape, dtype = value
    return TensorType(tuple(DynDim(d) if isinstance(d, str) else d for d in shape), dtype)


def _read_back(program: Program) -> None:
    assert_structural_equal(pl.parse(program.as_python()), program)


@pytest.fixture(scope="session", autouse=True)
def programs_read_back() -> Iterator[None]:
    """Verifies the programs of these tests after each pass, and reads two texts of each back.

    Those between the first and the last are read back where whole programs are tested.
    """
    lower = driver.lower

    def checked(
        program: Program,
        target: Target,
        observe: PassObserver | None = None,
        verification: VerificationLevel = VerificationLevel.EVERY_PASS,
    ) -> Program:
        _read_back(program)
        lowered = lower(program, target, observe, VerificationLevel.EVERY_PASS)
        _read_back(lowered)
        return lowered

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "lower", checked)
        yield


@pytest.fixture(scope="session")
def compile_text(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Compiles a kernel's text.

    `types` gives `(shape, dtype)` for a tensor, a string being a run-time extent, and a dtype for
    a scalar. `helpers` are texts of InCore functions that it calls.
    """
    base: Path = tmp_path_factory.mktemp("programs")

    def run(
        text: str, types: dict[str, object], helpers: tuple[str, ...] = (), **options: object
    ) -> CompiledProgram:
        sources = [_source(h, FunctionKind.INCORE, {}) for h in helpers]
        entry = _source(text, FunctionKind.ORCHESTRATION, {s.name: s for s in sources})
        arguments = {name: _type(value) for name, value in types.items()}
        program = parse_program(entry, arguments, name=entry.name)
        directory = base / f"{entry.name}_{len(os.listdir(base))}"
        return ir.compile(program, output_dir=directory, dump_passes=False, **options)  # type: ignore[arg-type]

    return run
