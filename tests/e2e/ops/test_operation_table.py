"""Every operation of the table, on every element type it takes, against its torch reference.

One program a family, a type and a target holds all its operations: results are stored below one
another in one tensor for each element type of a result.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import torch
from pypto.backend import BackendType
from pypto.ir.dtypes import BOOL, DTYPES, INDEX, UINT64, DataType
from pypto.ir.nodes import Const, MemorySpace, Op, ScalarType, Span, TensorType, TileType, Var
from pypto.ir.op_spec import OpSpec
from pypto.ir.ops import OPS, OperandKind, infer_result
from pypto.ir.spelling import spelled
from torch_reference import NAMES, padded, wrapped

Tensor = torch.Tensor
HERE = Path(__file__).parent
TARGETS = {"a2a3": BackendType.Ascend910B, "a5": BackendType.Ascend950}
TYPES = {d.constant_name: d for d in DTYPES if d != INDEX}

# Extents of the tile and of its valid region; the tensors that are loaded have the extents of the
# tile. "moved" has its valid region from run-time values.
SHAPES = {
    "row": ((1, 37), (1, 37)),
    "column": ((13, 1), (13, 1)),
    "part": ((16, 48), (11, 31)),
    "moved": ((8, 20), (5, 9)),
    "special": ((8, 11), (8, 11)),
}
# The code is the same on the second target but for the layout of factors.
SHAPES_OF = {"a2a3": tuple(SHAPES), "a5": ("part",)}
WHOLE = (9, 20)  # of tensor-level operations

# Operations that are no function of their operands' elements alone, or on other spaces than Vec:
# the test that has them.
ELSEWHERE = {
    "tile.cast": "test_casts.py::test_every_conversion_in_every_mode",
    "tensor.cast": "test_casts.py::test_every_conversion_in_every_mode",
    "tile.load": "test_memory_ops.py::test_loads_and_stores_touch_their_region_only",
    "tile.store": "test_memory_ops.py::test_loads_and_stores_touch_their_region_only",
    "tile.move": "test_tile_windows.py::test_products_leave_acc_by_parts",
    "tile.create": "test_tile_windows.py::test_products_leave_acc_by_parts",
    "tile.full": "test_tile_windows.py::test_products_leave_acc_by_parts",
    "tile.slice": "test_tile_windows.py::test_slices_of_tiles",
    "tile.assemble": "test_tile_windows.py::test_parts_are_written_into_tiles",
}


@dataclass(frozen=True)
class Case:
    """One use of an operation on named operands; ``valid`` are the extents of its result."""

    op: Op
    names: tuple[str, ...]
    valid: tuple[int, int]

    @property
    def dtype(self) -> DataType:
        assert self.op.result is not None
        return self.op.result.type.dtype

    @property
    def extents(self) -> tuple[int, int]:
        """What the result takes of an output: a tensor has to fit as a whole."""
        assert self.op.result is not None
        type_ = self.op.result.type
        return (type_.shape[0], type_.shape[1]) if isinstance(type_, TensorType) else self.valid


def variants(name: str, extents: tuple[int, int]) -> list[dict[str, Any]]:
    """The attributes with which an operation is used."""
    if name in ("cmp", "cmps"):
        return [{"cmp_type": kind} for kind in range(6)]
    if name == "fillpad":
        return [{"pad": pad} for pad in ("zero", "max", "min")]
    if name == "fillpad_expand":
        return [{"shape": (extents[0] + 3, extents[1] + 5), "pad": "min"}]
    if name == "transpose":
        return [{"axis1": 0, "axis2": 1}]
    return [{}]


def operand_names(spec: OpSpec) -> tuple[str, ...]:
    """Which inputs an operation takes: see ``make``."""
    name = spec.name.split(".")[1]
    fixed = {
        "sel": ("m", "x", "y"),
        "sels": ("m", "x", "s"),
        "rsels": ("m", "x", "s"),
        "shl": ("x", "k"),
        "shr": ("x", "k"),
        "rdivs": ("y", "s"),  # by what is never 0
        "shls": ("x", "three"),
        "shrs": ("x", "three"),
        "set_validshape": ("x", "some", "some"),
    }
    if name in fixed:
        return fixed[name]
    if "_expand" in name and not name.startswith("fillpad"):
        return ("x", "r" if name.startswith("row") else "c")
    letters = {OperandKind.SCALAR: "s", OperandKind.SCRATCH: "tmp"}
    shaped = iter(("near",) if name.endswith("_prod") else ("x", "y"))
    return tuple(letters.get(kind) or next(shaped) for kind in spec.operands)


def specs(family: str, dtype: DataType) -> Iterator[OpSpec]:
    """The operations of a family that one kernel can hold: elementwise, along axes, shapes."""
    for spec in OPS.values():
        fits = spec.elements is not None and dtype in spec.elements.dtypes
        if spec.name.startswith(family + ".") and fits and spec.name not in ELSEWHERE:
            if "matmul" not in spec.name:
                yield spec


def variable(name: str, dtype: DataType, family: str, shape: str) -> Any:
    """An operand of a case, as the table sees it."""
    extents, valid = SHAPES[shape] if family == "tile" else (WHOLE, WHOLE)
    if name == "three":
        return Const(3, dtype)
    if name == "some":
        return Const(1, INDEX)
    if name == "s":
        return Var("s", ScalarType(dtype))
    if name == "m":
        dtype = BOOL
    if name in ("r", "c"):
        extents, valid = ((e[0], 1) if name == "r" else (1, e[1]) for e in (extents, valid))
    if family == "tensor":
        return Var(name, TensorType(extents, dtype))
    if name == "tmp":
        valid = extents
    if shape == "moved" and name != "tmp":
        valid = tuple(v if v == 1 else None for v in valid)  # type: ignore[assignment]
    return Var(f"{name}_{shape}", TileType(extents, dtype, MemorySpace.Vec, valid))


def cases(family: str, dtype: DataType, shape: str) -> Iterator[Case]:
    """Every use of every operation on operands of one shape."""
    extents, region = SHAPES[shape] if family == "tile" else (WHOLE, WHOLE)
    for spec in specs(family, dtype):
        name = spec.name.split(".")[1]
        if shape == "special" and name in ("row_prod", "col_prod", "concat"):
            continue  # products of special numbers depend on their order
        names = operand_names(spec)
        operands = [variable(n, dtype, family, shape) for n in names]
        for attrs in variants(name, extents):
            if name == "concat" and extents != region:
                operands[0] = replace_valid(operands[0])
                names = ("whole", names[1])
            type_ = infer_result(spec.name, operands, attrs)
            assert isinstance(type_, TensorType | TileType)
            valid = type_.shape if isinstance(type_, TensorType) else type_.valid
            numbers = [region[axis] if v is None else v for axis, v in enumerate(valid)]
            if name.startswith("transpose") and None in valid:
                numbers = [region[1], region[0]]
            if name == "set_validshape":
                numbers = [1, 1]
            if name == "concat":
                numbers = [region[0], extents[1] + region[1]]
            result = Var("t", type_)
            op = Op(spec.name, tuple(operands), result, Span("", 0, 0), MappingProxyType(attrs))
            yield Case(op, names, (int(numbers[0]), int(numbers[1])))


def replace_valid(var: Var) -> Var:
    assert isinstance(var.type, TileType)
    valid = (var.type.valid[0], var.type.shape[1])
    return Var(var.name.replace("x_", "whole_"), replace(var.type, valid=valid))


INPUTS = ("x", "y", "near", "k", "r", "c", "m")


def call_text(case: Case) -> str:
    texts = [
        f"pl.const({o.value}, {o.dtype!r})" if isinstance(o, Const) and o.dtype != INDEX
        else str(o.value) if isinstance(o, Const) else o.name
        for o in case.op.operands
    ]  # fmt: skip
    return spelled(case.op, texts)


def program(family: str, dtype: DataType, target: str) -> tuple[str, dict[str, object], list[Any]]:
    """A kernel's text, its parameters' types, and its cases with their places."""
    types: dict[str, object] = {"s": dtype, "rows": INDEX, "cols": INDEX}
    body, placed, used = [], [], dict.fromkeys(TYPES.values(), 0)
    widths = dict.fromkeys(TYPES.values(), 1)
    shapes = SHAPES_OF[target] if family == "tile" else ("whole",)
    if not dtype.is_float:
        shapes = tuple(shape for shape in shapes if shape != "special")
    for shape in shapes:
        extents, region = SHAPES[shape] if family == "tile" else (WHOLE, WHOLE)
        mine = list(cases(family, dtype, shape if family == "tile" else "row"))
        body.append("    with pl.at(level=pl.Level.CORE_GROUP):")
        for name in INPUTS:
            size = {"r": (extents[0], 1), "c": (1, extents[1])}.get(name, extents)
            known = f"{name}_{shape}"
            types[f"in_{known}"] = (size, BOOL if name == "m" else dtype)
            if family == "tensor":
                body.append(f"        {name} = in_{known}")
                continue
            limits = ["rows" if shape == "moved" else region[0],
                      "cols" if shape == "moved" else region[1]]  # fmt: skip
            limits = [1 if name == "c" else limits[0], 1 if name == "r" else limits[1]]
            more = "" if region == extents else f", valid_shape=[{limits[0]}, {limits[1]}]"
            body.append(f"        {known} = pl.load(in_{known}, [0, 0], {list(size)}{more})")
        if family == "tile":
            body.append(
                f"        whole_{shape} = pl.load(in_x_{shape}, [0, 0], {list(extents)}, "
                f"valid_shape=[{'rows' if shape == 'moved' else region[0]}, {extents[1]}])"
            )
            body.append(f"        tmp_{shape} = pl.create_tile({list(extents)}, dtype={dtype!r})")
        for case in mine:
            row = used[case.dtype]
            used[case.dtype] += case.extents[0]
            widths[case.dtype] = max(widths[case.dtype], case.extents[1])
            placed.append((shape, case, row))
            out = f"out_{case.dtype.name}"
            if family == "tile":
                body.append(f"        {out} = pl.store({call_text(case)}, [{row}, 0], {out})")
            else:
                body.append(f"        {out} = pl.assemble({out}, {call_text(case)}, [{row}, 0])")
    outputs = {f"out_{d.name}": ((used[d], widths[d]), d) for d in TYPES.values() if used[d]}
    types |= outputs
    params = [f"s: pl.Scalar[{dtype!r}]", "rows: pl.Scalar[pl.INDEX]", "cols: pl.Scalar[pl.INDEX]"]
    params += [f"{n}: pl.Tensor" for n in types if n.startswith("in_")]
    params += [f"{n}: pl.Out[pl.Tensor]" for n in outputs]
    name = f"{family}_table_{dtype.name}_{target}"
    return f"def {name}({', '.join(params)}):\n" + "\n".join(body), types, placed


SPECIAL = (0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), 0.5, -2.0, 3.0, 1e-3)


def make(name: str, shape: str, extents: tuple[int, int], dtype: DataType, seed: int) -> Tensor:
    """An input: x and y any, near about 1 or -1, k counts of bits, r and c of rows and columns."""
    generator = torch.Generator().manual_seed(seed)
    kind = getattr(torch, dtype.torch_name)
    if dtype == BOOL or name == "m":
        return torch.randint(0, 2, extents, generator=generator).bool()
    if dtype.is_float:
        if shape == "special":
            steps = {"x": 1, "y": 3, "near": 1, "r": 2, "c": 1}.get(name, 1)
            count = extents[0] * extents[1]
            turn = torch.arange(count) * steps + torch.arange(count) // 11 * (steps - 1)
            return torch.tensor(SPECIAL)[turn % len(SPECIAL)].reshape(extents).to(kind)
        values = torch.randn(extents, generator=generator) * 2
        if name == "near":
            values = torch.exp2(torch.rand(extents, generator=generator) - 0.5) * values.sign()
        return values.to(kind)
    if name == "k":
        return torch.randint(0, dtype.bits, extents, generator=generator).to(kind)
    # Numbers of uint64 stay below 2^62: the reference computes with int64.
    limit = 1 << (min(dtype.bits, 63) - (1 if dtype == UINT64 else 0 if dtype.is_unsigned else 1))
    low = 0 if dtype.is_unsigned else -limit
    values = torch.randint(low, limit, extents, generator=generator)
    if name in ("y", "r", "c"):
        values = torch.where(values == 0, 3, values)
    return values.to(kind)


SCALARS = {"fp32": 1.37, "fp16": 1.5, "bfloat16": -2.5, "bool": True}


def evaluated(case: Case, values: dict[str, Any], dtype: DataType) -> Tensor:
    """The reference's result, in the element type of the case."""
    spec, wide = OPS[case.op.op], dict[str, Any]()
    names = [name for name in case.names if name != "tmp"]
    for index, name in enumerate(names):
        value = values[name]
        if isinstance(value, Tensor) and dtype.is_float and value.is_floating_point():
            value = value.float()
        elif isinstance(value, Tensor) and dtype.is_unsigned and value.dtype != torch.bool:
            value = value.long()
        wide[f"x{index}"] = value
    wide |= case.op.attrs
    wide.setdefault("shape", case.valid)
    scope = {**NAMES, "padded": lambda x, shape, pad: padded(x, shape, pad, dtype)}
    if not dtype.is_float and dtype != BOOL and "shl" in case.op.op:
        scope["torch"] = torch
    result: Tensor = eval(spec.reference, scope, wide)
    kind = getattr(torch, case.dtype.torch_name)
    if case.dtype.is_unsigned:
        return (
            wrapped(result, case.dtype.bits).to(kind) if case.dtype.bits < 64 else result.to(kind)
        )
    return result.to(kind)


# Relative error of one rounding, and how many roundings an operation may be off.
EPSILON = {"fp32": 2.0**-24, "fp16": 2.0**-11, "bfloat16": 2.0**-8}
STEPS = {
    **dict.fromkeys(("exp", "log", "rsqrt", "sin", "cos", "row_expand_expdif"), 8),
    **dict.fromkeys(("recip", "sqrt"), 2),
    **dict.fromkeys(("row_sum", "col_sum"), 16),
    **dict.fromkeys(("row_prod", "col_prod"), 60),
}


def check(case: Case, actual: Tensor, expected: Tensor, where: str) -> None:
    name = case.op.op.split(".")[1]
    bound = STEPS.get(name, 0) * EPSILON.get(case.dtype.name, 0.0)
    if case.dtype in (UINT64,) or case.dtype.name in ("uint16", "uint32"):
        actual, expected = actual.long(), expected.long()
    torch.testing.assert_close(
        actual, expected, rtol=bound, atol=bound, equal_nan=True, msg=lambda m: f"{where}: {m}"
    )


# Tensor-level operations become those on tiles, and both targets share all but factors: a few
# types show that.
PLANS = [
    *(("tile", name, "a2a3") for name in TYPES),
    *(("tile", name, "a5") for name in ("FP32", "BF16", "INT8", "UINT32")),
    *(("tensor", name, "a2a3") for name in ("FP16", "INT32", "BOOL")),
    ("tensor", "FP32", "a5"),
]


@pytest.mark.conforms(
    "language.127",
    "language.130",
    "language.137",
    "language.138",
    "language.139",
    "language.141",
    "language.151",
    "language.152",
)
@pytest.mark.parametrize(("family", "name", "target"), PLANS)
def test_operations(compile_text: Any, family: str, name: str, target: str) -> None:
    dtype = TYPES[name]
    text, types, placed = program(family, dtype, target)
    compiled = compile_text(text, types, backend_type=TARGETS[target])
    scalar = SCALARS.get(dtype.name, 7)
    kind = getattr(torch, dtype.torch_name)
    tensors: dict[str, Tensor] = {}
    for position, (parameter, type_) in enumerate(types.items()):
        if not isinstance(type_, tuple):
            continue
        if parameter.startswith("in_"):
            _, letter, shape = parameter.split("_")
            tensors[parameter] = make(letter, shape, type_[0], dtype, position)
        else:
            tensors[parameter] = torch.zeros(type_[0], dtype=getattr(torch, type_[1].torch_name))
    rows, cols = SHAPES["moved"][1]
    compiled(scalar, rows, cols, *tensors.values())
    assert placed
    for shape, case, row in placed:
        extents, region = SHAPES[shape] if family == "tile" else (WHOLE, WHOLE)
        values: dict[str, Any] = {"s": torch.tensor(scalar).to(kind).item(), "three": 3, "some": 1}
        for letter in INPUTS:
            size = (1 if letter == "c" else region[0], 1 if letter == "r" else region[1])
            values[letter] = tensors[f"in_{letter}_{shape}"][: size[0], : size[1]]
        values["whole"] = tensors[f"in_x_{shape}"][: region[0]]
        expected = evaluated(case, values, dtype)
        out = tensors[f"out_{case.dtype.name}"]
        actual = out[row : row + case.valid[0], : case.valid[1]]
        where = f"{case.op.op} {dict(case.op.attrs)} on {dtype} {shape}"
        check(case, actual, expected, where)


@pytest.mark.conforms("language.130")
def test_every_row_is_covered() -> None:
    covered = {
        spec.name for family in ("tile", "tensor") for d in TYPES.values()
        for spec in specs(family, d)
    }  # fmt: skip
    rows = {name for name, spec in OPS.items() if spec.elements is not None}
    products = {name for name in rows if "matmul" in name}
    elsewhere = set(ELSEWHERE) | dict.fromkeys(products, "").keys() | {"tile.transpose_view"}
    assert rows <= covered | elsewhere
    for place in ELSEWHERE.values():
        file, function = place.split("::")
        tree = ast.parse((HERE / file).read_text())
        assert function in {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}, place


@pytest.mark.conforms("language.130")
def test_products_are_covered() -> None:
    """By name: test_matrix_forms.py uses every product of the table."""
    text = (HERE / "test_matrix_forms.py").read_text()
    assert {n.split(".")[1] for n in OPS if "matmul" in n} == {
        "matmul", "matmul_acc", "matmul_init"}  # fmt: skip
    for word in ("pl.matmul(", "pl.matmul_acc(", "init_cond=", "transpose_view("):
        assert word in text
