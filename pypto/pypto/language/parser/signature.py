"""Signatures: what each annotation says, whether it is an object or a string."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from pypto.ir.dtypes import TASK_ID, DataType
from pypto.ir.errors import IrTypeError
from pypto.ir.memory_rules import check_tensor_type
from pypto.ir.nodes import Dim, Direction, DynDim, FunctionKind, ScalarType, TensorType
from pypto.ir.regions import check_layout
from pypto.language import markers
from pypto.language.parser.diagnostics.exceptions import (
    ParserSyntaxError,
    ParserTypeError,
    UnsupportedFeatureError,
)
from pypto.language.parser.expressions import evaluate, static_value
from pypto.language.parser.frame import Builder, Frame, Values
from pypto.language.parser.values import Value, show_value
from pypto.language.source import FunctionSource, ParamAnnotation, ParamCategory


def read_signature(source: FunctionSource) -> tuple[ParamAnnotation, ...]:
    """The parameters of a function, in order.

    Raises a :class:`ParserError` for annotations that mean nothing and for ``*args``.
    """
    frame = annotation_frame(source)
    arguments = source.tree.args
    for stars, extra in (("*", arguments.vararg), ("**", arguments.kwarg)):
        if extra is not None:
            raise frame.error(
                UnsupportedFeatureError,
                extra,
                f"a kernel has a fixed list of parameters, so it cannot have {stars}{extra.arg}",
            )
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults))
    defaults += arguments.defaults
    pairs = [*zip(plain, defaults, strict=True)]
    pairs += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return tuple(_parameter(frame, argument, default) for argument, default in pairs)


def positional_count(source: FunctionSource) -> int:
    """How many parameters may be given by position."""
    arguments = source.tree.args
    return len(arguments.posonlyargs) + len(arguments.args)


def annotation_frame(source: FunctionSource) -> Frame:
    """A frame in which annotations and defaults are evaluated: no locals, no operations."""
    builder = Builder(_annotation_call, _no_block, source.attributes)
    return Frame(builder, source, source.kind, Values(), {}, {}, [])


def _annotation_call(frame: Frame, node: ast.Call, hint: str) -> Value:
    callee = evaluate(frame, node.func)
    if not any(callee is value for value in markers.VALUES):
        raise frame.error(
            ParserSyntaxError, node, f"an annotation cannot call {show_value(callee)}"
        )
    return marker_value(frame, node, callee)


def marker_value(frame: Frame, node: ast.Call, callee: Value) -> Value:
    """What a call such as ``pl.dynamic("M")`` gives, which is known when the kernel is compiled."""
    assert callable(callee)
    args = [static_value(frame, argument, "an argument") for argument in node.args]
    keywords = {
        keyword.arg: static_value(frame, keyword.value, f"the argument {keyword.arg!r}")
        for keyword in node.keywords
        if keyword.arg is not None
    }
    try:
        result: Value = callee(*args, **keywords)
    except (TypeError, ValueError) as error:
        raise frame.error(ParserTypeError, node, str(error)) from None
    return result


def _no_block(frame: Frame, body: Sequence[ast.stmt]) -> None:
    raise AssertionError("an annotation holds no statements")


def _parameter(frame: Frame, argument: ast.arg, default: ast.expr | None) -> ParamAnnotation:
    direction, category, type_ = _classify(frame, argument)
    if default is None:
        return ParamAnnotation(argument.arg, direction, category, type_)
    value = static_value(frame, default, "a default")
    return ParamAnnotation(argument.arg, direction, category, type_, True, value)


_Kind = tuple[Direction, ParamCategory, TensorType | ScalarType | None]


def _classify(frame: Frame, argument: ast.arg) -> _Kind:
    if argument.annotation is None:
        return Direction.In, ParamCategory.UNANNOTATED, None
    value = annotation_value(frame, argument.annotation)
    direction = Direction.In
    if isinstance(value, markers.Directed):
        direction, value = value.direction, value.inner
    if value is markers.Tensor:
        return direction, ParamCategory.TENSOR, None
    if isinstance(value, markers.Tensor):
        return direction, ParamCategory.TENSOR, tensor_type(frame, value, argument.annotation)
    if isinstance(value, markers.Scalar | DataType):
        dtype = value.dtype if isinstance(value, markers.Scalar) else value
        if dtype == TASK_ID and frame.source.kind is not FunctionKind.INLINE:
            raise frame.error(
                ParserTypeError,
                argument.annotation,
                f"parameter {argument.arg!r}: a task id names a task of one orchestration; only "
                "an inline function can take one",
            )
        return direction, ParamCategory.SCALAR, ScalarType(dtype)
    if value is markers.constexpr:
        return direction, ParamCategory.CONSTEXPR, None
    local = value is markers.Tile or isinstance(value, markers.Tile | markers.Array)
    if local and frame.source.kind is FunctionKind.INLINE:
        return direction, ParamCategory.UNANNOTATED, None
    raise frame.error(ParserTypeError, argument.annotation, _advice(argument, value))


def _advice(argument: ast.arg, value: Value) -> str:
    name = argument.arg
    if value is markers.Out or value is markers.InOut:
        assert isinstance(value, type)
        return f"parameter {name!r}: write pl.{value.__name__}[pl.Tensor]"
    if value is markers.Scalar:
        return f"parameter {name!r}: a scalar needs its element type, such as pl.Scalar[pl.INT32]"
    if value is markers.Tile or isinstance(value, markers.Tile):
        return f"parameter {name!r}: a tile cannot be a parameter; pass a pl.Tensor and load it"
    if value is int or value is float or value is bool:
        return (
            f"parameter {name!r}: for a number given at each run write pl.Scalar[pl.INT64] or "
            "another element type, for one fixed at compile time pl.constexpr"
        )
    return (
        f"parameter {name!r}: {show_value(value)} is no annotation for a kernel; use pl.Tensor, "
        "pl.Out[pl.Tensor], pl.InOut[pl.Tensor], pl.Scalar[dtype] or pl.constexpr"
    )


def annotation_value(frame: Frame, annotation: ast.expr) -> Value:
    """The object that an annotation stands for; a string is read as an expression."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            parsed = ast.parse(annotation.value.strip(), mode="eval").body
        except SyntaxError:
            raise frame.error(
                ParserSyntaxError, annotation, f"annotation {annotation.value!r} does not parse"
            ) from None
        for node in ast.walk(parsed):  # errors point at the string
            if isinstance(node, ast.expr):
                ast.copy_location(node, annotation)
        annotation = parsed
    return evaluate(frame, annotation)


def tensor_type(frame: Frame, value: markers.Tensor, node: ast.AST) -> TensorType:
    """The type that ``pl.Tensor[shape, dtype]`` describes."""
    shape: list[Dim] = [
        DynDim(extent.name, extent.limit) if isinstance(extent, markers.DynVar) else extent
        for extent in value.shape
    ]
    try:
        type_ = check_tensor_type(shape, value.dtype)
        check_layout(type_, value.layout)
        return replace(type_, layout=value.layout, adjacent=_adjacent(frame, value, shape, node))
    except IrTypeError as error:
        raise frame.error(ParserTypeError, node, f"pl.Tensor: {error}") from None


def _adjacent(frame: Frame, value: markers.Tensor, shape: list[Dim], node: ast.AST) -> int | None:
    """How many of the last axes have no gaps, as a ``pl.TensorView`` says; None for all."""
    view = value.view
    if view is None:
        return None
    if not frame.source.declared:
        raise frame.error(
            ParserTypeError,
            node,
            "pl.TensorView describes tensors of a pl.program; a @pl.jit kernel takes tensors "
            "without gaps, and its helpers whatever part of one they are given: leave it out",
        )
    if view.valid_shape not in (None, value.shape):
        raise IrTypeError(
            "valid_shape must be the shape: how much of a tile is valid is said where it is "
            "loaded, with pl.load(x, offsets, shapes, valid_shape=...)"
        )
    if view.stride is None:
        return view.adjacent
    if len(view.stride) != len(shape):
        raise IrTypeError(f"{len(view.stride)} strides for {len(shape)} dimensions")
    count, dense = 0, 1
    for extent, step in zip(reversed(shape), reversed(view.stride), strict=True):
        if isinstance(step, int) and step < dense:
            raise IrTypeError(
                f"a stride of {step} reaches into the axis inside it, which takes {dense} "
                "elements; strides fall from the outermost axis to the innermost"
            )
        if step != dense:
            break
        count += 1
        if not isinstance(extent, int):
            break
        dense *= extent
    return None if count == len(shape) else count
