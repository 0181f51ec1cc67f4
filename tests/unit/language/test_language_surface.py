"""What ``pypto.language`` offers to people who write kernels."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys

import pypto.language as pl
import pytest
from pypto.ir.ops import OPS
from pypto.language import computation, functions, shaping
from pypto.language.parser.calls import HANDLERS

KERNEL_FUNCTIONS = [f for module in (functions, computation, shaping)
                    for _, f in inspect.getmembers(module, inspect.isfunction)
                    if hasattr(f, "__wrapped__")]  # fmt: skip


@pytest.mark.conforms("language.3")
def test_everything_in_all_exists():
    for name in pl.__all__:
        if name != "jit":  # a layer above
            assert hasattr(pl, name)
    assert pl.Mem is pl.MemorySpace


@pytest.mark.conforms("language.12")
@pytest.mark.parametrize("function", KERNEL_FUNCTIONS, ids=lambda f: f.__name__)
def test_kernel_functions_explain_themselves(function):
    assert function.__doc__
    assert function in HANDLERS
    arguments = [1] * len(inspect.signature(function).parameters)
    if any(p.kind is p.KEYWORD_ONLY for p in inspect.signature(function).parameters.values()):
        arguments = arguments[:1]
    with pytest.raises(RuntimeError, match=rf"pl\.{function.__name__} exists inside kernels only"):
        function(*arguments)


def test_every_computation_has_a_function():
    public = {spec.public_name.removeprefix("pl.") for spec in OPS.values()
              if not spec.name.startswith("scalar.")}  # fmt: skip
    missing = {name for name in public if not has_name(name)}
    # Spelled otherwise: create_tile, create_tensor, pl.tensor.dim, out[:] = value, None.
    assert missing == {"create", "dim", "tensor assignment", "none"}


def has_name(name):
    """Whether pl has the name, which may be that of a family's function."""
    owner = pl
    for part in name.split("."):
        if not hasattr(owner, part):
            return False
        owner = getattr(owner, part)
    return True


@pytest.mark.conforms("language.13")
def test_annotations_are_values():
    assert pl.Tensor[[16, 64], pl.FP32] == pl.Tensor((16, 64), pl.FP32)
    assert pl.Tensor[[16, 64], pl.FP32].shape == (16, 64)
    assert pl.Tensor[[16, 64], pl.FP32, pl.ND].layout is pl.ND
    assert pl.Tensor[[pl.dynamic("M"), 64], pl.FP32].shape[0] == pl.dynamic("M")
    assert pl.Tile[[16, 64], pl.FP32, pl.Mem.Acc].space is pl.Mem.Acc
    assert pl.Scalar[pl.INT32].dtype is pl.INT32
    assert pl.Out[pl.Tensor].inner is pl.Tensor
    assert pl.InOut[pl.Tensor[[4], pl.FP32]].direction.value == "InOut"


@pytest.mark.conforms("language.14", "language.26")
@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: pl.Tensor[pl.FP32], TypeError, r"pl\.Tensor takes \[shape, dtype\]"),
        (lambda: pl.Tensor[[4], pl.FP32, 1, 2, 3], TypeError, r"takes \[shape, dtype\]"),
        (lambda: pl.Tensor[4, pl.FP32], TypeError, "the shape must be a list"),
        (lambda: pl.Tensor[[True], pl.FP32], TypeError, "neither an int nor a pl.dynamic"),
        (lambda: pl.Tensor[[-4], pl.FP32], ValueError, "extent -4 is not positive"),
        (lambda: pl.Tensor[[], pl.FP32], TypeError, "at least one dimension"),
        (lambda: pl.Tensor[[4], "fp32"], TypeError, "'fp32' is not an element type"),
        (lambda: pl.Tensor[[4], pl.FP32, "DN"], TypeError, "'DN' is not one layout such as pl.NZ"),
        (lambda: pl.Tile[[4], pl.FP32], TypeError, "a tile has two constant extents"),
        (lambda: pl.Tile[[4, 4], pl.FP32, 3], TypeError, "3 is not one pl.MemRef"),
        (lambda: pl.Scalar[3], TypeError, "3 is not an element type"),
        (lambda: pl.Out[pl.FP32], TypeError, "takes a pl.Tensor"),
        (lambda: pl.dynamic("two words"), ValueError, "is not an identifier"),
        (lambda: pl.dynamic(3), ValueError, "is not an identifier"),
    ],
)
def test_wrong_annotations_say_so(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="has no attribute 'lod'"):
        pl.lod  # noqa: B018


def test_the_language_imports_no_torch():
    code = "import sys, pypto.language.parser.program; sys.exit('torch' in sys.modules)"
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=environ, check=False).returncode == 0
