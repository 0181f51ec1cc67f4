"""What the annotation of a local name says of its value."""

from __future__ import annotations

import ast
from dataclasses import replace

from pypto.ir.dtypes import TASK_ID, DataType
from pypto.ir.nodes import (
    ArrayType,
    DynDim,
    Op,
    TensorType,
    TileType,
    Type,
    Var,
)
from pypto.language import markers
from pypto.language.parser.arrays import scalar_value
from pypto.language.parser.diagnostics.exceptions import (
    ParserTypeError,
)
from pypto.language.parser.frame import Frame, freeze
from pypto.language.parser.scalars import coerce, scalar_operand
from pypto.language.parser.signature import tensor_type
from pypto.language.parser.values import Value, is_array, is_tensor, is_tile, show_value


def as_annotated(frame: Frame, annotation: Value, value: Value, node: ast.AnnAssign) -> Value:
    """The value as its annotation says it is; an error where it is something else."""
    if isinstance(annotation, markers.Scalar | DataType):
        dtype = annotation.dtype if isinstance(annotation, markers.Scalar) else annotation
        what = f"the value of {ast.unparse(node.target)!r}"
        if dtype == TASK_ID:
            return scalar_value(frame, value, dtype, node, what)
        return coerce(frame, scalar_operand(frame, value, node, what), dtype, node, what)
    if annotation in (markers.Tile, markers.Tensor):
        fits = is_tile(value) if annotation is markers.Tile else is_tensor(value)
    elif isinstance(annotation, markers.Tile):
        fits = (
            isinstance(value, Var)
            and isinstance(value.type, TileType)
            and value.type.shape == annotation.shape
            and value.type.dtype == annotation.dtype
            and annotation.space in (None, value.type.space)
            and (annotation.view is None or annotation.view.valid_shape == value.type.valid)
        )
        if fits and annotation.memref is not None:
            _place(frame, value, annotation.memref, node)
    elif isinstance(annotation, markers.Tensor):
        type_ = tensor_type(frame, annotation, node.annotation)
        fits = isinstance(value, Var) and _is_like(value.type, type_)
    elif isinstance(annotation, markers.Array):
        fits = is_array(value) and value.type == ArrayType(annotation.size, annotation.dtype)
    elif annotation in (int, float, bool, str):
        fits = type(value) is annotation
    else:
        raise frame.error(
            ParserTypeError,
            node.annotation,
            f"{show_value(annotation)} is no annotation for a local name; use pl.Tile, pl.Tensor "
            "or pl.Scalar",
        )
    if not fits:
        raise frame.error(
            ParserTypeError,
            node,
            f"{ast.unparse(node.target)!r} is annotated {ast.unparse(node.annotation)}, but its "
            f"value is {show_value(value)}",
        )
    return value


def _place(frame: Frame, tile: Value, memref: markers.MemRef, node: ast.AnnAssign) -> None:
    """Notes where memory planning put a tile, as a program that it printed says."""
    made = frame.body[-1] if frame.body else None
    if not isinstance(made, Op) or made.result is not tile:
        raise frame.error(
            ParserTypeError,
            node.annotation,
            "a pl.MemRef belongs to the statement whose operation makes the tile",
        )
    frame.body[-1] = replace(made, attrs=freeze({**made.attrs, "addr": memref.addr}))


def _is_like(given: Type, declared: TensorType) -> bool:
    """Whether a value has a declared type, whatever its run-time extents are called."""
    return (
        isinstance(given, TensorType)
        and given.dtype == declared.dtype
        and given.layout is declared.layout
        and len(given.shape) == len(declared.shape)
        and all(
            have == want or (isinstance(have, DynDim) and isinstance(want, DynDim))
            for have, want in zip(given.shape, declared.shape, strict=True)
        )
    )
