"""A stand-in for `pl` whose functions work on torch tensors.

Tiles and tensor-level values are torch tensors that are never written; tensors in global memory
carry the attribute `memory` and are written in place. A value with a valid region is just that
region, and carries the extents of its whole. Values whose operations are inexact are balls.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import approximate
import torch
from approximate import Ball
from reference_numbers import DTYPES, compared, converted, extremes, like, selected

Tensor = torch.Tensor
Value = Any  # a tensor or a ball


def memory(tensor: Value) -> Value:
    """`tensor`, as one that lies in global memory."""
    tensor.memory = True
    return tensor


def in_memory(x: Value) -> bool:
    return hasattr(x, "memory")


def whole_of(x: Value) -> tuple[int, ...]:
    """Extents of the tile or tensor of which `x` is the valid region."""
    extents: tuple[int, ...] = getattr(x, "whole", tuple(x.shape))
    return extents


def of_whole(x: Value, extents: tuple[int, ...]) -> Value:
    x.whole = extents
    return x


def language() -> SimpleNamespace:
    """`pl` for the interpreter."""
    return SimpleNamespace(
        **{name: _carries(f) for name, f in _elementwise().items()},
        **_reductions(),
        **_operators(),
        **_movement(),
        **_orchestration(),
        **DTYPES,
        **_shapes(),
        TASK_ID=None,
        Level=SimpleNamespace(CORE_GROUP=0),
        Mem=SimpleNamespace(Mat=0, Left=0, Right=0, Vec=0),
        PadValue=SimpleNamespace(zero="zero", min="min", max="max"),
        AtomicType=SimpleNamespace(Add=True),
    )


def _carries(f: Callable[..., Value]) -> Callable[..., Value]:
    """The result has the extents of the first operand that is no number."""

    def apply(*operands: Any, **options: Any) -> Value:
        result = f(*operands, **options)
        whole = next((whole_of(x) for x in operands if isinstance(x, Tensor | Ball)), None)
        return result if whole is None else of_whole(result, whole)

    return apply


def _either(name: str, f: Callable[..., Tensor]) -> Callable[..., Value]:
    """The operation on tensors, or on balls."""

    def apply(*operands: Any, **options: Any) -> Value:
        if any(isinstance(x, Ball) for x in operands):
            return approximate.OPERATIONS[name](*operands, **options)
        return f(*operands, **options)

    return apply


def _number(x: Tensor, value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else torch.full_like(x, value)


def _cast(x: Any, dtype: torch.dtype, mode: str | int = "round") -> Any:
    if isinstance(x, Tensor):
        return converted(x, dtype, mode)
    return float(x) if dtype.is_floating_point else int(x)


def _divided(x: Tensor, y: Any) -> Tensor:
    return torch.div(x, y, rounding_mode="trunc")


def _elementwise() -> dict[str, Callable[..., Value]]:
    plain: dict[str, Callable[..., Tensor]] = {
        "add": lambda x, y: x + y,
        "sub": lambda x, y: x - y,
        "mul": lambda x, y: x * y,
        "div": _divided,
        "maximum": lambda x, y: torch.maximum(*torch.broadcast_tensors(x, _number(x, y))),
        "minimum": lambda x, y: torch.minimum(*torch.broadcast_tensors(x, _number(x, y))),
        "fmod": torch.fmod,
        "and_": lambda x, y: x & y,
        "or_": lambda x, y: x | y,
        "xor": lambda x, y: x ^ y,
        "shl": lambda x, y: x << y,
        "shr": lambda x, y: x >> y,
        "neg": lambda x: -x,
        "abs": torch.abs,
        "relu": torch.relu,
        "not_": torch.bitwise_not,
    }
    functions = {name: _either(name, like(f)) for name, f in plain.items()}
    long = {"max": "maximum", "min": "minimum"}
    for short in ("add", "sub", "mul", "max", "min", "div"):
        for axis in ("row", "col"):
            functions[f"{axis}_expand_{short}"] = functions[long.get(short, short)]
    functions |= {
        "cmp": compared,
        "sel": _either("sel", selected),
        "cast": _either("cast", _cast),
        "row_expand": lambda x, y: y.expand_as(x).clone(),
        "col_expand": lambda x, y: y.expand_as(x).clone(),
        "move": lambda x, space: x,
    }
    for name in ("exp", "log", "sqrt", "rsqrt", "recip", "sin", "cos", "lrelu", "prelu"):
        functions[name] = approximate.OPERATIONS[name]
    functions["row_expand_expdif"] = approximate.OPERATIONS["row_expand_expdif"]
    return functions


def _reductions() -> dict[str, Callable[..., Value]]:
    def along(name: str, dim: int, f: Callable[..., Tensor]) -> Callable[..., Value]:
        either = _either(name, like(lambda x, scratch=None: f(x, dim, keepdim=True)))

        def apply(x: Value, scratch: Any = None) -> Value:
            rows, cols = whole_of(x)
            return of_whole(either(x), (rows, 1) if dim else (1, cols))

        return apply

    ways = {"sum": torch.sum, "prod": torch.prod, "max": torch.amax, "min": torch.amin}
    return {
        f"{axis}_{name}": along(f"{axis}_{name}", dim, f)
        for axis, dim in (("row", 1), ("col", 0))
        for name, f in ways.items()
    }


def _operators() -> dict[str, Callable[..., Any]]:
    """Those of Python, on scalars as in Python."""
    elementwise = _elementwise()

    def operator(name: str) -> Callable[..., Any]:
        def apply(x: Any, y: Any) -> Any:
            if isinstance(x, Tensor | Ball) or isinstance(y, Tensor | Ball):
                return _carries(elementwise[name])(x, y)
            return {"add": lambda: x + y, "sub": lambda: x - y, "mul": lambda: x * y}[name]()

        return apply

    return {f"operator_{name}": operator(name) for name in ("add", "sub", "mul", "div")}


def _window(x: Value, offset: list[int], shape: list[int]) -> Value:
    """The region of `x`, which lies inside; of its last axes if `x` has more."""
    ends = [o + e for o, e in zip(offset, shape, strict=True)]
    assert all(0 <= o <= e <= n for o, e, n in zip(offset, ends, x.shape, strict=True))
    return x[tuple(slice(o, e) for o, e in zip(offset, ends, strict=True))]


def _inside(x: Value, offset: list[int], shape: list[int]) -> list[int]:
    """As much of the region's extents as `x` has."""
    return [max(0, min(e, n - o)) for o, e, n in zip(offset, shape, x.shape, strict=True)]


def _filled(x: Tensor, pad_value: str) -> Tensor:
    low, high = extremes(x.dtype)
    fill = {"zero": 0, "min": low, "max": high}[pad_value]
    result = torch.full(whole_of(x), fill).to(x.dtype)
    result[: x.shape[0], : x.shape[1]] = x
    return result


def _movement() -> dict[str, Callable[..., Any]]:
    """Between tiles and tensors that do not depend on who asks."""

    def load(
        x: Value,
        offset: list[int],
        shape: list[int],
        valid_shape: Any = None,
        clamp: bool = False,
        **_: Any,
    ) -> Value:
        extents = _inside(x, offset, shape) if clamp else valid_shape or shape
        found = _window(x, offset, extents).clone()
        return of_whole(found, (shape[0], shape[1]))

    def assemble(x: Value, source: Value, offset: list[int]) -> Value:
        if not in_memory(x):
            x = x.clone()
        _window(x, offset, list(source.shape)).copy_(source)
        return x

    def store(tile: Value, offset: list[int], x: Value, atomic: bool = False) -> Value:
        place = _window(x, offset, list(tile.shape))
        place.copy_(like(torch.add)(place, tile) if atomic else tile)
        return x

    def put(x: Any, index: tuple[Any, ...], value: Any) -> Any:
        if isinstance(x, list):
            x[index[0]] = value
            return x
        if not in_memory(x):
            x = x.clone()
        x[index] = value
        return x

    def full(shape: list[int], dtype: torch.dtype, value: float = 0) -> Tensor:
        return torch.full(shape, value, dtype=dtype)

    return {
        "load": load,
        "assemble": assemble,
        "store": store,
        "fillpad": _filled,
        "put": put,
        "full": full,
        "create_tile": full,
        "set_validshape": lambda x, rows, cols: of_whole(x[:rows, :cols].clone(), whole_of(x)),
        "create_tensor": lambda shape, dtype, init_value=0, manual_dep=False: memory(
            full(shape, dtype, init_value)
        ),
        "read": lambda x, offset: x[tuple(offset)].item(),
        "tensor": SimpleNamespace(full=full, dim=lambda x, axis: x.shape[axis]),
    }


def _shapes() -> dict[str, Callable[..., Any]]:
    def reshape(x: Value, shape: list[int]) -> Value:
        if in_memory(x):
            return memory(x.view(shape))
        return x.reshape(shape)

    def matmul(
        a: Value,
        b: Value,
        a_trans: bool = False,
        b_trans: bool = False,
        out_dtype: torch.dtype | None = None,
    ) -> Value:
        dtype = torch.float32 if a.dtype.is_floating_point else torch.int32
        a, b = a.to(dtype), b.to(dtype)
        result = (a.mT if a_trans else a) @ (b.mT if b_trans else b)
        return result if out_dtype is None else converted(result, out_dtype, "rint")

    def matmul_acc(acc: Tensor, *factors: Tensor, init_cond: bool = False, **flags: bool) -> Tensor:
        product: Tensor = matmul(*factors, **flags)
        return product if init_cond else acc + product

    return {
        "reshape": reshape,
        "transpose": lambda x, a, b: x.transpose(a, b),
        "concat": lambda x, y: torch.cat((x, y), 1),
        "matmul": _either("matmul", matmul),
        "matmul_acc": matmul_acc,
    }


def _orchestration() -> dict[str, Any]:
    """What depends on whether a core runs, and in which block."""
    state = SimpleNamespace(on_core=False, block=0, blocks=1)

    @contextlib.contextmanager
    def at(**_: object) -> Iterator[None]:
        before, state.on_core = state.on_core, True
        yield
        state.on_core = before

    def spmd(blocks: int, **_: object) -> Iterator[int]:
        before, state.on_core, state.blocks = state.on_core, True, blocks
        for state.block in range(blocks):
            yield state.block
        state.on_core, state.block, state.blocks = before, 0, 1

    @contextlib.contextmanager
    def manual_scope() -> Iterator[None]:
        yield

    def submit(function: Callable[..., Any], *arguments: Any, **_: Any) -> Any:
        with at():
            results = function(*arguments)
        return (*results, None) if isinstance(results, tuple) else (results, None)

    def spmd_submit(function: Callable[..., Any], *arguments: Any, core_num: int) -> Any:
        result = arguments[-1]
        for _ in spmd(core_num):
            result = function(*arguments)
        return result, None

    def part(x: Value, index: tuple[Any, ...]) -> Any:
        found = x[index]
        if found.ndim == 0:
            return found.item()
        return memory(found) if in_memory(x) and not state.on_core else found.clone()

    def slice_(
        x: Value,
        shape: list[int],
        offset: list[int],
        valid_shape: Any = None,
        pad_value: str | None = None,
        drop_dims: list[int] | None = None,
    ) -> Value:
        found = _window(x, offset, valid_shape or shape)
        if drop_dims:
            found = found.squeeze(tuple(drop_dims))
        if not state.on_core:
            return memory(found)
        if valid_shape is None:
            return found.clone()
        found = of_whole(found.clone(), tuple(shape))
        return found if pad_value is None else _filled(found, pad_value)

    return {
        "tile": SimpleNamespace(
            get_block_idx=lambda: state.block,
            get_block_num=lambda: state.blocks,
            transpose_view=lambda x: x.t(),
        ),
        "array": SimpleNamespace(create=lambda count, dtype: [None] * count),
        "range": range,
        "parallel": range,
        "unroll": range,
        "pipeline": lambda *bounds, stage: range(*bounds),
        "at": at,
        "spmd": spmd,
        "manual_scope": manual_scope,
        "submit": submit,
        "spmd_submit": spmd_submit,
        "no_dep": lambda x: x,
        "part": part,
        "slice": slice_,
        "min": min,
        "max": max,
    }
