"""Parts of tensors outside a core: what they become, and what is refused."""

from __future__ import annotations

import pypto.language as pl
import pytest
from pypto.ir.dtypes import INT32
from pypto.ir.nodes import Direction, Op, Scope
from pypto.language.parser.diagnostics import exceptions as errors


def copy(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    return pl.store(pl.load(x, [0, 0], [8, 16]), [0, 0], out)


def views(program):
    return [s for s in program.functions[program.entry].body if getattr(s, "op", "") == VIEW]


VIEW = "tensor.view"


@pytest.mark.conforms("language.107")
def test_a_slice_outside_a_core_is_a_view(lang):
    copies = lang.incore(copy)

    def kernel(x: pl.Tensor, i: pl.INDEX, out: pl.Tensor):
        copies(x[i : i + 8, 16:32], out[8:, 0:16])

    program = lang.parse(kernel, x=lang.tensor(64, 64), i=pl.INDEX, out=lang.tensor(16, 16))
    assert lang.lines(program)[:2] == [
        "view = pl.tensor.view(x, i, 16, drop=[], shape=[8, 16], symbols=[])",
        "view_1 = pl.tensor.view(out, 8, 0, drop=[], shape=[8, 16], symbols=[])",
    ]
    directions = [param.direction for param in program.functions["kernel"].params]
    assert directions == [Direction.In, Direction.In, Direction.InOut]


@pytest.mark.conforms("language.108")
def test_a_slice_in_a_scope_stays_a_copy(lang):
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        part = x[8:24]
        with pl.at(level=pl.Level.CORE_GROUP):
            out[:] = pl.add(part[0:8], x[0:8])

    program = lang.parse(kernel, x=lang.tensor(64, 64), out=lang.tensor(8, 64))
    (scope,) = [s for s in program.functions["kernel"].body if isinstance(s, Scope)]
    assert len(views(program)) == 1
    assert [s.op for s in scope.body if isinstance(s, Op)] == [
        "tensor.slice",
        "tensor.slice",
        "tensor.add",
        "tensor.assign",
    ]


def test_an_inline_function_takes_and_makes_parts(lang):
    copies = lang.incore(copy)

    def copy_plane(x: pl.Tensor, i, out: pl.Tensor):
        copies(x[i], out[i])

    planes = lang.inline(copy_plane)

    def kernel(x: pl.Tensor, out: pl.Tensor):
        planes(x, 1, out)

    program = lang.parse(kernel, x=lang.tensor(4, 8, 16), out=lang.tensor(4, 8, 16))
    assert [op.attrs["drop"] for op in views(program)] == [(0,), (0,)]
    assert program.functions["kernel"].params[1].direction is Direction.InOut


@pytest.mark.conforms("language.107")
def test_a_part_of_run_time_size_has_the_limit_of_its_tensor(lang):
    copies = lang.incore(copy)

    def kernel(x: pl.Tensor, n: pl.INT32):
        copies(x[0:n, 0:16], x[0:n])

    program = lang.parse(kernel, x=lang.tensor(64, 64), n=INT32)
    first, second = (op.result.type.shape[0] for op in views(program))
    assert first == second
    assert first.limit == 64


@pytest.mark.conforms("language.109")
def test_an_assignment_outside_a_core_is_a_task(lang):
    def kernel(x: pl.Tensor, out: pl.Tensor):
        out[0:8] = x
        out = pl.assemble(out, x, [8, 0])
        x[:] = out[0:8]

    program = lang.parse(kernel, x=lang.tensor(8, 16), out=lang.tensor(16, 16))
    scopes = [s for s in program.functions["kernel"].body if isinstance(s, Scope)]
    assert [[s.op for s in scope.body] for scope in scopes] == [["tensor.assign"]] * 3
    directions = [param.direction for param in program.functions["kernel"].params]
    assert directions == [Direction.InOut, Direction.InOut]


HEAD = "def kernel(x: pl.Tensor, n: pl.INT32):\n"

WRONG = {
    "offsets": ("v = pl.slice(x, [8, 8], [0, 0, 0])", errors.InvalidOperationError,
                "pl.slice: offset needs 2 entries for a tensor fp32[64, 64], got 3"),
    "drop": ("v = pl.slice(x, [8, 8], [0, 0], drop_dims=[0])", errors.InvalidOperationError,
             "pl.slice: cannot drop axis 0 of a part of [8, 8]"),
    "valid": ("v = pl.slice(x, [8, 8], [0, 0], valid_shape=[9, 4])", errors.ParserTypeError,
              "pl.slice: valid_shape[0] is 9, outside 0 to 8"),
    "valid axes": ("v = pl.slice(x, [8, 8], [0, 0], valid_shape=[1, 2, 3])",
                   errors.ParserTypeError, "pl.slice: valid_shape needs 2 extents, got 3"),
    "clamp": ("v = pl.slice(x, [n, 8], [60, 0], clamp=True)", errors.ParserTypeError,
              "pl.slice: shape[0] must be an int known when the kernel is compiled, as only a"),
    "pad": ("v = pl.slice(x, [8, 8], [0, 0], pad_value=0)", errors.ParserTypeError,
            "pl.slice: pad_value fills a copy, but outside a core a slice names a part of the"),
    "declared": ("v = pl.slice(x, [8, 8], [0, 0], valid_shape=[4, 4])[0:9]",
                 errors.InvalidOperationError, "takes elements 0 to 9 of axis 0, which has 8"),
    "past": ("v = x[60:][0:8]", errors.InvalidOperationError,
             "pl.slice: takes elements 0 to 8 of axis 0, which has 4: out of range"),
    "past moved": ("v = x[n : n + 65]", errors.InvalidOperationError,
                   "pl.slice: takes 65 elements of axis 0, which has 64: out of range"),
    "beyond": ("v = x[64:]", errors.InvalidOperationError,
               "no elements along axis 0: it starts at 64, and the axis has 64"),
    "empty": ("v = x[8:8]", errors.InvalidOperationError, "extents must be positive"),
    "many": ("v = x[0:8, 0:8, 0]", errors.InvalidOperationError, "3 indices for a tensor of 2"),
    "gaps": ("v = pl.reshape(x[0:8, 0:8], [64])", errors.InvalidOperationError,
             "pl.reshape: the tensor is a part of a larger one with gaps between its elements"),
    "unequal": ("x[0:8] = x[0:7]", errors.InvalidOperationError,
                "shapes differ: the target is a tensor fp32[8, 64], the value a tensor fp32[7"),
    "assemble": ("v = pl.assemble(x, x[0:8], [0])", errors.InvalidOperationError,
                 "pl.assemble: offset needs 2 entries for a tensor fp32[64, 64], got 1"),
    "fraction": ("v = x[0.5:8]", errors.ParserTypeError, "must be a whole number, not 0.5"),
    "step": ("v = x[0:8:2]", errors.UnsupportedFeatureError, "a slice cannot have a step"),
    "returned": ("x[0:8] = x[8:16]\n    return x[0:8]", errors.InvalidOperationError,
                 "'view' is a part of 'x'; return 'x' itself"),
}  # fmt: skip


@pytest.mark.conforms("language.110")
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_part_is_refused_at_its_line(lang, tmp_path, name):
    body, kind, message = WRONG[name]
    path = tmp_path / "user.py"
    path.write_text(f"{HEAD}    {body}\n")
    names = {"pl": pl}
    exec(compile(path.read_text(), str(path), "exec"), names)
    with pytest.raises(kind) as caught:
        lang.parse(names["kernel"], x=lang.tensor(64, 64), n=INT32)
    assert message in caught.value.message
    assert (caught.value.file, caught.value.line) == (str(path), 2 + body.count("\n"))


@pytest.mark.conforms("language.102")
@pytest.mark.parametrize(
    ("region", "extent"),
    [
        ("i * 16 : (i + 1) * 16", 16),
        ("16 * i + n : n + 16 * (i + 1) - 4", 12),
        ("i : 8 + i", 8),
        ("n : n + 4", 4),
        ("i * n : i * n + 8", 8),
        ("t[1] * 4 : t[1] * 4 + 8", 8),
        ("t[1] * 4 : (t[1] + 2) * 4", 8),
        ("t[1] : t[0] + 8", None),
        ("i * n : n * i + 8", None),
        ("i * 2 : i * 3", None),
        ("s : s + 4", None),  # a short number may wrap in between
        ("0:n", None),
    ],
)
def test_extents_that_do_not_depend_on_the_run_are_known(lang, tmp_path, region, extent):
    text = (
        "def kernel(x: pl.Tensor, i: pl.INDEX, n: pl.INT32, s: pl.INT16, t: pl.Tensor):\n"
        f"    part = x[{region}]\n"
        "    x[0:1] = part[0:1]\n"
    )
    path = tmp_path / "user.py"
    path.write_text(text)
    names = {"pl": pl}
    exec(compile(text, str(path), "exec"), names)
    types = {"x": lang.tensor(64, 64), "i": pl.INDEX, "n": INT32, "s": pl.INT16}
    program = lang.parse(names["kernel"], **types, t=lang.tensor(2, dtype=INT32))
    assert views(program)[0].attrs["shape"] == (extent, 64)
