"""Programs of two operations, and an assembler that only writes what the compiler needs."""

from __future__ import annotations

from types import MappingProxyType

from pypto.ir.dtypes import FP32, INDEX
from pypto.ir.nodes import (
    Const,
    Direction,
    DynDim,
    Function,
    FunctionKind,
    MemorySpace,
    Op,
    Param,
    Program,
    Return,
    Scope,
    Span,
    TensorType,
    Var,
)
from pypto.ir.ops import infer_result

# Stands for the assembler: takes the function's name from the text and writes a body for it.
FAKE_PTOAS = """\
#!/bin/sh
set -e
echo "$@" > ../../arguments.txt 2>/dev/null || true
name=$(sed -n 's/.*func.func @\\([A-Za-z0-9_]*\\).*/\\1/p' "$1")
case $name in bad*) echo "$1:3:5: error: no such thing" >&2; exit 1;; esac
printf '#include "pto/pto-inst.hpp"\\nusing namespace pto;\\n' > "$3"
printf '__global__ AICORE void %s(__gm__ float* v1, __gm__ float* v2) {\\n}\\n' "$name" >> "$3"
"""


def copy_function(name: str = "copy", shape: tuple[int, int] = (8, 8)) -> Function:
    """Copies a tensor with run-time rows, one tile of it."""
    rows = DynDim("N")
    x, out = Var("x", TensorType((rows, 8), FP32)), Var("out", TensorType((rows, 8), FP32))
    zero, span = Const(0, INDEX), Span("tests:copy", 2, 4)
    attrs = {"shape": shape, "space": MemorySpace.Vec, "has_valid": False}
    tile = Var("tile", infer_result("tile.load", (x, zero, zero), attrs))
    load = Op("tile.load", (x, zero, zero), tile, span, MappingProxyType(attrs))
    store = Op("tile.store", (tile, zero, zero, out), Var("out", out.type), span)
    return Function(
        name=name,
        func_type=FunctionKind.ORCHESTRATION,
        params=(Param(x, Direction.In), Param(out, Direction.Out)),
        body=(Scope(f"{name}_rows", (load, store), span), Return((out,), span)),
        return_types=(out.type,),
        span=Span("tests:copy", 1, 0),
    )


def copy_program(name: str = "copy", shape: tuple[int, int] = (8, 8)) -> Program:
    """A program of one such function."""
    return Program(name, MappingProxyType({name: copy_function(name, shape)}), name)


def several_programs(*names: str) -> Program:
    """A program with an orchestration function of each name."""
    functions = {name: copy_function(name) for name in names}
    return Program("several", MappingProxyType(functions), names[0])
