"""Every error names its culprit: the class, the message, and the exact place in the user's file.

``@@`` in a case marks the place; it is taken out before the kernel is compiled.
"""

from __future__ import annotations

import linecache
import textwrap

import pypto.language as pl
import pytest
from pypto.ir.dtypes import FP32, INT8, INT32
from pypto.language.parser.diagnostics import exceptions as errors

# The parameters are x: fp32[64, 64], h: bf16[64, 64], y: fp32[64, 64] Out, n: int32, f: fp32.
HEAD = "def kernel(x: pl.Tensor, h: pl.Tensor, y: pl.Out[pl.Tensor], n: pl.INT32, f: pl.FP32):\n"
SCOPE = "    with pl.at(level=pl.Level.CORE_GROUP):\n"
LOAD = "        t = pl.load(x, [0, 0], [16, 64])\n"


def orchestration(text):
    return HEAD + textwrap.indent(textwrap.dedent(text), "    ")


def scope(text):
    return HEAD + SCOPE + LOAD + textwrap.indent(textwrap.dedent(text), "        ")


CASES = {
    # --- names -----------------------------------------------------------------------------
    "unknown name": (
        scope("u = pl.exp(@@tt)"),
        errors.UndefinedVariableError,
        "name 'tt' is not defined; did you mean 't'?",
    ),
    "unknown name without a neighbour": (
        scope("u = pl.exp(@@nothing_like_it)"),
        errors.UndefinedVariableError,
        "name 'nothing_like_it' is not defined; define it before this line",
    ),
    "unknown function": (
        scope("u = @@pl.expp(t)"),
        errors.UndefinedVariableError,
        "'pl' has no attribute 'expp'; did you mean 'exp'?",
    ),
    "bound in one branch": (
        scope("if n > 0:\n    u = pl.exp(t)\ny[:] = @@u"),
        errors.UndefinedVariableError,
        "'u' is bound in one branch only of the if on line 4",
    ),
    "bound in a loop": (
        scope("for i in pl.range(4):\n    u = pl.exp(t)\ny = pl.store(@@u, [0, 0], y)"),
        errors.UndefinedVariableError,
        "'u' is bound only inside the loop on line 4",
    ),
    "loop variable after the loop": (
        scope("for i in pl.range(4):\n    pass\ny = pl.store(t, [@@i, 0], y)"),
        errors.UndefinedVariableError,
        "'i' is bound only inside the loop",
    ),
    "read before it is bound in a loop": (
        scope("for i in pl.range(4):\n    t = pl.add(t, @@u)\n    u = t"),
        errors.UndefinedVariableError,
        "name 'u' is not defined",
    ),
    "unsupported object": (
        scope("u = pl.add(t, @@OBJECT)"),
        errors.ParserTypeError,
        "rhs must be a tile, a tensor or a scalar, not a Python object",
    ),
    # --- shapes and types ------------------------------------------------------------------
    "shapes differ": (
        scope("u = @@pl.add(t, pl.load(x, [0, 0], [8, 64]))"),
        errors.InvalidOperationError,
        "pl.add: shapes differ: [16, 64] and [8, 64]",
    ),
    "dtypes differ": (
        scope("u = @@pl.sub(t, pl.cast(t, pl.INT32))"),
        errors.InvalidOperationError,
        "pl.sub: element types differ: tile fp32[16, 64] in Vec and tile int32[16, 64] in Vec; "
        "convert one with pl.cast",
    ),
    "a float function on integers": (
        scope("u = @@pl.exp(pl.cast(t, pl.INT32))"),
        errors.InvalidOperationError,
        "pl.exp: needs floating point elements, but got a tile int32[16, 64] in Vec",
    ),
    "a fraction for integers": (
        scope("u = @@pl.add(pl.cast(t, pl.INT32), 0.5)"),
        errors.ParserTypeError,
        "0.5 is not a whole number, as int32 needs",
    ),
    "a literal out of range": (
        scope("u = @@pl.add(pl.cast(t, pl.INT8), 300)"),
        errors.ParserTypeError,
        "300 is outside the range of int8, -128 to 127",
    ),
    "store of another dtype": (
        scope("y = @@pl.store(pl.cast(t, pl.FP16), [0, 0], y)"),
        errors.InvalidOperationError,
        "convert the value with pl.cast(x, pl.FP32)",
    ),
    "assignment of another dtype": (
        scope("@@y[:] = pl.exp(h)"),
        errors.InvalidOperationError,
        "element types differ: the value is a tensor bfloat16[64, 64]",
    ),
    "assignment of another shape": (
        scope("y[@@:] = t"),
        errors.InvalidOperationError,
        "a tile of [16, 64] does not fill a tensor of [64, 64]",
    ),
    "inner dimensions": (
        scope(
            """\
            a = pl.load(x, [0, 0], [16, 32], target_memory=pl.Mem.Mat)
            b = pl.load(x, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
            c = @@pl.matmul(a, b)"""
        ),
        errors.InvalidOperationError,
        "pl.matmul: inner dimensions differ: [16, 32] x [16, 64] (32 columns on the left, 16 rows "
        "on the right)",
    ),
    "matmul of vector tiles": (
        scope("c = @@pl.matmul(t, t)"),
        errors.InvalidOperationError,
        "it must be in Mat or Left: load it with target_memory=pl.Mem.Mat",
    ),
    "vector operation on a matrix tile": (
        scope("u = @@pl.exp(pl.load(x, [0, 0], [16, 64], target_memory=pl.Mem.Mat))"),
        errors.InvalidOperationError,
        "copy it with pl.move(x, pl.Mem.Vec) first",
    ),
    "illegal move": (
        scope("u = @@pl.move(t, pl.Mem.Left)"),
        errors.InvalidOperationError,
        "cannot move from Vec to Left; from Vec a tile can go to Vec",
    ),
    "move past the bias table": (
        scope("u = @@pl.move(t, pl.Mem.Bias)"),
        errors.InvalidOperationError,
        "pl.move: cannot move from Vec to Bias; from Vec a tile can go to Vec",
    ),
    "move out of the bias table": (
        scope(
            """\
            b = pl.load(x, [0, 0], [1, 64], target_memory=pl.Mem.Mat)
            u = @@pl.move(pl.move(b, pl.Mem.Bias), pl.Mem.Vec)"""
        ),
        errors.InvalidOperationError,
        "pl.move: cannot move from Bias to Vec; from Bias a tile can go to nowhere",
    ),
    "move to the scales": (
        scope(
            """\
            m = pl.load(x, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
            u = @@pl.move(m, pl.Mem.LeftScale)"""
        ),
        errors.InvalidOperationError,
        "pl.move: no operation reads tiles in LeftScale; factors have no scales; scale the product "
        "in Vec with pl.mul",
    ),
    "a tile in the scales": (
        scope("u = @@pl.create_tile([16, 64], target_memory=pl.Mem.RightScale)"),
        errors.InvalidOperationError,
        "no operation reads tiles in RightScale",
    ),
    "load into the scales": (
        scope("u = @@pl.load(x, [0, 0], [16, 16], target_memory=pl.Mem.LeftScale)"),
        errors.InvalidOperationError,
        "cannot load into LeftScale",
    ),
    "load into the accumulator": (
        scope("u = @@pl.load(x, [0, 0], [16, 16], target_memory=pl.Mem.Acc)"),
        errors.InvalidOperationError,
        "cannot load into Acc",
    ),
    "load out of range": (
        scope("u = @@pl.load(x, [56, 0], [16, 64])"),
        errors.InvalidOperationError,
        "pl.load: reads elements 56 to 72 of axis 0, which has 64: out of range",
    ),
    "load wider than the tensor": (
        scope("u = @@pl.load(x, [n, 0], [128, 64])"),
        errors.InvalidOperationError,
        "reads 128 elements of axis 0, which has 64",
    ),
    "negative offset": (
        scope("u = @@pl.load(x, [-1, 0], [16, 64])"),
        errors.InvalidOperationError,
        "offset 0 is -1; offsets count from 0",
    ),
    "too few offsets": (
        scope("u = @@pl.load(x, [0], [16, 64])"),
        errors.InvalidOperationError,
        "needs 2 offsets for a tensor fp32[64, 64], got 1",
    ),
    "too few extents": (
        scope("u = pl.load(x, [0, 0], @@[16])"),
        errors.InvalidOperationError,
        "shapes needs 2 extents",
    ),
    "run-time tile shape": (
        scope("u = pl.load(x, [0, 0], @@[n, 64])"),
        errors.ParserTypeError,
        "shapes[0] must be an int known when the kernel is compiled, not a scalar int32",
    ),
    "valid_shape too large": (
        scope("u = @@pl.load(x, [0, 0], [16, 64], valid_shape=[17, 64])"),
        errors.InvalidOperationError,
        "valid_shape[0] is 17, outside 0 to 16",
    ),
    "missing scratch tile": (
        scope("u = @@pl.row_max(t)"),
        errors.InvalidOperationError,
        "pl.row_max: needs a scratch tile when it works on a tile",
    ),
    "scratch tile of another shape": (
        scope("u = @@pl.row_sum(t, pl.create_tile([8, 64]))"),
        errors.InvalidOperationError,
        "tmp must be a tile like the first argument",
    ),
    "scratch tile for a tensor": (
        scope("u = pl.row_sum(x, @@t)"),
        errors.ParserTypeError,
        "takes no scratch tile when it works on a tensor",
    ),
    "row_expand of a row": (
        scope("u = @@pl.row_expand_mul(t, pl.load(x, [0, 0], [1, 64]))"),
        errors.InvalidOperationError,
        "argument 2 must be [16, 1] beside [16, 64], but is [1, 64]",
    ),
    "shapes that repeat to none": (
        scope("u = @@pl.load(x, [0, 0], [16, 1]) - pl.load(x, [0, 0], [8, 64])"),
        errors.InvalidOperationError,
        "pl.sub: shapes differ: [16, 1] and [8, 64]",
    ),
    "transposed factor of tiles": (
        scope("u = pl.matmul(t, t, b_trans=@@True)"),
        errors.ParserTypeError,
        "pl.matmul: b_trans exists for tensors only",
    ),
    "transposed axis": (
        scope("u = pl.transpose(t, 0, @@2)"),
        errors.ParserTypeError,
        "pl.transpose: axis2 must be an axis of a tile fp32[16, 64] in Vec, not 2",
    ),
    "unknown padding": (
        scope("u = pl.fillpad(t, @@pl.PadValue.null)"),
        errors.ParserTypeError,
        "pl.fillpad: pad_value must be pl.PadValue.zero, max or min, or 0",
    ),
    "stored region of another shape": (
        scope("y = pl.store(t, [0, 0], y, @@[8, 64])"),
        errors.InvalidOperationError,
        "pl.store: shapes is a region of [8, 64], but the tile has [16, 64]",
    ),
    "part outside a core": (
        orchestration("u = @@x[60:70]"),
        errors.InvalidOperationError,
        "pl.slice: takes elements 60 to 70 of axis 0, which has 64: out of range",
    ),
    "part past the end": (
        scope("u = @@x[60:70]"),
        errors.InvalidOperationError,
        "pl.slice: reads elements 60 to 70 of axis 0, which has 64: out of range",
    ),
    "part of no extent": (
        scope("u = x[@@3:3]"),
        errors.InvalidOperationError,
        "the region has no elements along axis 0",
    ),
    "open part from a run-time start": (
        scope("u = x[@@n:]"),
        errors.ParserSyntaxError,
        "the extent of axis 0 must be known when the kernel is compiled",
    ),
    "too many indices": (
        scope("u = x[@@0:1, 0:1, 0:1]"),
        errors.InvalidOperationError,
        "3 indices for a tensor of 2 dimensions",
    ),
    "part with an ellipsis": (
        scope("u = x[0:1, @@...]"),
        errors.UnsupportedFeatureError,
        "a kernel's tensors are indexed by a : b and numbers",
    ),
    "part past the end of a tile": (
        scope("u = @@t[8:24]"),
        errors.InvalidOperationError,
        "pl.slice: reads elements 8 to 24 of axis 0 of a tile of [16, 64]: out of range",
    ),
    "dropped axis": (
        scope("u = @@pl.slice(x, [16, 64], [0, 0], drop_dims=[0])"),
        errors.InvalidOperationError,
        "pl.slice: cannot drop axis 0 of a region of [16, 64]",
    ),
    "slice that is valid beyond itself": (
        scope("u = @@pl.slice(x, [16, 64], [0, 0], valid_shape=[17, 64])"),
        errors.InvalidOperationError,
        "pl.slice: valid_shape[0] is 17, outside 0 to 16",
    ),
    "slice with unknown padding": (
        scope("u = pl.slice(x, [16, 64], [0, 0], pad_value=@@1)"),
        errors.ParserTypeError,
        "pl.slice: pad_value must be pl.PadValue.zero, max or min, or 0",
    ),
    "slice of another rank": (
        scope("u = pl.slice(x, @@[16], [0, 0])"),
        errors.InvalidOperationError,
        "pl.slice: shape needs 2 extents for a tensor fp32[64, 64], got 1",
    ),
    "bits of floats": (
        scope("u = @@pl.and_(t, t)"),
        errors.InvalidOperationError,
        "pl.and_: needs integer elements, but got a tile fp32[16, 64] in Vec",
    ),
    "remainder of a number": (
        scope("u = @@pl.fmod(1.0, t)"),
        errors.ParserTypeError,
        "pl.fmod: lhs must be a tile or a tensor, not",
    ),
    "shifted number": (
        scope("u = @@pl.shl(1, 2)"),
        errors.ParserTypeError,
        "pl.shl: takes tiles or tensors, not",
    ),
    "slopes of another shape": (
        scope("u = @@pl.prelu(t, pl.load(x, [0, 0], [16, 1]))"),
        errors.InvalidOperationError,
        "pl.prelu: shapes differ: [16, 64] and [16, 1]",
    ),
    "column sum of a number": (
        scope("u = pl.col_sum(@@3)"),
        errors.ParserTypeError,
        "pl.col_sum: x must be a tile or a tensor",
    ),
    "reshape changes the count": (
        scope("u = @@pl.reshape(t, [16, 32])"),
        errors.InvalidOperationError,
        "cannot turn [16, 64] (1024 elements) into [16, 32] (512 elements)",
    ),
    "unknown cast mode": (
        scope("u = pl.cast(t, pl.FP16, mode=@@'up')"),
        errors.ParserTypeError,
        "unknown mode 'up'; use one of none, rint, round, floor, ceil, trunc, odd",
    ),
    "cast to no dtype": (
        scope("u = pl.cast(t, @@'fp16')"),
        errors.ParserTypeError,
        "target_type must be an element type such as pl.FP32, not 'fp16'",
    ),
    "tile and tensor mixed": (
        scope("u = @@pl.add(t, x)"),
        errors.InvalidOperationError,
        "load the tensor with pl.load first",
    ),
    "storing a tensor": (
        scope("y = pl.store(@@x, [0, 0], y)"),
        errors.ParserTypeError,
        "tile must be a tile, not a tensor fp32[64, 64]; load it with pl.load",
    ),
    # --- arguments -------------------------------------------------------------------------
    "missing argument": (
        scope("u = @@pl.load(x, [0, 0])"),
        errors.ParserTypeError,
        "pl.load: missing a required argument: 'shapes'; it takes (tensor, offsets, shapes,",
    ),
    "too many arguments": (
        scope("u = @@pl.exp(t, t)"),
        errors.ParserTypeError,
        "pl.exp: too many positional arguments",
    ),
    "unknown keyword": (
        scope("u = @@pl.load(x, offset=[0, 0], shapes=[16, 64])"),
        errors.ParserTypeError,
        "pl.load: has no parameter 'offset'; did you mean 'offsets'?",
    ),
    "plain function": (
        scope("u = @@plain(t)"),
        errors.UnsupportedFeatureError,
        "'plain' is a plain Python function, which a kernel cannot call; decorate it",
    ),
    "print": (
        scope("@@print(t)"),
        errors.UnsupportedFeatureError,
        "pl.static_print",
    ),
    "calling a tile": (
        scope("u = @@t(3)"),
        errors.UnsupportedFeatureError,
        "'t' is a tile fp32[16, 64] in Vec, which cannot be called",
    ),
    "method of a tile": (
        scope("u = @@t.exp()"),
        errors.InvalidOperationError,
        "has no attribute 'exp'; it has shape and dtype",
    ),
    # --- statements ------------------------------------------------------------------------
    "while": (
        scope("@@while n > 0:\n    pass"),
        errors.UnsupportedFeatureError,
        "while cannot be used in a kernel; use 'for i in pl.range(n):'",
    ),
    "break": (
        scope("for i in pl.range(4):\n    @@break"),
        errors.UnsupportedFeatureError,
        "break cannot be used in a kernel",
    ),
    "try": (
        scope("@@try:\n    pass\nfinally:\n    pass"),
        errors.UnsupportedFeatureError,
        "try cannot be used in a kernel",
    ),
    "import": (
        orchestration("@@import math"),
        errors.UnsupportedFeatureError,
        "import cannot be used in a kernel; import at module level",
    ),
    "nested function": (
        orchestration("@@def inner():\n    pass"),
        errors.UnsupportedFeatureError,
        "define it at module level with @pl.jit.inline",
    ),
    "assert": (
        orchestration("@@assert n > 0"),
        errors.UnsupportedFeatureError,
        "use pl.static_assert",
    ),
    "python range": (
        scope("for i in @@range(4):\n    pass"),
        errors.UnsupportedFeatureError,
        "a loop cannot run over range; use pl.range",
    ),
    "loop over a list": (
        scope("for i in @@[1, 2]:\n    pass"),
        errors.UnsupportedFeatureError,
        "a loop runs over pl.range",
    ),
    "step of zero": (
        scope("for i in @@pl.range(0, 4, 0):\n    pass"),
        errors.InvalidOperationError,
        "step must be positive, not 0",
    ),
    "loop over floats": (
        scope("for i in pl.range(@@1.5):\n    pass"),
        errors.ParserTypeError,
        "pl.range: stop must be a whole number, not 1.5",
    ),
    "list comprehension": (
        scope("u = @@[i for i in pl.range(4)]"),
        errors.UnsupportedFeatureError,
        "a list comprehension cannot be used in a kernel",
    ),
    "no effect": (
        scope("@@t"),
        errors.ParserSyntaxError,
        "this expression has no effect",
    ),
    "early return": (
        orchestration("if n > 0:\n    @@return y"),
        errors.UnsupportedFeatureError,
        "return must be the last statement",
    ),
    "code after return": (
        orchestration("return y\n@@n = 3"),
        errors.ParserSyntaxError,
        "nothing can follow return",
    ),
    "returning an input": (
        orchestration("@@return x"),
        errors.InvalidOperationError,
        "'x' is an input that is never written",
    ),
    "returning a scalar": (
        orchestration("@@return n"),
        errors.ParserTypeError,
        "a kernel returns tensors that it writes, not a scalar int32",
    ),
    "returning a created tensor": (
        orchestration("c = pl.create_tensor([16, 16])\n@@return c"),
        errors.InvalidOperationError,
        "'c' was made in this function",
    ),
    "binding nothing": (
        scope("@@u = pl.static_print(t)"),
        errors.InvalidOperationError,
        "pl.static_print gives no value to bind to 'u'",
    ),
    "unpacking a tile": (
        scope("@@a, b = t"),
        errors.ParserTypeError,
        "cannot unpack a tile fp32[16, 64] in Vec into several names",
    ),
    "unpacking too few": (
        orchestration("@@a, b, c = x.shape"),
        errors.ParserTypeError,
        "3 names for 2 values",
    ),
    "annotation that does not fit": (
        scope("@@u: pl.Tile[[16, 32], pl.FP32] = pl.exp(t)"),
        errors.ParserTypeError,
        "'u' is annotated pl.Tile[[16, 32], pl.FP32], but its value is a tile fp32[16, 64] in Vec",
    ),
    "slice with an unknown extent": (
        scope("y[@@n:64, :] = t"),
        errors.ParserSyntaxError,
        "the extent of a slice must be known when the kernel is compiled",
    ),
    "yield outside": (
        scope("@@pl.yield_(t)"),
        errors.ParserSyntaxError,
        "pl.yield_ ends the body of a loop that has init_values, or a branch of an if",
    ),
    "loop without its yield": (
        scope("@@for i, (a,) in pl.range(4, init_values=(t,)):\n    pass"),
        errors.ParserSyntaxError,
        "the body must end in pl.yield_ with 1 values",
    ),
    # --- values on several paths -----------------------------------------------------------
    "tile changes shape in a loop": (
        scope("@@for i in pl.range(4):\n    t = pl.load(x, [0, 0], [8, 64])\ny[0:16] = t"),
        errors.SSAViolationError,
        "'t' changes in this loop: a tile fp32[16, 64] in Vec on one path, a tile fp32[8, 64]",
    ),
    "tile becomes a number": (
        scope("@@if n > 0:\n    t = 3\nu = pl.exp(t)"),
        errors.SSAViolationError,
        "'t' differs between the branches of this if: 3 on one path",
    ),
    "another tensor under one name": (
        scope("z = x\n@@if n > 0:\n    z = y\npl.load(z, [0, 0], [16, 64])"),
        errors.SSAViolationError,
        "it would name one tensor on one path and another on the other",
    ),
    # --- scopes ----------------------------------------------------------------------------
    "tile after its scope": (
        HEAD + SCOPE + LOAD + SCOPE + "        y[:] = @@t\n",
        errors.ScopeIsolationError,
        "'t' belongs to a pl.at block that has ended; store it into a tensor",
    ),
    "scalar after its scope": (
        HEAD + SCOPE + "        k = x[n, 0]\n    for i in pl.range(@@k):\n        pass\n",
        errors.ScopeIsolationError,
        "'k' belongs to a pl.at block that has ended; only a scalar that is computed from scalars "
        "outside a loop or a branch of the block is known after it",
    ),
    "load outside a scope": (
        orchestration("t = @@pl.load(x, [0, 0], [16, 64])"),
        errors.InvalidOperationError,
        "pl.load: works on a core only; put it into a 'with pl.at(level=pl.Level.CORE_GROUP):'",
    ),
    "create_tensor on a core": (
        scope("c = @@pl.create_tensor([16, 16])"),
        errors.InvalidOperationError,
        "a core cannot allocate global memory",
    ),
    "nested scopes": (
        scope("@@with pl.at(level=pl.Level.CORE_GROUP):\n    pass"),
        errors.ParserSyntaxError,
        "pl.at blocks cannot be nested",
    ),
    "wrong level": (
        orchestration("with pl.at(level=@@3):\n    pass"),
        errors.ParserTypeError,
        "level must be pl.Level.CORE_GROUP, not 3",
    ),
    "another context manager": (
        orchestration("with @@open('x'):\n    pass"),
        errors.UnsupportedFeatureError,
        "a with statement opens pl.at",
    ),
    "bad name_hint": (
        orchestration("with pl.at(level=pl.Level.CORE_GROUP, name_hint=@@'a b'):\n    pass"),
        errors.ParserTypeError,
        "name_hint must be an identifier, not 'a b'",
    ),
    # --- compile time ----------------------------------------------------------------------
    "static assertion": (
        orchestration("@@pl.static_assert(x.shape[0] == 128, 'needs 128 rows')"),
        errors.ParserError,
        "static assertion failed: needs 128 rows",
    ),
    "static assertion on a scalar": (
        orchestration("pl.static_assert(@@n > 0, 'positive')"),
        errors.ParserTypeError,
        "the condition must be known when the kernel is compiled",
    ),
    "division by zero": (
        orchestration("k = @@3 // 0"),
        errors.InvalidOperationError,
        "cannot evaluate '//' on 3, 0",
    ),
    "negative power": (
        orchestration("k = @@n ** -2"),
        errors.InvalidOperationError,
        "'**': a whole number to the power -2 is no whole number; convert the base",
    ),
    "float as an offset": (
        scope("y = pl.store(t, @@[f, 0], y)"),
        errors.ParserTypeError,
        "pl.store: offsets[0] must be a whole number, not a scalar fp32",
    ),
    "index out of range": (
        orchestration("k = x.shape[@@2]"),
        errors.InvalidOperationError,
        "axis 2 is out of range for a tensor fp32[64, 64]",
    ),
}


def plain(value):
    return value


def compiled(text, path):
    path.write_text(text)
    linecache.checkcache(str(path))
    names = {"pl": pl, "plain": plain, "OBJECT": object()}
    exec(compile(text, str(path), "exec"), names)
    return names["kernel"]


@pytest.mark.conforms(
    "language.3",
    "language.17",
    "language.39",
    "language.40",
    "language.43",
    "language.48",
    "language.64",
    "language.81",
    "language.82",
    "language.97",
    "language.103",
    "language.106",
    "language.127",
    "language.129",
    "language.131",
    "language.133",
    "language.134",
    "language.137",
    "language.139",
    "language.140",
    "language.142",
    "language.143",
    "language.146",
    "language.147",
    "language.149",
    "language.151",
)
@pytest.mark.parametrize("name", CASES)
def test_an_error_names_the_culprit_and_its_place(lang, tmp_path, name):
    marked, kind, message = CASES[name]
    before, _, after = marked.partition("@@")
    kernel = compiled("# a line before the kernel\n\n" + before + after, tmp_path / "user.py")
    wide = lang.tensor(64, 64)
    with pytest.raises(errors.ParserError) as caught:
        lang.parse(kernel, x=wide, h=lang.tensor(64, 64, dtype=pl.BF16), y=wide, n=INT32, f=FP32)
    error = caught.value
    # The messages say line numbers of the marked text.
    shown = message.replace("on line 4", "on line 6")
    assert shown in error.message
    assert type(error) is kind
    assert error.file == str(tmp_path / "user.py")
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    assert (error.line, error.column) == (line + 2, column)
    assert (error.span.unit, error.span.line) == ("kernels:kernel", line)
    text = (before + after).splitlines()[line - 1]
    assert str(error).splitlines() == [
        f"{error.file}:{error.line}:{error.column}: {error.message}",
        f"    {text}",
        f"    {' ' * (column - 1)}^",
    ]


SIGNATURES = {
    "no annotation object": ("x: @@3", "3 is no annotation for a kernel; use pl.Tensor"),
    "python type": ("x: @@int", "for a number given at each run write pl.Scalar[pl.INT64]"),
    "bare direction": ("x: @@pl.Out", "write pl.Out[pl.Tensor]"),
    "bare scalar": ("x: @@pl.Scalar", "a scalar needs its element type"),
    "tile": ("x: @@pl.Tile[[16, 16], pl.FP32]", "a tile cannot be a parameter"),
    "wrong arity": ("x: @@pl.Tensor[[16, 16]]", "pl.Tensor takes [shape, dtype]"),
    "wrong extent": ("x: @@pl.Tensor[[0, 16], pl.FP32]", "extent 0 is not positive"),
    "direction of a scalar": ("x: @@pl.Out[pl.FP32]", "pl.Out[...] takes a pl.Tensor"),
    "string that does not parse": ("x: @@'pl.Tensor['", "annotation 'pl.Tensor[' does not parse"),
    "unknown name in a string": ("x: @@'pl.Tensr'", "'pl' has no attribute 'Tensr'; did you mean"),
    "variadic": ("*@@rest", "so it cannot have *rest"),
    "rank 6": ("x: @@pl.Tensor[[1, 1, 1, 1, 1, 1], pl.FP32]", "a tensor has 1 to 5 dimensions"),
}


@pytest.mark.conforms("language.17", "language.37")
@pytest.mark.parametrize("name", SIGNATURES)
def test_a_wrong_annotation_is_named(lang, tmp_path, name):
    marked, message = SIGNATURES[name]
    column = len("def kernel(") + marked.index("@@") + 1
    text = (
        f"from __future__ import annotations\ndef kernel({marked.replace('@@', '')}):\n    pass\n"
    )
    kernel = compiled(text, tmp_path / "user.py")
    with pytest.raises(errors.ParserError) as caught:
        lang.parse(kernel, x=lang.tensor(16, 16))
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == (2, column)


def test_arguments_must_fit_the_annotations(lang):
    def kernel(x: pl.Tensor[[16, 64], pl.FP32], n: pl.INT32, k: pl.constexpr):
        pass

    fits = {"x": lang.tensor(16, 64), "n": INT32, "k": 3}
    lang.parse(kernel, **fits)
    for wrong, message in (
        (
            {"x": lang.tensor(16, 32)},
            "declared a tensor fp32[16, 64], but the argument is a tensor",
        ),
        ({"x": lang.tensor(16, 64, dtype=INT8)}, "declared a tensor fp32[16, 64]"),
        ({"n": FP32}, "declared a scalar int32, but the argument is a scalar fp32"),
        ({"x": FP32}, "declared a tensor"),
        ({"k": INT32}, "parameter 'k' cannot be a scalar int32"),
        ({"n": 3}, "parameter 'n' cannot be a constant"),
        ({"extra": 3}, "kernel has no parameter 'extra'"),
    ):
        with pytest.raises(errors.ParserTypeError) as caught:
            lang.parse(kernel, **{**fits, **wrong})
        assert message in caught.value.message


@pytest.mark.conforms("language.43")
def test_a_position_counts_characters_and_the_users_columns(lang, tmp_path):
    text = "if True:\n    def kernel(x: pl.Tensor):\n        größe = 1; k = mist\n"
    kernel = compiled(text, tmp_path / "user.py")
    with pytest.raises(errors.UndefinedVariableError) as caught:
        lang.parse(kernel, x=lang.tensor(16, 16))
    assert caught.value.column == text.splitlines()[2].index("mist") + 1
    shown = "    " + text.splitlines()[2]
    assert str(caught.value).splitlines()[-2:] == [shown, shown.index("mist") * " " + "^"]
