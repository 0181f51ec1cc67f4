"""Blocks, tasks and arrays that are wrong: the class, the message, the place.

``@@`` in a case marks the place; it is taken out before the kernel is compiled.
"""

from __future__ import annotations

import linecache
import textwrap

import pypto.language as pl
import pytest
from pypto.ir.dtypes import INT32
from pypto.language.parser.diagnostics import exceptions as errors

HEAD = "def kernel(x: pl.Tensor, y: pl.Out[pl.Tensor], n: pl.INT32):\n"


def helper(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    y = pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], y)
    return y


def orchestration(text):
    return HEAD + textwrap.indent(textwrap.dedent(text).strip("\n"), "    ")


AT = "with pl.at(level=pl.Level.CORE_GROUP"

CASES = {
    "a role": (
        AT + ", role=@@'worker'):\n    y[:] = x",
        errors.ParserTypeError,
        "pl.at: role must be None, not 'worker': a block of one core group has no other",
    ),
    "no number of blocks": (
        "with @@pl.spmd():\n    helper(x, y)",
        errors.ParserTypeError,
        "pl.spmd: takes a number of blocks, but blocks is missing",
    ),
    "two numbers of blocks": (
        "with @@pl.spmd(4, core_num=4):\n    helper(x, y)",
        errors.ParserTypeError,
        "pl.spmd: takes a number of blocks, but it is given twice",
    ),
    "negative number of blocks": (
        "with pl.spmd(@@-1):\n    helper(x, y)",
        errors.ParserTypeError,
        "pl.spmd: a task cannot run in -1 blocks; it takes 0 to 2147483647",
    ),
    "number of blocks with a fraction": (
        "for i in pl.spmd(@@1.5):\n    helper(x, y)",
        errors.ParserTypeError,
        "pl.spmd: the number of blocks must be a whole number, not 1.5",
    ),
    "blocks inside blocks": (
        "for i in pl.spmd(4):\n    @@for k in pl.spmd(4):\n        helper(x, y)",
        errors.ParserSyntaxError,
        "pl.spmd blocks cannot be nested",
    ),
    "block variable that is no name": (
        "for @@i, k in pl.spmd(4):\n    helper(x, y)",
        errors.ParserSyntaxError,
        "a loop over pl.spmd has one variable",
    ),
    "block index after the blocks": (
        "for i in pl.spmd(4):\n    helper(x, y)\nk = @@i + 1",
        errors.ScopeIsolationError,
        "'i' belongs to a pl.at block that has ended",
    ),
    "block index outside a core": (
        "k = @@pl.tile.get_block_idx()",
        errors.InvalidOperationError,
        "pl.tile.get_block_idx: works on a core only",
    ),
    "task id in an expression": (
        f"{AT}) as tid:\n    helper2 = 1\nk = @@tid + 1",
        errors.ParserTypeError,
        "operand of '+': 1 is a number, which names no task",
    ),
    "dependency that is no task": (
        f"{AT}, deps=@@[n]):\n    pass",
        errors.ParserTypeError,
        "pl.at: deps holds task ids, arrays of them and None, not a scalar int32",
    ),
    "dependencies that are no list": (
        f"{AT}, deps=@@3):\n    pass",
        errors.ParserTypeError,
        "pl.at: deps must be a list such as [tid], not 3",
    ),
    "array of numbers as a dependency": (
        f"a = pl.array.create(2, pl.INT64)\n{AT}, deps=@@[a]):\n    pass",
        errors.ParserTypeError,
        "pl.at: deps holds task ids, arrays of them and None, not a array of 2 int64",
    ),
    "tensor that the block does not use": (
        "with @@pl.at(level=pl.Level.CORE_GROUP, no_dep_args=[x]):\n"
        "    y = pl.store(pl.full([16, 64], pl.FP32, 0), [0, 0], y)",
        errors.InvalidOperationError,
        "no_dep_args names 'x', which the task does not use",
    ),
    "dumps of no tensor": (
        f"{AT}, dumps=@@[n]):\n    pass",
        errors.ParserTypeError,
        "pl.at: dumps holds tensors, not a scalar int32",
    ),
    "unknown optimization": (
        f"{AT}, optimizations=@@[3]):\n    pass",
        errors.ParserTypeError,
        "pl.at: optimizations is a list of pl.split(mode) and pl.cross_core_slot(slot_num=), not "
        "of 3",
    ),
    "split mode": (
        f"{AT}, optimizations=[pl.split(@@2)]):\n    pass",
        errors.ParserTypeError,
        "pl.split: mode must be a pl.SplitMode, not 2",
    ),
    "slot number": (
        f"{AT}, optimizations=[pl.cross_core_slot(slot_num=@@0)]):\n    pass",
        errors.ParserTypeError,
        "pl.cross_core_slot: slot_num must be a positive int, not 0",
    ),
    "flag that is none": (
        f"{AT}, windowize=@@2):\n    pass",
        errors.ParserTypeError,
        "pl.at: windowize must be True or False, not 2",
    ),
    "submitted value that is no kernel": (
        "tid = pl.submit(@@3, x, y)",
        errors.ParserTypeError,
        "pl.submit: submits a core function, such as @pl.jit.incore, not 3",
    ),
    "wrong argument of a submitted kernel": (
        "tid = @@pl.submit(helper, x)",
        errors.ParserTypeError,
        "helper: missing argument 'y'; it takes (x, y)",
    ),
    "submission from a core": (
        f"{AT}):\n    @@pl.submit(helper, x, y)",
        errors.InvalidOperationError,
        "pl.submit: submits a task, which a core cannot do",
    ),
    "submission in no number of blocks": (
        "@@pl.spmd_submit(helper, x, y)",
        errors.ParserTypeError,
        "pl.spmd_submit: missing a required argument: 'core_num'",
    ),
    "manual scope on a core": (
        f"{AT}):\n    @@with pl.manual_scope():\n        pass",
        errors.ParserSyntaxError,
        "pl.manual_scope blocks cannot be nested",
    ),
    "manual scope with a name": (
        "@@with pl.manual_scope() as tid:\n    pass",
        errors.ParserSyntaxError,
        "pl.manual_scope is no task, so as names nothing",
    ),
    "several names for a task": (
        f"{AT}) as @@(a, b):\n    pass",
        errors.ParserSyntaxError,
        "as takes one name",
    ),
    "size of an array": (
        "a = pl.array.create(@@n, pl.INT64)",
        errors.ParserTypeError,
        "pl.array.create: size must be an int known when the kernel is compiled, not a scalar "
        "int32",
    ),
    "array that is too large": (
        "a = @@pl.array.create(5000, pl.INT64)",
        errors.InvalidOperationError,
        "pl.array.create: an array holds 1 to 4096 scalars, not 5000",
    ),
    "index that is out of range": (
        "a = pl.array.create(4, pl.INT64)\nk = @@a[4]",
        errors.InvalidOperationError,
        "pl.array.read: index 4 is outside the array of 4 int64",
    ),
    "index of a write that is out of range": (
        "a = pl.array.create(4, pl.INT64)\n@@a[-1] = 3",
        errors.InvalidOperationError,
        "pl.array.write: index -1 is outside the array of 4 int64",
    ),
    "number in an array of task ids": (
        "a = pl.array.create(4, pl.TASK_ID)\n@@a[0] = 3",
        errors.ParserTypeError,
        "what is written into 'a' must be a task id or None, not 3",
    ),
    "array on a core": (
        f"a = pl.array.create(4, pl.INT64)\n{AT}):\n    k = @@a[0]",
        errors.InvalidOperationError,
        "'a' is an array, which lives in the orchestration: read and write its elements outside "
        "pl.at",
    ),
    "annotated array of another size": (
        "@@a: pl.Array[3, pl.INT64] = pl.array.create(4, pl.INT64)",
        errors.ParserTypeError,
        "'a' is annotated pl.Array[3, pl.INT64], but its value is a array of 4 int64",
    ),
    "annotated task id that is a number": (
        "@@a: pl.TaskId = 3",
        errors.ParserTypeError,
        "the value of 'a' must be a task id or None, not 3",
    ),
    "atomic that is none": (
        f"{AT}):\n    y = pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], y, atomic=@@True)",
        errors.ParserTypeError,
        "pl.store: atomic must be pl.AtomicType.Add or None_, not True",
    ),
    "atomic addition to a tile": (
        f"{AT}):\n    t = pl.load(x, [0, 0], [16, 64])\n"
        "    t = pl.assemble(t, t, [0, 0], atomic=@@pl.AtomicType.Add)",
        errors.ParserTypeError,
        "pl.assemble: a tile is one core's, so nothing is atomic about writing it",
    ),
    "first value that is not known": (
        "t = pl.create_tensor([16, 64], pl.FP32, init_value=@@n)",
        errors.ParserTypeError,
        "pl.create_tensor: init_value must be a number known when the kernel is compiled, not a "
        "scalar int32",
    ),
    "first value that does not fit": (
        "t = pl.create_tensor([16, 64], pl.INT8, init_value=@@300)",
        errors.ParserTypeError,
        "pl.create_tensor: init_value: 300 is outside the range of int8, -128 to 127",
    ),
    "manual_dep that is no flag": (
        "t = pl.create_tensor([16, 64], manual_dep=@@3)",
        errors.ParserTypeError,
        "pl.create_tensor: manual_dep must be True or False, not 3",
    ),
    "no_dep inside a block": (
        "for i in pl.spmd(4):\n    @@helper(pl.no_dep(x), y)",
        errors.ParserTypeError,
        "helper: argument 'x': pl.no_dep belongs to a task's own call; here name it in no_dep_args",
    ),
}


def compiled(text, path):
    path.write_text(text + "\n")
    linecache.checkcache(str(path))
    names = {"pl": pl, "helper": helper}
    exec(compile(text + "\n", str(path), "exec"), names)
    return names["kernel"]


@pytest.mark.conforms(
    "language.65",
    "language.66",
    "language.70",
    "language.71",
    "language.73",
    "language.78",
    "language.81",
    "language.135",
)
@pytest.mark.parametrize("name", CASES)
def test_an_error_names_the_culprit_and_its_place(lang, tmp_path, name):
    body, kind, message = CASES[name]
    before, _, after = orchestration(body).partition("@@")
    kernel = compiled(before + after, tmp_path / "user.py")
    kernel.__globals__["helper"] = lang.incore(helper)
    wide = lang.tensor(64, 64)
    with pytest.raises(errors.ParserError) as caught:
        lang.parse(kernel, x=wide, y=wide, n=INT32)
    error = caught.value
    assert message in error.message
    assert type(error) is kind
    assert error.file == str(tmp_path / "user.py")
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    assert (error.line, error.column) == (line, column)


def test_a_task_id_is_no_parameter_of_a_kernel(lang):
    def kernel(x: pl.Tensor, tid: pl.TaskId):
        pass

    with pytest.raises(errors.ParserTypeError, match="only an inline function can take one"):
        lang.parse(kernel, x=lang.tensor(64, 64), tid=INT32)


@pytest.mark.conforms("language.76")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pl.Array[4], r"pl\.Array takes \[size, dtype\]"),
        (lambda: pl.Array[0, pl.INT64], "the size must be a positive int, not 0"),
        (lambda: pl.Array[4, int], "is not an element type"),
    ],
)
def test_array_annotations_are_checked(make, message):
    with pytest.raises(TypeError, match=message):
        make()


@pytest.mark.conforms("language.80")
def test_atomic_additions_need_elements_that_can_be_added(lang):
    def kernel(x: pl.Tensor[[16, 64], pl.UINT8], y: pl.InOut[pl.Tensor[[16, 64], pl.UINT8]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], y, atomic=pl.AtomicType.Add)

    types = {name: lang.tensor(16, 64, dtype=pl.UINT8) for name in ("x", "y")}
    message = r"cannot add atomically to a tensor uint8\[16, 64\]; its elements must be one of fp32"
    with pytest.raises(errors.InvalidOperationError, match=message):
        lang.parse(kernel, **types)
