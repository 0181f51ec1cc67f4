"""Functions that only declare a kernel: their annotations are its signature."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from pypto.ir.nodes import (
    Direction,
    Function,
    FunctionKind,
    Param,
    ScalarType,
    TensorType,
    Var,
)
from pypto.language.parser.diagnostics.exceptions import ParserSyntaxError, ParserTypeError
from pypto.language.parser.frame import Builder, Frame
from pypto.language.parser.signature import annotation_frame, read_signature
from pypto.language.source import Argument, FunctionSource, ParamCategory


def declare_external(
    builder: Builder, source: FunctionSource, name: str, arguments: Mapping[str, Argument]
) -> Function:
    """The function called ``name`` for an extern kernel that is called with ``arguments``.

    Raises a :class:`ParserError` at the declaration for a body other than ``...`` and for a
    parameter that C++ cannot be given.
    """
    frame = annotation_frame(source)
    _check_body(frame, source.tree)
    params: list[Param] = []
    for node, param in zip(_parameters(source.tree), read_signature(source), strict=True):
        if param.category not in (ParamCategory.TENSOR, ParamCategory.SCALAR):
            raise frame.error(
                ParserTypeError,
                node,
                f"parameter {param.name!r} of the extern kernel {source.name!r} must be annotated "
                "as pl.Tensor, pl.Out[pl.Tensor], pl.InOut[pl.Tensor] or pl.Scalar[dtype]; values "
                "that are fixed at compile time belong into the C++ source",
            )
        argument = arguments[param.name]
        assert isinstance(argument, TensorType | ScalarType)
        params.append(Param(Var(param.name, argument), param.direction))
    builder.results[name] = tuple(
        index for index, param in enumerate(params) if param.direction is not Direction.In
    )
    types = tuple(params[index].var.type for index in builder.results[name])
    span = source.span(source.tree)
    return Function(
        name,
        FunctionKind.INCORE,
        tuple(params),
        (),
        types,
        span,
        external=source.external,
        attrs=source.attrs,
    )


def _check_body(frame: Frame, tree: ast.FunctionDef) -> None:
    body = list(tree.body)
    if _is_constant(body[0], str):
        body.pop(0)  # a docstring
    for statement in body:
        if not _is_constant(statement, type(...)):
            raise frame.error(
                ParserSyntaxError,
                statement,
                f"{tree.name!r} is an extern kernel, so its body must be '...': what it does is in "
                "its C++ source",
            )
    if not body:
        raise frame.error(
            ParserSyntaxError, tree, f"the body of the extern kernel {tree.name!r} must be '...'"
        )


def _is_constant(statement: ast.stmt, kind: type) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, kind)
    )


def _parameters(tree: ast.FunctionDef) -> list[ast.arg]:
    arguments = tree.args
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
