"""Arrays of scalars in orchestration code, and task ids as their elements."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import MappingProxyType

from pypto.ir.dtypes import TASK_ID, DataType
from pypto.ir.errors import IrTypeError
from pypto.ir.nodes import ArrayType, Op, Operand, Var
from pypto.ir.ops import infer_result
from pypto.ir.typing_rules import is_whole
from pypto.language import array as pl_array
from pypto.language.parser.diagnostics.exceptions import (
    InvalidOperationError,
    ParserTypeError,
)
from pypto.language.parser.frame import Frame
from pypto.language.parser.scalars import coerce, index_operand, scalar_operand
from pypto.language.parser.site import CallSite, Handler
from pypto.language.parser.values import Value, is_array, is_task, show_value


def scalar_value(frame: Frame, value: Value, dtype: DataType, node: ast.AST, what: str) -> Operand:
    """A scalar of an element type; for task ids ``None`` names no task."""
    if dtype != TASK_ID:
        return coerce(frame, scalar_operand(frame, value, node, what), dtype, node, what)
    if value is None:
        return frame.emit("task.none", [], node, hint="no_task")
    if is_task(value):
        return value
    raise frame.error(
        ParserTypeError, node, f"{what} must be a task id or None, not {show_value(value)}"
    )


def read_from_array(frame: Frame, array: Var, index: Value, node: ast.AST, hint: str = "") -> Var:
    """``array[index]``."""
    _check_place(frame, array, node)
    at = index_operand(frame, index, node, f"the index into {array.name!r}")
    return frame.emit("array.read", [array, at], node, hint=hint or array.name)


def write_into_array(frame: Frame, array: Var, index: Value, value: Value, node: ast.AST) -> None:
    """``array[index] = value``."""
    _check_place(frame, array, node)
    assert isinstance(array.type, ArrayType)
    at = index_operand(frame, index, node, f"the index into {array.name!r}")
    what = f"what is written into {array.name!r}"
    operands = (array, at, scalar_value(frame, value, array.type.dtype, node, what))
    try:
        infer_result("array.write", operands, {})
    except IrTypeError as error:
        raise frame.error(InvalidOperationError, node, str(error)) from None
    frame.body.append(Op("array.write", operands, None, frame.source.span(node)))


def _check_place(frame: Frame, array: Var, node: ast.AST) -> None:
    if frame.on_core:
        raise frame.error(
            InvalidOperationError,
            node,
            f"{array.name!r} is an array, which lives in the orchestration: read and write its "
            "elements outside pl.at",
        )


def _array(site: CallSite) -> Var:
    value = site.values["array"]
    if is_array(value):
        return value
    raise site.wrong("array", f"array must be a pl.Array, not {show_value(value)}")


def _create(site: CallSite) -> Value:
    if site.frame.on_core:
        raise site.frame.error(
            InvalidOperationError,
            site.node,
            f"{site.name}: an array lives in the orchestration: create it outside pl.at",
        )
    size = site.values["size"]
    if not is_whole(size):
        raise site.wrong(
            "size",
            f"size must be an int known when the kernel is compiled, not {show_value(size)}",
        )
    return site.emit("array.create", [], {"size": size, "dtype": site.dtype("dtype")})


def _read(site: CallSite) -> Value:
    return read_from_array(site.frame, _array(site), site.values["index"], site.node, site.hint)


def _write(site: CallSite) -> Value:
    array = _array(site)
    write_into_array(site.frame, array, site.values["index"], site.values["value"], site.node)
    return array


ARRAYS: Mapping[object, Handler] = MappingProxyType(
    {pl_array.create: _create, pl_array.read: _read, pl_array.write: _write}
)
