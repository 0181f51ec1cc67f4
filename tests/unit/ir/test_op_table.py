"""The table of operations: complete rows, the right types, and refusals that explain."""

from __future__ import annotations

import pytest
from pypto.ir.dtypes import (
    BF16,
    BOOL,
    FP16,
    FP32,
    INDEX,
    INT8,
    INT32,
    INT64,
    UINT8,
)
from pypto.ir.errors import IrTypeError
from pypto.ir.nodes import Const, DynDim, MemorySpace, ScalarType, TensorType, TileType, Var
from pypto.ir.op_spec import Role
from pypto.ir.ops import OPS, OperandKind, infer_result
from pypto.ir.typing_rules import show_type

M = DynDim("M")

# The attributes of a slice that reads all of its region.
WHOLE = {"has_valid": False, "pad": "zero"}


def tile(*shape, dtype=FP32, space=MemorySpace.Vec, valid=None):
    return Var("t", TileType(shape, dtype, space, valid or shape))


def tensor(*shape, dtype=FP32):
    return Var("x", TensorType(shape, dtype))


def scalar(dtype):
    return Var("s", ScalarType(dtype))


def index(value):
    return Const(value, INDEX)


def test_every_row_is_complete():
    for name, spec in OPS.items():
        assert spec.name == name
        assert spec.doc
        family, _ = name.split(".")
        assert family in ("tile", "tensor", "scalar", "array", "task")
        if family == "tensor" and spec.role is not Role.MEMORY:
            assert not spec.mnemonic
        assert (spec.reduces is not None) == (spec.role is Role.REDUCE)
        assert spec.aliases is not None or not spec.writes
        assert spec.scratch == (OperandKind.SCRATCH in spec.operands)


def test_tiles_and_tensors_have_the_same_computations():
    def names(family, kind):
        return {
            name.split(".")[1]
            for name, spec in OPS.items()
            if name.startswith(family) and spec.operands[:1] == (kind,)
        }

    only_tiles = {"load", "store", "move", "transpose_view"}
    only_tensors = {"dim", "assign", "load", "view"}
    tiles = names("tile.", OperandKind.TILE) - only_tiles
    tensors = names("tensor.", OperandKind.TENSOR) - only_tensors
    assert tiles == tensors


def test_forms_of_an_operation_are_rows_that_users_call_alike():
    for name, spec in OPS.items():
        family, _, short = name.partition(".")
        for form in spec.scalar_forms:
            if form:
                assert OPS[f"{family}.{form}"].public == short
        if spec.line_form:
            assert OPS[f"{family}.row_expand_{spec.line_form}"].reference == spec.reference
            assert OPS[f"{family}.col_expand_{spec.line_form}"].reference == spec.reference
        if spec.of_scalars:
            assert f"scalar.{spec.of_scalars}" in OPS


def test_mnemonics_are_unique_but_for_a_few():
    used: dict[str, list[str]] = {}
    for name, spec in OPS.items():
        if spec.mnemonic:
            used.setdefault(spec.mnemonic, []).append(name)
    assert {m: names for m, names in used.items() if len(names) > 1} == {
        "ttrans": ["tile.transpose", "tile.transpose_view"],
        "tfillpad": ["tile.fillpad", "tile.fillpad_expand"],
        "textract": ["tile.set_validshape", "tile.slice"],
        "tsubs": ["tile.subs", "tile.rsubs"],
        "tdivs": ["tile.divs", "tile.rdivs"],
        "tsels": ["tile.sels", "tile.rsels"],
        "load_scalar": ["tensor.read", "tile.read"],
        "store_scalar": ["tensor.write", "tile.write"],
        "arith.andi": ["scalar.bitand", "scalar.and"],
        "arith.ori": ["scalar.bitor", "scalar.or"],
    }


@pytest.mark.parametrize(
    ("op", "operands", "attrs", "result"),
    [
        ("tile.add", (tile(4, 8), tile(4, 8)), {}, tile(4, 8)),
        ("tile.add", (tile(4, 8, valid=(3, None)), tile(4, 8, valid=(3, 8))), {},
         tile(4, 8, valid=(3, None))),
        ("tensor.mul", (tensor(M, 8), tensor(M, 8)), {}, tensor(M, 8)),
        ("tile.adds", (tile(4, 8, dtype=INT8), Const(1, INT8)), {}, tile(4, 8, dtype=INT8)),
        ("tile.row_max", (tile(4, 8, valid=(2, 5)), tile(4, 8)), {}, tile(4, 1, valid=(2, 1))),
        ("tile.row_sum", (tile(4, 8),), {}, tile(4, 1)),
        ("tensor.row_sum", (tensor(M, 8),), {}, tensor(M, 1)),
        ("tile.row_prod", (tile(4, 8, dtype=INT8),), {}, tile(4, 1, dtype=INT8)),
        ("tile.col_sum", (tile(4, 8, valid=(None, 5)),), {}, tile(1, 8, valid=(1, 5))),
        ("tensor.col_max", (tensor(M, 8),), {}, tensor(1, 8)),
        ("tile.transpose", (tile(4, 8, valid=(None, 5)),), {"axis1": 0, "axis2": 1},
         tile(8, 4, valid=(5, None))),
        ("tensor.transpose", (tensor(M, 8),), {"axis1": 0, "axis2": 1}, tensor(8, M)),
        ("tensor.transpose", (tensor(2, 3, 4),), {"axis1": 0, "axis2": 2}, tensor(4, 3, 2)),
        ("tile.transpose_view", (tile(4, 8, space=MemorySpace.Mat, valid=(None, 5)),), {},
         tile(8, 4, space=MemorySpace.Mat, valid=(5, None))),
        ("tile.cmp", (tile(4, 8, valid=(3, None)),) * 2, {"cmp_type": 2},
         tile(4, 8, dtype=BOOL, valid=(3, None))),
        ("tile.cmps", (tile(4, 8, dtype=INT8), Const(1, INT8)), {"cmp_type": 5},
         tile(4, 8, dtype=BOOL)),
        ("tile.sel", (tile(4, 8, dtype=BOOL), tile(4, 8), tile(4, 8)), {}, tile(4, 8)),
        ("tensor.rsels", (tensor(M, dtype=BOOL), tensor(M, dtype=BF16), Const(1.0, BF16)), {},
         tensor(M, dtype=BF16)),
        ("tile.and_", (tile(4, 8, dtype=BOOL),) * 2, {}, tile(4, 8, dtype=BOOL)),
        ("tile.div", (tile(4, 8, dtype=INT32),) * 2, {}, tile(4, 8, dtype=INT32)),
        ("tile.set_validshape", (tile(4, 8, valid=(2, 2)), index(3), scalar(INDEX)), {},
         tile(4, 8, valid=(3, None))),
        ("tensor.set_validshape", (tensor(4, 8), scalar(INDEX), index(3)), {}, tensor(4, 8)),
        ("tile.fillpad_expand", (tile(4, 8, valid=(2, 2)),), {"shape": (8, 8), "pad": "max"},
         tile(8, 8)),
        ("tensor.matmul", (tensor(2, 1, 4, 3), tensor(5, 3, 8)), {}, tensor(2, 5, 4, 8)),
        ("tile.cast", (tile(4, 8),), {"dtype": BOOL, "mode": "none"}, tile(4, 8, dtype=BOOL)),
        ("scalar.cast", (scalar(FP32),), {"dtype": UINT8, "mode": "odd"}, scalar(UINT8)),
        ("tile.fillpad", (tile(4, 8, valid=(None, 5)),), {"pad": "min"}, tile(4, 8)),
        ("tile.row_expand", (tile(4, 8), tile(4, 1)), {}, tile(4, 8)),
        ("tile.prelu", (tile(4, 8), tile(4, 8), tile(4, 8)), {}, tile(4, 8)),
        ("tile.shls", (tile(4, 8, dtype=UINT8), Const(1, UINT8)), {}, tile(4, 8, dtype=UINT8)),
        ("scalar.bitxor", (scalar(BOOL), Const(True, BOOL)), {}, scalar(BOOL)),
        ("tile.row_expand_sub", (tile(4, 8), tile(4, 1)), {}, tile(4, 8)),
        ("tile.col_expand_mul", (tile(4, 8), tile(1, 8)), {}, tile(4, 8)),
        ("tile.col_expand", (tile(4, 8), tile(1, 8)), {}, tile(4, 8)),
        ("tile.cast", (tile(4, 8),), {"dtype": BF16, "mode": "rint"}, tile(4, 8, dtype=BF16)),
        ("tile.concat", (tile(4, 8), tile(4, 2, valid=(4, 1))), {}, tile(4, 10, valid=(4, 9))),
        ("tile.reshape", (tile(16, 1, valid=(3, 1)),), {"shape": (1, 16)},
         tile(1, 16, valid=(1, 3))),
        ("tile.reshape", (tile(4, 8),), {"shape": (2, 16)}, tile(2, 16)),
        ("tensor.reshape", (tensor(4, 8),), {"shape": (32,)}, tensor(32)),
        ("tensor.create", (scalar(INDEX),), {"shape": (None, 8), "symbols": ("M",), "dtype": FP16},
         tensor(M, 8, dtype=FP16)),
        ("tensor.dim", (tensor(M, 8),), {"axis": 0}, scalar(INDEX)),
        ("tensor.full", (), {"shape": (4, 8), "dtype": FP16, "value": 1}, tensor(4, 8, dtype=FP16)),
        ("tensor.slice", (tensor(M, 3, 8), index(2), index(0), index(4)),
         {"shape": (1, 3, 4), "drop": (0,), **WHOLE}, tensor(3, 4)),
        ("tensor.slice", (tensor(M, 8), index(2), index(4), scalar(INDEX), index(3)),
         {"shape": (4, 8), "drop": (), "has_valid": True, "pad": "min"}, tensor(4, 8)),
        ("tile.slice", (tile(8, 8, valid=(6, None)), index(4), index(0)),
         {"shape": (4, 8), "has_valid": False, "pad": "", "clamp": False},
         tile(4, 8, valid=(2, None))),
        ("tile.slice",
         (tile(8, 8, space=MemorySpace.Acc), scalar(INDEX), index(6), index(3), index(8)),
         {"shape": (4, 8), "has_valid": True, "pad": "max", "clamp": True},
         tile(4, 8, space=MemorySpace.Acc, valid=(None, 2))),
        ("tile.assemble", (tile(8, 8, valid=(6, None)), index(4), index(0), tile(4, 8)), {},
         tile(8, 8, valid=(6, None))),
        ("tensor.assemble", (tensor(M, 3, 8), index(2), index(0), index(4), tensor(3, 4)),
         {"shape": (1, 3, 4)}, tensor(M, 3, 8)),
        ("scalar.add", (scalar(INT32), Const(1, INT32)), {}, scalar(INT32)),
        ("scalar.lt", (scalar(FP32), scalar(FP32)), {}, scalar(BOOL)),
        ("scalar.cast", (scalar(FP32),), {"dtype": INT32}, scalar(INT32)),
    ],
)  # fmt: skip
def test_result_types(op, operands, attrs, result):
    assert infer_result(op, operands, attrs) == result.type


@pytest.mark.conforms("language.142")
@pytest.mark.parametrize("dtype", [FP16, BF16, FP32, INT8])
def test_products_accumulate_wide(dtype):
    left = tile(16, 32, dtype=dtype, space=MemorySpace.Mat, valid=(9, 32))
    right = tile(32, 8, dtype=dtype, space=MemorySpace.Right)
    acc = FP32 if dtype.is_float else INT32
    wanted = TileType((16, 8), acc, MemorySpace.Acc, (9, 8))
    assert infer_result("tile.matmul", (left, right), {}) == wanted
    assert infer_result("tile.matmul_acc", (Var("c", wanted), left, right), {}) == wanted
    whole = infer_result(
        "tensor.matmul", (tensor(M, 8, dtype=dtype), tensor(8, 3, dtype=dtype)), {}
    )
    assert whole == TensorType((M, 3), acc)


@pytest.mark.parametrize(
    ("tensor_var", "offsets", "attrs", "shape", "valid"),
    [
        (tensor(64, 64), (0, 0), {}, (16, 32), (16, 32)),
        (tensor(64), (60,), {}, (1, 4), (1, 4)),
        (tensor(2, 3, 64, 64), (1, 2, 0, 0), {}, (16, 32), (16, 32)),
        (tensor(M, 64), (1000, 0), {}, (16, 64), (16, 64)),
        (tensor(60, 64), (50, 0), {"valid": (10, 64)}, (16, 64), (10, 64)),
        (tensor(M, 64), (0, 0), {"valid": (None, 64)}, (16, 64), (None, 64)),
    ],
)
def test_loads(tensor_var, offsets, attrs, shape, valid):
    operands = [tensor_var, *map(index, offsets)]
    given = attrs.get("valid", ())
    operands += [scalar(INDEX) if extent is None else index(extent) for extent in given]
    load = {"shape": shape, "space": MemorySpace.Vec, "has_valid": bool(given)}
    result = infer_result("tile.load", operands, load)
    assert result == TileType(shape, FP32, MemorySpace.Vec, valid)
    stored = infer_result(
        "tile.store", [Var("t", result), *operands[1 : 1 + len(offsets)], tensor_var], {}
    )
    assert stored == tensor_var.type


@pytest.mark.parametrize(
    ("op", "operands", "attrs", "message"),
    [
        ("tile.add", (tile(4, 8), tile(8, 4)), {}, "pl.add: shapes differ: [4, 8] and [8, 4]"),
        ("tile.add", (tile(4, 8), tile(4, 8, valid=(4, 7))), {}, "valid regions differ"),
        ("tile.add", (tile(4, 8), tensor(4, 8)), {}, "load the tensor with pl.load first"),
        ("tile.add", (tile(4, 8),), {}, "takes 2 operands, but got 1"),
        ("tile.add", (tile(4, 8), tile(4, 8)), {"dtype": FP32}, "takes the attributes []"),
        ("tile.div", (tile(4, 8, dtype=BOOL),) * 2, {}, "cannot compute on a tile bool[4, 8]"),
        ("tile.exp", (tile(4, 8, dtype=INT32),), {}, "needs floating point elements"),
        ("tile.neg", (tile(4, 8, dtype=UINT8),), {}, "needs elements that have a sign"),
        ("tile.shl", (tile(4, 8, dtype=BOOL),) * 2, {}, "needs integer elements"),
        ("tile.cmp", (tile(4, 8),) * 2, {"cmp_type": 6}, "cmp_type must be 0 to 5, not 6"),
        ("tile.sel", (tile(4, 8),) * 3, {}, "the mask must have bool elements"),
        ("tile.sel", (tile(8, 4, dtype=BOOL), tile(4, 8), tile(4, 8)), {},
         "the mask has the shape [8, 4], but what it selects from has [4, 8]"),
        ("tile.set_validshape", (tile(4, 8), index(5), index(3)), {}, "rows is 5, outside 0 to 4"),
        ("tile.fillpad_expand", (tile(4, 8),), {"shape": (8, 4), "pad": "max"},
         "no extent may shrink"),
        ("tile.transpose_view", (tile(4, 8, space=MemorySpace.Acc),), {},
         "transpose it in Vec or Mat"),
        ("tensor.matmul", (tensor(2, 4, 3), tensor(5, 3, 8)), {},
         "the extents in front of the matrices do not fit: [2, 4, 3] x [5, 3, 8]"),
        ("tile.matmul_init",
         (tile(4, 4, space=MemorySpace.Acc), scalar(INT32), tile(4, 8, space=MemorySpace.Mat),
          tile(8, 4, space=MemorySpace.Mat)), {}, "init_cond must be a truth value"),
        ("tile.muls", (tile(4, 8), Const(1, INT32)), {}, "element types differ"),
        ("tile.exp", (tile(4, 8, space=MemorySpace.Acc),), {}, "operations read tiles in Vec"),
        ("tile.row_max", (tile(4, 8), tile(4, 4)), {}, "tmp must be a tile like"),
        ("tile.prelu", (tile(4, 8), tile(4, 8), tile(4, 4)), {}, "tmp must be a tile like"),
        ("tile.prelu", (tile(4, 8, dtype=INT32),) * 2, {}, "needs floating point elements"),
        ("tile.not_", (tile(4, 8),), {}, "needs integer elements"),
        ("tile.fillpad", (tile(4, 8),), {"pad": "null"}, "pad_value must be one of zero, max, min"),
        ("tensor.transpose", (tensor(2, 3, 4),), {"axis1": 0, "axis2": 3},
         "cannot exchange the axes 0 and 3"),
        ("tensor.col_sum", (tensor(8),), {}, "must have two dimensions"),
        ("scalar.bitand", (scalar(FP32), scalar(FP32)), {}, "does not work on fp32 scalars"),
        ("scalar.shl", (scalar(BOOL), scalar(BOOL)), {}, "does not work on bool scalars"),
        ("tensor.row_max", (tensor(8),), {}, "must have two dimensions"),
        ("tile.row_expand_mul", (tile(4, 8), tile(1, 8)), {}, "must be [4, 1] beside [4, 8]"),
        ("tile.cast", (tile(4, 8),), {"dtype": INDEX, "mode": "rint"}, "cannot convert"),
        ("tile.concat", (tile(4, 8, valid=(4, 7)), tile(4, 8)), {}, "valid to its last column"),
        ("tile.reshape", (tile(4, 8, valid=(3, 8)),), {"shape": (8, 4)}, "not wholly valid"),
        ("tile.matmul", (tile(4, 8, dtype=INT64, space=MemorySpace.Mat),
                         tile(8, 4, dtype=INT64, space=MemorySpace.Mat)), {},
         "cannot multiply a tile int64[8, 4] in Mat; convert it with pl.cast(x, pl.FP32)"),
        ("tile.matmul",
         (tile(4, 8, space=MemorySpace.Right), tile(8, 4, space=MemorySpace.Mat)), {},
         "it must be in Mat or Left"),
        ("tile.matmul_acc", (tile(4, 4, space=MemorySpace.Mat), tile(4, 8, space=MemorySpace.Mat),
                             tile(8, 4, space=MemorySpace.Mat)), {}, "argument 1 must be in Acc"),
        ("tile.move", (tile(4, 8, space=MemorySpace.Left),), {"space": MemorySpace.Vec},
         "from Left a tile can go to nowhere"),
        ("tile.create", (), {"shape": (0, 4), "dtype": FP32, "space": MemorySpace.Vec},
         "tile extents must be positive"),
        ("tile.create", (), {"shape": (4, 4), "dtype": INDEX, "space": MemorySpace.Vec},
         "cannot hold index elements"),
        ("tile.store", (tile(4, 8), index(0), index(60), tensor(64, 64)), {},
         "writes elements 60 to 68 of axis 1, which has 64"),
        ("tile.store", (tile(4, 8), index(0), index(0), tensor(64, 64, dtype=FP16)), {},
         "convert the value with pl.cast(x, pl.FP16)"),
        ("tile.store", (tile(4, 8), scalar(FP32), index(0), tensor(64, 64)), {},
         "argument 2 must be integer scalars"),
        ("tensor.assign", (tensor(4, 8), tensor(8, 4)), {}, "shapes differ"),
        ("tensor.slice", (tensor(4, 4, 8), index(0), index(0), index(0)),
         {"shape": (2, 4, 8), "drop": (), **WHOLE},
         "all but the last two extents of a region must be 1"),
        ("tensor.slice", (tensor(4, 8), index(2), index(0)), {"shape": (4, 8), "drop": (), **WHOLE},
         "reads elements 2 to 6 of axis 0, which has 4"),
        ("tensor.assemble", (tensor(4, 8), index(0), index(0), tensor(8)), {"shape": (4, 8)},
         "a tensor fp32[8] does not fill a region of [4, 8]"),
        ("tensor.assemble", (tensor(4, 8, dtype=FP16), index(0), index(0), tensor(4, 8)),
         {"shape": (4, 8)}, "element types differ"),
        ("scalar.add", (scalar(INT32), scalar(INDEX)), {}, "scalar types differ: int32 and index"),
        ("scalar.and", (scalar(INT32), scalar(BOOL)), {}, "needs truth values"),
        ("scalar.truediv", (scalar(INT32), scalar(INT32)), {}, "use // for whole numbers"),
    ],
)  # fmt: skip
def test_refusals(op, operands, attrs, message):
    with pytest.raises(IrTypeError) as caught:
        infer_result(op, operands, attrs)
    assert message in str(caught.value)
    assert str(caught.value).startswith(OPS[op].public_name + ": ")


@pytest.mark.conforms("language.145")
@pytest.mark.parametrize("dtype", [FP16, BF16])
def test_the_accumulator_is_narrowed_when_stored(dtype):
    acc = tile(4, 8, space=MemorySpace.Acc)
    target = tensor(64, 64, dtype=dtype)
    assert infer_result("tile.store", (acc, index(0), index(0), target), {}) == target.type


def test_types_are_shown_as_users_write_them():
    shown = [tile(4, 8, valid=(None, 8)), tensor(M, 3, dtype=BF16), scalar(INDEX)]
    assert [show_type(v.type) for v in shown] == [
        "tile fp32[4, 8] (valid [?, 8]) in Vec",
        "tensor bfloat16[M, 3]",
        "scalar index",
    ]
