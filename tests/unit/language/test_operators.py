"""What calls of the operators become, in every spelling, and what wrong ones say."""

from __future__ import annotations

import linecache
import textwrap

import pypto.language as pl
import pytest
from pypto.ir.dtypes import BF16, BOOL, FP32, INDEX, INT8, UINT8
from pypto.language.parser.diagnostics import exceptions as errors

# x, y fp32[8, 16]; h bf16[8, 16]; a int8[8, 16]; u uint8[8, 16]; m bool[8, 16]; n index; f fp32.
# As tiles they have a t in front.
TYPES = {"x": FP32, "y": FP32, "h": BF16, "a": INT8, "u": UINT8, "m": BOOL}
HEAD = (
    "def kernel(x: pl.Tensor, y: pl.Tensor, h: pl.Tensor, a: pl.Tensor, u: pl.Tensor, "
    "m: pl.Tensor, n: pl.Scalar[pl.INDEX], f: pl.FP32):\n"
    "    with pl.at(level=pl.Level.CORE_GROUP):\n"
)
LOADS = "".join(f"        t{name} = pl.load({name}, [0, 0], [8, 16])\n" for name in TYPES)
FIRST_LINE = 3 + len(TYPES)


@pytest.fixture
def parsed(lang, request):
    def run(text):
        source = HEAD + LOADS + textwrap.indent(textwrap.dedent(text), "        ")
        name = f"<{request.node.name}>"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        namespace = {"pl": pl}
        exec(compile(source, name, "exec"), namespace)
        types = {k: lang.tensor(8, 16, dtype=d) for k, d in TYPES.items()}
        return lang.parse(namespace["kernel"], **types, n=INDEX, f=FP32)

    return run


# A statement, and the last operations that it becomes.
CALLS = {
    "pl.cmp(tx, ty, 2)": ["pl.tile.cmp(tx, ty, cmp_type=2)"],
    "pl.cmp(x, y, cmp_type=5)": ["pl.tensor.cmp(x, y, cmp_type=5)"],
    "pl.cmps(tx, 2.0, 4)": ["pl.tile.cmps(tx, 2.0, cmp_type=4)"],
    "pl.cmp(f, tx, 3)": ["pl.tile.cmps(tx, f, cmp_type=5)"],
    "pl.tile.sel(tm, tx, ty)": ["pl.tile.sel(tm, tx, ty)"],
    "pl.sel(tm, tx, 0)": ["pl.tile.sels(tm, tx, 0.0)"],
    "pl.sels(m, 1, x)": ["pl.tensor.rsels(m, x, 1.0)"],
    "pl.sel(tm, tx, th)": ["pl.tile.cast(th, dtype=pl.FP32, mode='none')",
                           "pl.tile.sel(tm, tx, th_1)"],
    "pl.and_(tm, pl.not_(tm))": ["pl.tile.not_(tm)", "pl.tile.and_(tm, not_)"],
    "pl.max(tx, 3)": ["pl.tile.maxs(tx, 3.0)"],
    "pl.div(ta, 3)": ["pl.tile.divs(ta, pl.const(3, pl.INT8))"],
    "pl.add(ta, tu)": ["pl.tile.cast(ta, dtype=pl.INT16, mode='none')",
                       "pl.tile.cast(tu, dtype=pl.INT16, mode='none')", "pl.tile.add(ta_1, tu_1)"],
    "pl.cast(tx, pl.INT8, mode=6)": ["pl.tile.cast(tx, dtype=pl.INT8, mode='odd')"],
    "pl.transpose(x, -1, 0)": ["pl.tensor.transpose(x, axis1=0, axis2=1)"],
    "pl.transpose_view(tx)": ["pl.tile.transpose_view(tx)"],
    "pl.set_validshape(tx, n, 3)": ["pl.tile.set_validshape(tx, n, 3)"],
    "pl.fillpad_expand(tx, [16, 16], pl.PadValue.max)": [
        "pl.tile.fillpad_expand(tx, pad='max', shape=[16, 16])"],
    "pl.fillpad_expand(tx)": ["pl.tile.fillpad(tx, pad='zero')"],
    "pl.matmul(x, y, b_trans=True)": ["pl.tensor.transpose(y, axis1=0, axis2=1)",
                                      "pl.tensor.matmul(x, y_1)"],
    "pl.matmul_acc(pl.matmul(x, y, a_trans=True), x, y, a_trans=True, init_cond=n == 0)": [
        "pl.tensor.matmul_init(matmul, eq, x_2, y)"],
    "pl.matmul_acc(pl.matmul(x, y, a_trans=True), x, y, a_trans=True, init_cond=True)": [
        "pl.tensor.matmul(x_2, y)"],
    "pl.cast(f, pl.INT32)": ["pl.scalar.cast(f, dtype=pl.INT32, mode='round')"],
    "pl.cast(f, pl.INT32, mode=None)": ["pl.scalar.cast(f, dtype=pl.INT32)"],
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_calls(parsed, lang, call):
    wanted = CALLS[call]
    found = [line.strip() for line in lang.lines(parsed(f"r = {call}"))]
    found.remove("return")
    results, _, calls = zip(*(line.partition(" = ") for line in found), strict=True)
    assert list(calls[-len(wanted) :]) == wanted
    assert results[-1] == "r"


@pytest.mark.parametrize(
    ("number", "mode", "value"),
    [
        (2.5, "rint", 2), (3.5, "none", 4), (2.5, "round", 3), (-2.5, "round", -3),
        (-0.25, "floor", -1), (0.25, "ceil", 1), (-2.75, "trunc", -2), (2.25, "odd", 3),
        (3.75, "odd", 3), (-2.25, "odd", -3), (0.75, "rint", 1), (7, "odd", 7),
    ],
)  # fmt: skip
def test_constants_round_by_their_mode(parsed, lang, number, mode, value):
    text = f"r = pl.add(ta, pl.cast({number}, pl.INT32, mode={mode!r}))"
    assert (
        lang.lines(parsed(text))[-2].strip() == f"r = pl.tile.adds(ta, pl.const({value}, pl.INT8))"
    )


ERRORS = {
    "cmp_type": ("pl.cmp(tx, ty, @@6)",
                 "pl.cmp: cmp_type must be one of 0 eq, 1 ne, 2 lt, 3 le, 4 gt, 5 ge, not 6"),
    "cmp of masks": ("@@pl.cmp(tm, tm)", "pl.cmp: cannot compute on a tile bool[8, 16] in Vec"),
    "no mask": ("@@pl.sel(tx, tx, ty)", "the mask must have bool elements, but is a tile fp32"),
    "mask of another kind": ("@@pl.sel(m, tx, ty)", "argument 2 must be a tensor"),
    "selected strings": ("pl.sel(tm, @@'a', tx)", "the scalar beside a tile fp32"),
    "float and int": ("@@pl.add(tx, ta)", "element types differ"),
    "add masks": ("@@pl.add(tm, tm)", "pl.add: cannot compute on a tile bool[8, 16] in Vec"),
    "exp of ints": ("@@pl.exp(ta)", "pl.exp: needs floating point elements, but got a tile int8"),
    "neg of unsigned": ("@@pl.neg(tu)", "pl.neg: needs elements that have a sign"),
    "shift of masks": ("@@pl.shl(tm, tm)", "pl.shl: needs integer elements"),
    "mode": ("pl.cast(tx, pl.INT8, mode=@@7)", "unknown mode 7; use one of none, rint, round"),
    "mode of elements": ("pl.cast(tx, pl.INT8, mode=@@None)", "unknown mode None"),
    "infinite constant": ("pl.cast(@@1e400, pl.INT8)", "inf has no counterpart in int8"),
    "axis": ("pl.transpose(tx, 0, @@2)", "axis2 must be an axis of a tile fp32[8, 16]"),
    "flag of tiles": ("pl.matmul(tx, ty, a_trans=@@True)",
                      "a_trans exists for tensors only; use pl.transpose_view on a tile"),
    "boxes of tiles": ("pl.matmul(tx, ty, c_matrix_nz=@@True)", "c_matrix_nz exists for tensors"),
    "condition": ("pl.matmul_acc(x, x, y, init_cond=@@x)", "a condition must be a scalar"),
    "rows": ("@@pl.set_validshape(tx, 9, 3)", "pl.set_validshape: rows is 9, outside 0 to 8"),
    "columns": ("pl.set_validshape(tx, 9, @@1.5)", "cols must be a whole number"),
    "smaller": ("@@pl.fillpad_expand(tx, [8, 8])", "cannot expand [8, 16] to [8, 8]"),
    "view of Acc": ("@@pl.transpose_view(pl.create_tile([8, 8], target_memory=pl.Mem.Acc))",
                    "cannot transpose a tile fp32[8, 8] in Acc; transpose it in Vec or Mat"),
    "tmp": ("@@pl.row_sum(tx)", "needs a scratch tile when it works on a tile"),
    "tmp of tensors": ("pl.row_sum(x, @@tx)", "takes no scratch tile when it works on a tensor"),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_wrong_calls_say_so_at_their_place(parsed, name):
    text, message = ERRORS[name]
    column = len("        r = ") + text.index("@@") + 1
    with pytest.raises(errors.ParserError) as caught:
        parsed("r = " + text.replace("@@", ""))
    assert message in str(caught.value)
    assert (caught.value.line, caught.value.column) == (FIRST_LINE, column)
