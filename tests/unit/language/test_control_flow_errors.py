"""Loops, branches, elements and subscripts that are wrong: the class, the message, the place.

``@@`` in a case marks the place; it is taken out before the kernel is compiled.
"""

from __future__ import annotations

import linecache
import textwrap

import pypto.language as pl
import pytest
from pypto.ir.dtypes import BOOL, INT32
from pypto.language.parser.diagnostics import exceptions as errors

# The parameters are x: fp32[64, 64], y: fp32[64, 64] Out, n: int32, flag: bool.
HEAD = "def kernel(x: pl.Tensor, y: pl.Out[pl.Tensor], n: pl.INT32, flag: pl.BOOL):\n"
SCOPE = "    with pl.at(level=pl.Level.CORE_GROUP):\n"
LOAD = "        t = pl.load(x, [0, 0], [16, 64])\n"


def orchestration(text):
    return HEAD + textwrap.indent(textwrap.dedent(text), "    ")


def scope(text):
    return HEAD + SCOPE + LOAD + textwrap.indent(textwrap.dedent(text), "        ")


CASES = {
    # --- pl.parallel, pl.pipeline ----------------------------------------------------------
    "pipeline without a stage": (
        orchestration("for i in @@pl.pipeline(4):\n    pass"),
        errors.ParserTypeError,
        "pl.pipeline: stage is missing: how many iterations may overlap, as in stage=2",
    ),
    "stage of zero": (
        orchestration("for i in pl.pipeline(4, stage=@@0):\n    pass"),
        errors.InvalidOperationError,
        "pl.pipeline: stage must be at least 1, not 0",
    ),
    "run-time stage": (
        orchestration("for i in pl.pipeline(4, stage=@@n):\n    pass"),
        errors.ParserTypeError,
        "pl.pipeline: stage must be an int known when the kernel is compiled, not a scalar int32",
    ),
    "boolean stage": (
        orchestration("for i in pl.pipeline(4, stage=@@True):\n    pass"),
        errors.ParserTypeError,
        "pl.pipeline: stage must be an int known when the kernel is compiled, not True",
    ),
    "stage of a range": (
        orchestration("for i in @@pl.range(4, stage=2):\n    pass"),
        errors.ParserTypeError,
        "pl.range: has no parameter 'stage'",
    ),
    "step of zero": (
        orchestration("for i in @@pl.parallel(0, 4, 0):\n    pass"),
        errors.InvalidOperationError,
        "pl.parallel: step must be positive, not 0",
    ),
    "negative step": (
        orchestration("for i in @@pl.pipeline(4, 0, -1, stage=2):\n    pass"),
        errors.InvalidOperationError,
        "pl.pipeline: step must be positive, not -1",
    ),
    "too many bounds": (
        orchestration("for i in @@pl.parallel(0, 1, 2, 3):\n    pass"),
        errors.ParserTypeError,
        "pl.parallel: takes (stop), (start, stop) or (start, stop, step), got 4 bounds",
    ),
    "parallel outside a for": (
        orchestration("k = @@pl.parallel(4)"),
        errors.ParserSyntaxError,
        "pl.parallel is the sequence of a for statement: for i in pl.range(n):",
    ),
    "one name for two values": (
        scope("for @@i, a in pl.parallel(4, init_values=(t, 0)):\n    pl.yield_(t, 1)"),
        errors.ParserSyntaxError,
        "with 2 init_values the loop is written 'for i, (a, b) in pl.parallel(...)'",
    ),
    "a name twice": (
        scope("for @@i, (i,) in pl.range(4, init_values=[0]):\n    r = pl.yield_(i)"),
        errors.ParserSyntaxError,
        "each name of a loop stands for one value",
    ),
    "yield without init_values": (
        scope("for i in pl.pipeline(4, stage=2):\n    r = @@pl.yield_(i)"),
        errors.ParserSyntaxError,
        "pl.yield_ needs init_values in this loop's pl.pipeline",
    ),
    "too few yields": (
        scope("@@for i, (a, b) in pl.range(4, init_values=(0, 1)):\n    r = pl.yield_(a)"),
        errors.ParserSyntaxError,
        "the body must end in pl.yield_ with 2 values, one for each of init_values",
    ),
    "yield to fewer names": (
        scope("for i, (a, b) in pl.range(4, init_values=(0, 1)):\n    @@r = pl.yield_(a, b)"),
        errors.ParserSyntaxError,
        "pl.yield_ is assigned to one name for each of its values",
    ),
    "carried value of two types": (
        scope("@@for i, (a,) in pl.range(4, init_values=(0,)):\n    r = pl.yield_(t)"),
        errors.SSAViolationError,
        "'a' changes in this loop: it starts as 0 and becomes a tile fp32[16, 64]",
    ),
    "carried name after the loop": (
        scope("for i, (a,) in pl.range(4, init_values=(0,)):\n    pl.yield_(a + 1)\nk = @@a"),
        errors.UndefinedVariableError,
        "'a' is bound only inside the loop on line 4",
    ),
    # --- pl.unroll -------------------------------------------------------------------------
    "run-time bound of an unrolled loop": (
        orchestration("for i in pl.unroll(@@n):\n    pass"),
        errors.ParserTypeError,
        "pl.unroll: stop must be an int known when the kernel is compiled, not a scalar int32; a "
        "loop over pl.range takes any bound",
    ),
    "unrolled loop with init_values": (
        orchestration("for i, (a,) in pl.unroll(4, init_values=@@(0,)):\n    pl.yield_(a)"),
        errors.ParserSyntaxError,
        "pl.unroll: has no init_values: each iteration is written out",
    ),
    "unrolled loop with a yield": (
        orchestration("for i in pl.unroll(4):\n    r = @@pl.yield_(i)"),
        errors.ParserSyntaxError,
        "pl.yield_ has no place in a loop over pl.unroll",
    ),
    "step of an unrolled loop": (
        orchestration("for i in @@pl.unroll(4, 0, -1):\n    pass"),
        errors.InvalidOperationError,
        "pl.unroll: step must be positive, not -1",
    ),
    "much too much to unroll": (
        orchestration("@@for i in pl.unroll(100000):\n    pass"),
        errors.UnsupportedFeatureError,
        "pl.unroll: 100000 iterations would write out more than 4096 copies of the body; use "
        "pl.range",
    ),
    "too much to unroll together": (
        orchestration("for i in pl.unroll(100):\n    @@for j in pl.unroll(100):\n        pass"),
        errors.UnsupportedFeatureError,
        "pl.unroll: 100 iterations, inside loops that are unrolled 100 times, would write out more "
        "than 4096 copies",
    ),
    "variable of an unrolled loop": (
        orchestration("for i in pl.unroll(4):\n    pass\nk = @@i"),
        errors.UndefinedVariableError,
        "'i' is the variable of the loop on line 2, which has ended",
    ),
    # --- pl.while_ -------------------------------------------------------------------------
    "while without a condition": (
        orchestration("for (k,) in pl.while_(init_values=(0,)):\n    @@r = pl.yield_(k + 1)"),
        errors.ParserSyntaxError,
        "the body of a loop over pl.while_ begins with pl.cond(condition)",
    ),
    "while with a late condition": (
        scope(
            "for (k,) in pl.while_(init_values=(0,)):\n"
            "    @@pl.store(t, [0, 0], y)\n    pl.cond(k < n)\n    r = pl.yield_(k + 1)"
        ),
        errors.ParserSyntaxError,
        "the body of a loop over pl.while_ begins with pl.cond(condition)",
    ),
    "while for ever": (
        orchestration(
            "for (k,) in pl.while_(init_values=(0,)):\n"
            "    pl.cond(@@1 < 2)\n    r = pl.yield_(k + 1)"
        ),
        errors.InvalidOperationError,
        "pl.cond: the condition is always true, so that the loop would not end",
    ),
    "while on a tile": (
        scope(
            "for (k,) in pl.while_(init_values=(0,)):\n    pl.cond(@@t)\n    r = pl.yield_(k + 1)"
        ),
        errors.ParserTypeError,
        "a condition must be a scalar or known when the kernel is compiled, not a tile",
    ),
    "while without its yield": (
        orchestration("@@for (k,) in pl.while_(init_values=(0,)):\n    pl.cond(k < n)"),
        errors.ParserSyntaxError,
        "the body must end in pl.yield_ with 1 values, one for each of init_values",
    ),
    "while with a counter": (
        orchestration(
            "for @@i, (k,) in pl.while_(init_values=(0,)):\n    pl.cond(k < n)\n    pl.yield_(k)"
        ),
        errors.ParserSyntaxError,
        "with 1 init_values the loop is written 'for (x,) in pl.while_(...)'",
    ),
    "two conditions": (
        orchestration(
            "for (k,) in pl.while_(init_values=(0,)):\n"
            "    pl.cond(k < n)\n    @@pl.cond(k < 4)\n    pl.yield_(k + 1)"
        ),
        errors.ParserSyntaxError,
        "pl.cond is the first statement of a loop over pl.while_",
    ),
    "condition of two parts": (
        orchestration(
            "for (k,) in pl.while_(init_values=(0,)):\n    @@pl.cond(k, n)\n    pl.yield_(k)"
        ),
        errors.ParserTypeError,
        "pl.cond: takes one condition",
    ),
    "name of the condition in the body": (
        orchestration(
            "for (k,) in pl.while_(init_values=(0,)):\n"
            "    more = k < n\n    pl.cond(more)\n    r = pl.yield_(k + @@more)"
        ),
        errors.UndefinedVariableError,
        "'more' is bound before pl.cond, for the condition alone",
    ),
    # --- branches --------------------------------------------------------------------------
    "yield in one branch": (
        orchestration("@@if flag:\n    k = pl.yield_(1)\nelse:\n    k = 2"),
        errors.ParserSyntaxError,
        "one branch of this if ends in pl.yield_ and the other does not",
    ),
    "yield without else": (
        orchestration("@@if flag:\n    k = pl.yield_(1)"),
        errors.ParserSyntaxError,
        "one branch of this if ends in pl.yield_ and the other does not",
    ),
    "yields of other names": (
        orchestration("@@if flag:\n    k = pl.yield_(1)\nelse:\n    m = pl.yield_(2)"),
        errors.ParserSyntaxError,
        "one branch of this if yields k, the other m; both must assign pl.yield_ to the same names",
    ),
    "yields of other counts": (
        orchestration("@@if flag:\n    k = pl.yield_(1)\nelse:\n    k, m = pl.yield_(2, 3)"),
        errors.ParserSyntaxError,
        "one branch of this if yields k, the other k, m",
    ),
    "yield in the middle of a branch": (
        orchestration("if flag:\n    k = @@pl.yield_(1)\n    j = 1\nelse:\n    k = 1\n    j = 2"),
        errors.ParserSyntaxError,
        "pl.yield_ ends the body of a loop that has init_values, or a branch of an if",
    ),
    "yield that is not what its annotation says": (
        scope("if flag:\n    @@k: pl.INT32 = pl.yield_(t)\nelse:\n    k: pl.INT32 = pl.yield_(n)"),
        errors.ParserTypeError,
        "the value of 'k' must be a number or a scalar, not a tile fp32[16, 64]",
    ),
    "yields of two kinds": (
        scope("@@if flag:\n    k = pl.yield_(1)\nelse:\n    k = pl.yield_(t)"),
        errors.SSAViolationError,
        "'k' differs between the branches of this if",
    ),
    # --- elements --------------------------------------------------------------------------
    "index past the end": (
        scope("k = @@x[64, 0]"),
        errors.InvalidOperationError,
        "pl.read: index 64 is outside axis 0 of a tensor fp32[64, 64]",
    ),
    "negative index": (
        orchestration("k = @@x[0, -1]"),
        errors.InvalidOperationError,
        "index -1 is outside axis 1 of a tensor fp32[64, 64]; indices count from 0 and cannot be",
    ),
    "too few indices": (
        orchestration("k = @@pl.read(x, [0])"),
        errors.InvalidOperationError,
        "pl.read: an element of a tensor fp32[64, 64] has 2 indices, not 1",
    ),
    "element of a number": (
        orchestration("k = pl.read(@@n, [0])"),
        errors.ParserTypeError,
        "pl.read: x must be a tile or a tensor, not a scalar int32",
    ),
    "float index": (
        orchestration("k = pl.read(x, @@[0, 0.5])"),
        errors.ParserTypeError,
        "pl.read: index 1 must be a whole number, not 0.5",
    ),
    "element of a tile in Mat": (
        scope("m = pl.load(x, [0, 0], [16, 16], target_memory=pl.Mem.Mat)\nk = @@m[0, 0]"),
        errors.InvalidOperationError,
        "elements of a tile can be used in Vec only, but it is in Mat; move it there with pl.move",
    ),
    "write past the end": (
        scope("@@t[0, 64] = 1.0"),
        errors.InvalidOperationError,
        "pl.write: index 64 is outside axis 1 of a tile fp32[16, 64]",
    ),
    "scalar for a region": (
        scope("@@y[0:8, 0] = 1.0"),
        errors.ParserTypeError,
        "a scalar is written to one element, by an index for each axis of a tensor fp32[64, 64]; "
        "fill a region with pl.full",
    ),
    "tile as an element": (
        scope("pl.write(y, [0, 0], @@t)"),
        errors.ParserTypeError,
        "pl.write: value must be a number or a scalar, not a tile",
    ),
    "truth value as an element": (
        orchestration("@@y[0, 0] = flag"),
        errors.ParserTypeError,
        "a bool scalar does not become fp32 by itself",
    ),
    # --- subscripts ------------------------------------------------------------------------
    "step in a slice": (
        scope("u = x[@@0:16:2]"),
        errors.UnsupportedFeatureError,
        "a slice cannot have a step in a kernel",
    ),
    "ellipsis": (
        scope("u = t[@@..., 0]"),
        errors.UnsupportedFeatureError,
        "a kernel's tensors are indexed by a : b and numbers",
    ),
    "None": (
        scope("u = x[@@None]"),
        errors.UnsupportedFeatureError,
        "a kernel's tensors are indexed by a : b and numbers",
    ),
    "negative start": (
        scope("u = x[@@-16:]"),
        errors.InvalidOperationError,
        "axis 0 of the region starts at -16; indices count from 0 and cannot be negative",
    ),
    "empty region": (
        scope("u = t[@@8:8]"),
        errors.InvalidOperationError,
        "the region has no elements along axis 0",
    ),
    "unknown extent": (
        scope("u = x[@@n:2 * n]"),
        errors.ParserSyntaxError,
        "the extent of a slice must be known when the kernel is compiled; write a : a + 16",
    ),
    "too many indices of a tile": (
        scope("u = t[@@0, 0, 0]"),
        errors.InvalidOperationError,
        "3 indices for a tile of 2 dimensions",
    ),
    "tile of another shape": (
        scope("y[@@0:8, :] = t"),
        errors.InvalidOperationError,
        "the region has [8, 64] elements, but the tile has [16, 64]",
    ),
    "tile into a part of a tile": (
        scope("t[@@0:8, :] = t"),
        errors.InvalidOperationError,
        "the region has [8, 64] elements, but the tile has [16, 64]",
    ),
    "tensor into a tile": (
        scope("@@t[:] = x"),
        errors.ParserTypeError,
        "cannot write a tensor fp32[64, 64] into a tile; load it with pl.load",
    ),
    "part of a number": (
        orchestration("@@n[0] = 1"),
        errors.InvalidOperationError,
        "cannot write into a scalar int32 with []",
    ),
}


def compiled(text, path):
    path.write_text(text)
    linecache.checkcache(str(path))
    names = {"pl": pl}
    exec(compile(text, str(path), "exec"), names)
    return names["kernel"]


@pytest.mark.conforms(
    "language.43",
    "language.83",
    "language.87",
    "language.88",
    "language.89",
    "language.92",
    "language.98",
    "language.100",
    "language.102",
    "language.103",
)
@pytest.mark.parametrize("name", CASES)
def test_an_error_names_the_culprit_and_its_place(lang, tmp_path, name):
    marked, kind, message = CASES[name]
    before, _, after = marked.partition("@@")
    kernel = compiled(before + after, tmp_path / "user.py")
    wide = lang.tensor(64, 64)
    with pytest.raises(errors.ParserError) as caught:
        lang.parse(kernel, x=wide, y=wide, n=INT32, flag=BOOL)
    error = caught.value
    assert message in error.message
    assert type(error) is kind
    assert error.file == str(tmp_path / "user.py")
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    assert (error.line, error.column) == (line, column)
