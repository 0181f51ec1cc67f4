# ruff: noqa: F841 - kernels bind names to be looked at
"""Expressions: what is folded, what becomes an operation, and how each call is spelled."""

from __future__ import annotations

import math

import pypto.language as pl
import pytest
from pypto.ir.dtypes import BOOL, FP16, FP32, INDEX, INT8, INT32
from pypto.ir.nodes import Const, MemorySpace, Op
from pypto.language.parser.diagnostics import exceptions as errors


def ops(lang, kernel, **arguments):
    """The operations of the kernel's body as printed, one a line."""
    return [line.strip() for line in lang.lines(lang.parse(kernel, **arguments))]


@pytest.mark.conforms("language.32", "language.40", "language.95")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2 + 3 * 4 - 1", 13),
        ("7 // 2 + 7 % 4 + 2 ** 3", 14),
        ("(1 << 4) | (6 & 3) ^ 1 >> 0", 16 | 2 ^ 1),
        ("-(-3) + +2 + ~0", 4),
        ("len([1, 2, *(3, 4)])", 4),
        ("max(3, min(9, 5), sum([1, 1]))", 5),
        ("abs(-4) + int(2.9) + round(1.6)", 8),
        ("int(math.sqrt(64)) + math.ceil(0.5)", 9),
        ("3 if 1 < 2 <= 2 != 3 else 4", 3),
        ("1 if 'a' in ('a', 'b') and not None else 0", 1),
        ("1 if 2 not in [2] or x.dtype is pl.FP32 else 0", 1),
        ("1 if x.dtype == pl.FP32 and x.dtype != pl.FP16 else 0", 1),
        ("[4, 5, 6][-1] + (7, 8)[0] + {}[1:][0]".replace("{}", "[1, 2]"), 15),
        ("x.shape[0] * x.shape[-1] // 64", 64),
        ("pl.tensor.dim(x, -1) + pl.tensor.dim(x, 0)", 128),
        ("pl.min(3, 4) + pl.max(3, 4) + pl.abs(-1) + pl.neg(2)", 6),
        ("pl.add(1, 2) * pl.sub(5, 3) + pl.mul(2, 2) + pl.maximum(1, 2)", 12),
        ("len(f'{x.shape[0]}-{2}')", 4),
    ],
)
def test_known_expressions_are_folded(lang, tmp_path, text, value):
    body = f"def kernel(x: pl.Tensor):\n    pl.static_assert(({text}) == {value}, 'folded')\n"
    path = tmp_path / "folded.py"
    path.write_text(body)
    names = {"pl": pl, "math": math}
    exec(compile(body, str(path), "exec"), names)
    program = lang.parse(names["kernel"], x=lang.tensor(64, 64))
    assert [line for line in lang.lines(program) if line.strip()] == ["return"]


@pytest.mark.conforms("language.93", "language.94", "language.96")
def test_run_time_scalars(lang):
    def kernel(n: pl.INT32, f: pl.FP32, b: pl.Scalar[pl.BOOL], k: pl.INDEX):
        neg_n = -n
        not_b = not b
        truth = not n
        same = +n
        mixed = n * 2 + k
        half = n / 2
        quotient = n // 4 % 3
        both = b and n > 0 and True
        either = b or False
        never = b and False
        size = pl.max(k, 1)
        wide = pl.cast(n, pl.FP32)
        whole = int(f)
        real = float(n)
        absolute = pl.abs(f)
        typed = pl.cast(3.7, pl.INT8)

    assert ops(lang, kernel, n=INT32, f=FP32, b=BOOL, k=INDEX) == [
        "neg_n = pl.scalar.neg(n)",
        "not_b = pl.scalar.not_(b)",
        "ne = pl.scalar.ne(n, pl.const(0, pl.INT32))",
        "truth = pl.scalar.not_(ne)",
        "mul = pl.scalar.mul(n, pl.const(2, pl.INT32))",
        "mul_1 = pl.scalar.cast(mul, dtype=pl.INDEX)",
        "mixed = pl.scalar.add(mul_1, k)",
        "n_1 = pl.scalar.cast(n, dtype=pl.FP32)",
        "half = pl.scalar.truediv(n_1, 2.0)",
        "floordiv = pl.scalar.floordiv(n, pl.const(4, pl.INT32))",
        "quotient = pl.scalar.mod(floordiv, pl.const(3, pl.INT32))",
        "gt = pl.scalar.gt(n, pl.const(0, pl.INT32))",
        "both = pl.scalar.and_(b, gt)",
        "size = pl.scalar.max(k, 1)",
        "wide = pl.scalar.cast(n, dtype=pl.FP32, mode='round')",
        "whole = pl.scalar.cast(f, dtype=pl.INDEX)",
        "real = pl.scalar.cast(n, dtype=pl.FP32)",
        "absolute = pl.scalar.sub(0.0, f)",
        "absolute_1 = pl.scalar.max(f, absolute)",
        "return",
    ]


@pytest.mark.conforms("language.94")
def test_short_circuits_skip_what_python_would(lang):
    def kernel(n: pl.INT32, use: pl.constexpr):
        small = use and undefined_name > 3  # noqa: F821
        pl.static_assert(small is False or small == False)  # noqa: E712

    lang.parse(kernel, n=INT32, use=False)
    with pytest.raises(errors.UndefinedVariableError, match="undefined_name"):
        lang.parse(kernel, n=INT32, use=True)


@pytest.mark.conforms("language.30")
def test_a_dynamic_name_reads_its_extent(lang):
    rows = pl.dynamic("M")

    def kernel(x: pl.Tensor[[rows, 64], pl.FP32], y: pl.Out[pl.Tensor[[rows, 64], pl.FP32]]):
        half = rows // 2
        scratch = pl.create_tensor([rows, 8], dtype=pl.FP16)
        with pl.at(level=pl.Level.CORE_GROUP):
            for r in pl.range(0, half, 16):
                y = pl.store(pl.load(x, [r, 0], [16, 64]), [r, 0], y)

    assert ops(lang, kernel)[:4] == [
        "dim = pl.tensor.dim(x, axis=0)",
        "half = pl.scalar.floordiv(dim, 2)",
        "dim_1 = pl.tensor.dim(x, axis=0)",
        "scratch = pl.tensor.create(dim_1, dtype=pl.FP16, shape=[None, 8], symbols=['M'])",
    ]

    def lost(n: pl.INT32):
        return rows + n

    with pytest.raises(errors.ParserTypeError, match="no tensor parameter has the extent"):
        lang.parse(lost, n=INT32)


@pytest.mark.conforms("language.136", "language.137")
def test_every_unary_and_reduction(lang):
    def kernel(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [16, 64])
            tmp = pl.create_tile([16, 64])
            t = pl.abs(pl.neg(pl.relu(pl.recip(pl.rsqrt(pl.sqrt(pl.log(pl.exp(t))))))))
            low = pl.row_min(t, tmp)
            high = pl.row_max(t, tmp_tile=tmp)
            t = pl.row_expand_add(t, pl.sub(high, low))
            t = pl.col_expand(t, pl.load(x, [0, 0], [1, 64]))
            t = pl.minimum(pl.maximum(t, pl.full([16, 64], pl.FP32, -1)), 1)
            y = pl.store(pl.move(t, pl.Mem.Vec), [0, 0], y)

    shown = ops(lang, kernel, x=lang.tensor(16, 64), y=lang.tensor(16, 64))
    names = [line.split(" = pl.tile.")[1].split("(")[0] for line in shown[1:-1]]
    assert names == [
        "load", "create", "exp", "log", "sqrt", "rsqrt", "recip", "relu", "neg", "abs", "row_min",
        "row_max", "sub", "row_expand_add", "load", "col_expand", "full", "maximum", "mins", "move",
        "store",
    ]  # fmt: skip


@pytest.mark.conforms("language.140")
def test_tensor_level_operations(lang):
    def kernel(a: pl.Tensor, b: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            c = pl.matmul(a, b, out_dtype=pl.FP16)
            wide = a @ b
            wide = pl.matmul_acc(wide, a, b)
            e = pl.exp(wide - pl.row_max(wide))
            y[...] = pl.add(e / pl.row_sum(e), pl.cast(c, pl.FP32, 0))

    half = lang.tensor(16, 16, dtype=FP16)
    shown = ops(lang, kernel, a=half, b=half, y=lang.tensor(16, 16))
    assert [line.split(" = pl.tensor.")[1].split("(")[0] for line in shown[1:-1]] == [
        "matmul", "cast", "matmul", "matmul_acc", "row_max", "row_expand_sub", "exp", "row_sum",
        "row_expand_div", "cast", "add", "assign",
    ]  # fmt: skip
    assert "mode='none'" in shown[-4]


@pytest.mark.conforms("language.134", "language.142")
def test_products_of_tiles(lang):
    def kernel(a: pl.Tensor, b: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            left = pl.move(pl.load(a, [0, 0], [16, 16], target_memory=pl.Mem.Mat), pl.Mem.Left)
            right = pl.load(b, [0, 0], [16, 16], target_memory=pl.Mem.Mat)
            c = pl.matmul(left, right)
            d = pl.matmul_acc(c, left, right)
            y[:] = pl.relu(pl.cast(pl.move(d, pl.Mem.Vec), pl.FP32))

    byte = lang.tensor(16, 16, dtype=INT8)
    program = lang.parse(kernel, a=byte, b=byte, y=lang.tensor(16, 16))
    types = {s.result.name: s.result.type for s in program.functions["kernel"].body[0].body}
    assert types["left"].space is MemorySpace.Left
    assert (types["d"].space, types["d"].dtype) == (MemorySpace.Acc, INT32)

    def wrong(a: pl.Tensor):
        with pl.at(level=pl.Level.CORE_GROUP):
            left = pl.load(a, [0, 0], [16, 16], target_memory=pl.Mem.Mat)
            pl.matmul(left, left, out_dtype=pl.FP16)

    with pytest.raises(errors.ParserTypeError, match="accumulated in int32; leave out_dtype out"):
        lang.parse(wrong, a=byte)


@pytest.mark.conforms("language.132")
def test_valid_shapes(lang):
    def kernel(x: pl.Tensor, v: pl.Tensor, y: pl.Out[pl.Tensor], n: pl.INT32):
        with pl.at(level=pl.Level.CORE_GROUP):
            a = pl.load(x, [0, 0], [16, 64], valid_shape=[n, 60])
            b = pl.load(x, [60, 0], [16, 64], clamp=True)
            c = pl.load(v, [n], [32], clamp=True)
            y = pl.store(a, [0, 0], y)
            y = pl.store(b, [0, 0], y)
            y = pl.store(c, [0, 0], y)

    program = lang.parse(
        kernel, x=lang.tensor(64, 64), v=lang.tensor(40), y=lang.tensor(64, 64), n=INT32
    )
    body = program.functions["kernel"].body[0].body
    tiles = {s.result.name: s for s in body if isinstance(s, Op) and s.op == "tile.load"}
    assert tiles["a"].result.type.valid == (None, 60)
    assert tiles["b"].result.type.valid == (4, 64)
    assert tiles["c"].result.type.valid == (1, None)
    assert tiles["c"].operands[2] == Const(1, INDEX)


@pytest.mark.conforms("language.146")
def test_reshapes_of_tensors_are_views(lang):
    def kernel(x: pl.Tensor, y: pl.Tensor):
        flat = pl.reshape(y, [-1])
        with pl.at(level=pl.Level.CORE_GROUP):
            flat = pl.store(pl.load(x, [0], [16]), [3], flat)
        return y

    program = lang.parse(kernel, x=lang.tensor(64), y=lang.tensor(4, 16))
    directions = [p.direction.value for p in program.functions["kernel"].params]
    assert directions == ["In", "InOut"]  # written through the view


WRONG = {
    "part of a tensor": ("x[0:1, None]", errors.UnsupportedFeatureError, "indexed by a : b and"),
    "index known": ("[1, 2][n]", errors.InvalidOperationError, "must be known when the kernel"),
    "index too large": ("[1, 2][2]", errors.InvalidOperationError, "list index out of range"),
    "index of a number": ("n[0]", errors.InvalidOperationError, "cannot index a scalar int32"),
    "index of a class": ("pl.Mem['Vec']", errors.InvalidOperationError, "cannot index"),
    "wrong marker": ("pl.Tile[[4], pl.FP32]", errors.ParserTypeError, "two constant extents"),
    "unpack a scalar": ("[*n]", errors.ParserTypeError, "cannot unpack a scalar int32 with *"),
    "star argument": ("pl.exp(*[x])", errors.UnsupportedFeatureError, "unpacked with *"),
    "star keywords": ("pl.exp(**n)", errors.UnsupportedFeatureError, "unpacked with **"),
    "run-time ternary": ("1 if n > 2 else 3", errors.UnsupportedFeatureError, "if statement"),
    "not of a tensor": ("not x", errors.UnsupportedFeatureError, "'not' does not work on"),
    "invert a float": ("~(n * 0.5)", errors.UnsupportedFeatureError, "'~' does not work on"),
    "floor a tensor": ("x // 2", errors.UnsupportedFeatureError, "'//' does not work on tiles"),
    "matmul of numbers": ("2 @ 3", errors.UnsupportedFeatureError, "'@' does not work on 2"),
    "matmul with a number": ("x @ 3", errors.ParserTypeError, "takes two tiles or two tensors"),
    "compare a tensor": ("x < 3", errors.UnsupportedFeatureError, "write pl.cmp(x, y, cmp_type=2)"),
    "add a string": ("n + 's'", errors.ParserTypeError, "must be a number or a scalar, not 's'"),
    "format": ("f'{n:3}'", errors.UnsupportedFeatureError, "formats in an f-string"),
    "bytes": ("b'x'", errors.UnsupportedFeatureError, "the literal b'x'"),
    "attribute of a scalar": ("n.real", errors.InvalidOperationError, "has no attribute 'real'"),
    "sum of scalars": ("sum([n, 1])", errors.ParserTypeError, "argument of sum must be"),
    "round of a scalar": ("round(n)", errors.UnsupportedFeatureError, "known when the kernel"),
    "keyword of len": ("len(obj=[1])", errors.UnsupportedFeatureError, "takes no keywords"),
    "len of a number": ("len(3)", errors.InvalidOperationError, "cannot evaluate len on 3"),
    "calling a class": ("dict(a=1)", errors.UnsupportedFeatureError, "cannot be called"),
    "float of bool": ("b + 1", errors.InvalidOperationError, "'+': does not work on bool"),
    "unknown comparison": ("pl.cmp(x, x, 6)", errors.ParserTypeError, "0 eq, 1 ne, 2 lt, 3 le"),
    "unknown mode": ("pl.cast(n, pl.FP32, mode=7)", errors.ParserTypeError, "number from 0 to 6"),
    "infinite": ("pl.cast(1e400, pl.INT32)", errors.ParserTypeError, "no counterpart in int32"),
    "const of a scalar": ("pl.const(n, pl.FP32)", errors.ParserTypeError, "value must be a number"),
    "const out of range": ("pl.const(300, pl.INT8)", errors.ParserTypeError, "outside the range"),
    "axis": ("pl.tensor.dim(x, 2)", errors.InvalidOperationError, "axis 2 is out of range"),
    "axis type": ("pl.tensor.dim(x, 'a')", errors.ParserTypeError, "axis must be an int, not 'a'"),
    "dim of a scalar": ("pl.tensor.dim(n, 0)", errors.ParserTypeError, "tensor must be a tensor"),
    "reshape run-time": ("pl.reshape(x, [n])", errors.ParserTypeError, "shape[0] must be an int"),
    "two unknowns": ("pl.reshape(x, [-1, -1])", errors.ParserTypeError, "what -1 stands for"),
    "no divisor": ("pl.reshape(x, [-1, 7])", errors.InvalidOperationError, "do not divide"),
    "shape is a number": ("pl.reshape(x, 4)", errors.ParserTypeError, "shape must be a list"),
    "dtype": (
        "pl.create_tensor([4], 'f')",
        errors.ParserTypeError,
        "dtype must be an element type",
    ),
    "rank": ("pl.create_tensor([1] * 6)", errors.InvalidOperationError, "1 to 5 dimensions"),
    "extent": ("pl.create_tensor([0])", errors.InvalidOperationError, "must be positive"),
    "range": ("pl.range(3)", errors.ParserSyntaxError, "is the sequence of a for statement"),
    "at": ("pl.at(3)", errors.ParserSyntaxError, "opens a with statement"),
    "overflow": ("2.0 ** 5000", errors.InvalidOperationError, "cannot evaluate '**'"),
    "too large for int64": ("n + 2 ** 80", errors.ParserTypeError, "outside the range of int32"),
    "flag": ("pl.load(x, [0], [4], clamp=1)", errors.InvalidOperationError, "works on a core only"),
}


@pytest.mark.conforms("language.39", "language.42")
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_expression_is_named(lang, tmp_path, name):
    expression, kind, message = WRONG[name]
    text = f"def kernel(x: pl.Tensor, n: pl.INT32, b: pl.BOOL):\n    value = {expression}\n"
    path = tmp_path / "wrong.py"
    path.write_text(text)
    names = {"pl": pl}
    exec(compile(text, str(path), "exec"), names)
    with pytest.raises(errors.ParserError) as caught:
        lang.parse(names["kernel"], x=lang.tensor(64, 64), n=INT32, b=BOOL)
    assert message in caught.value.message
    assert type(caught.value) is kind
    assert caught.value.line == 2
