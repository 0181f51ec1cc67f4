"""What a name stands for after a loop or a branch, given what it stands for on each path."""

from __future__ import annotations

import ast

from pypto.ir.dtypes import BOOL, DataType
from pypto.ir.nodes import Operand, Var
from pypto.ir.typing_rules import show_type
from pypto.language.parser.diagnostics.exceptions import ParserError, SSAViolationError
from pypto.language.parser.frame import Frame
from pypto.language.parser.scalars import Scalar, common_dtype
from pypto.language.parser.values import (
    Value,
    is_scalar,
    is_tensor,
    is_tile,
    same_static,
    scalar_dtype,
    show_value,
)


def same_memory(frame: Frame, left: Value, right: Value) -> bool:
    """Whether two tensors are one."""
    return (
        is_tensor(left) and is_tensor(right) and frame.values.root(left) is frame.values.root(right)
    )


def same_value(frame: Frame, left: Value, right: Value) -> bool:
    """Whether two paths agree, so that nothing has to be chosen or carried."""
    return left is right or same_memory(frame, left, right) or same_static(left, right)


def is_value_tensor(frame: Frame, value: Value) -> bool:
    """Whether it is a tensor that was computed, rather than a place in global memory."""
    return is_tensor(value) and frame.values.root(value) not in frame.values.memory


def clash(frame: Frame, name: str, node: ast.AST, where: str, detail: str) -> ParserError:
    """An error about a name whose paths do not fit together."""
    return frame.error(SSAViolationError, node, f"{name!r} {where}: {detail}")


def meeting_dtype(
    frame: Frame, name: str, left: Scalar, right: Scalar, node: ast.AST, where: str
) -> DataType:
    """The type in which a scalar of two paths continues."""
    dtype = common_dtype(left, right)
    a, b = scalar_dtype(left), scalar_dtype(right)
    if BOOL in (a, b) and a != b:
        raise clash(frame, name, node, where, f"it is {a} on one path and {b} on the other")
    return dtype


def check_same_kind(
    frame: Frame, name: str, left: Value, right: Value, node: ast.AST, where: str
) -> None:
    """Two values that are no scalars must have one type to continue as one."""
    fits = (is_tile(left) and is_tile(right)) or (is_tensor(left) and is_tensor(right))
    if not fits:
        detail = f"{show_value(left)} on one path, {show_value(right)} on the other"
        raise clash(frame, name, node, where, detail)
    assert isinstance(left, Var)
    assert isinstance(right, Var)
    if left.type != right.type:
        detail = f"a {show_type(left.type)} on one path, a {show_type(right.type)} on the other"
        raise clash(frame, name, node, where, detail)
    if is_tensor(left) and frame.on_core and not same_memory(frame, left, right):
        # Outside a core a name can stand for another tensor each time; a core's tensors are fixed.
        if not is_value_tensor(frame, left) and not is_value_tensor(frame, right):
            raise clash(
                frame,
                name,
                node,
                where,
                "it would name one tensor on one path and another on the other; store into a "
                "tensor chosen beforehand",
            )


def both_scalars(left: Value, right: Value) -> bool:
    """Whether two paths give numbers or scalars."""
    return is_scalar(left) and is_scalar(right)


def as_operand(value: Value) -> Operand:
    """A value that check_same_kind has accepted."""
    assert isinstance(value, Var)
    return value
