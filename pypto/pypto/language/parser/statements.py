"""Statements, one after the other."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pypto.ir.nodes import (
    Direction,
    Return,
    Var,
)
from pypto.language.parser.annotations import as_annotated
from pypto.language.parser.branches import if_statement
from pypto.language.parser.diagnostics.exceptions import (
    InvalidOperationError,
    ParserSyntaxError,
    ParserTypeError,
    UnsupportedFeatureError,
)
from pypto.language.parser.expressions import combine, evaluate
from pypto.language.parser.frame import Frame
from pypto.language.parser.loops import for_statement
from pypto.language.parser.regions import assign_region
from pypto.language.parser.scopes import is_spmd_loop, spmd_loop, with_statement
from pypto.language.parser.signature import annotation_value
from pypto.language.parser.values import Value, is_tensor, show_value


def block(frame: Frame, statements: Sequence[ast.stmt]) -> None:
    """Translates statements into ``frame.body``."""
    for statement in statements:
        if frame.has_returned:
            raise frame.error(
                ParserSyntaxError, statement, "nothing can follow return; it ends the function"
            )
        handler = _STATEMENTS.get(type(statement))
        if handler is None:
            raise frame.error(UnsupportedFeatureError, statement, _unsupported(statement))
        try:
            handler(frame, statement)
        except RecursionError:
            raise frame.error(
                UnsupportedFeatureError,
                statement,
                "this statement is nested too deeply; bind parts of it to names",
            ) from None


def _unsupported(statement: ast.stmt) -> str:
    name = _NAMES.get(type(statement), f"a {type(statement).__name__.lower()} statement")
    return f"{name} cannot be used in a kernel{_REMEDIES.get(type(statement), '')}"


def _expression(frame: Frame, node: ast.Expr) -> None:
    value = node.value
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return  # a docstring
    if isinstance(value, ast.Call):
        evaluate(frame, value)
        return
    if isinstance(value, ast.Constant) and value.value is Ellipsis:
        raise frame.error(ParserSyntaxError, node, "the body is missing: '...' computes nothing")
    raise frame.error(
        ParserSyntaxError, node, "this expression has no effect; bind it to a name or remove it"
    )


def _pass(frame: Frame, node: ast.Pass) -> None:
    return


def _assign(frame: Frame, node: ast.Assign) -> None:
    hint = node.targets[0].id if isinstance(node.targets[0], ast.Name) else ""
    value = evaluate(frame, node.value, hint)
    for target in node.targets:
        _bind(frame, target, value, node)


def _bind(frame: Frame, target: ast.expr, value: Value, node: ast.stmt) -> None:
    if isinstance(target, ast.Name):
        if value is None and isinstance(getattr(node, "value", None), ast.Call):
            raise frame.error(
                InvalidOperationError,
                node,
                f"{ast.unparse(node.value.func)} gives no value to bind to {target.id!r}",  # type: ignore[attr-defined]
            )
        frame.env[target.id] = value
    elif isinstance(target, ast.Tuple | ast.List):
        if not isinstance(value, tuple | list):
            raise frame.error(
                ParserTypeError, target, f"cannot unpack {show_value(value)} into several names"
            )
        if len(value) != len(target.elts):
            raise frame.error(
                ParserTypeError,
                target,
                f"{len(target.elts)} names for {len(value)} values",
            )
        for part, item in zip(target.elts, value, strict=True):
            _bind(frame, part, item, node)
    elif isinstance(target, ast.Subscript):
        assign_region(frame, target, value)
    else:
        raise frame.error(
            UnsupportedFeatureError, target, f"cannot assign to {ast.unparse(target)!r} in a kernel"
        )


def _augmented(frame: Frame, node: ast.AugAssign) -> None:
    if isinstance(node.target, ast.Subscript):
        # ``x[i] += 1`` reads the part, and then writes it.
        place = ast.Subscript(node.target.value, node.target.slice, ast.Load())
        left = evaluate(frame, ast.copy_location(place, node.target))
        value = combine(frame, node.op, left, evaluate(frame, node.value), node)
        assign_region(frame, node.target, value)
        return
    if not isinstance(node.target, ast.Name):
        raise frame.error(
            UnsupportedFeatureError,
            node,
            f"cannot update {ast.unparse(node.target)!r} in place in a kernel",
        )
    name = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
    left = frame.lookup(name)
    right = evaluate(frame, node.value)
    frame.env[node.target.id] = combine(frame, node.op, left, right, node, node.target.id)


def _annotated(frame: Frame, node: ast.AnnAssign) -> None:
    if not isinstance(node.target, ast.Name):
        raise frame.error(UnsupportedFeatureError, node, "only a name can be annotated in a kernel")
    if node.value is None:
        raise frame.error(
            ParserSyntaxError,
            node,
            f"{node.target.id!r} is annotated without a value; a kernel binds a name when it is "
            "assigned",
        )
    name = node.target.id
    annotation = annotation_value(frame, node.annotation)
    value = evaluate(frame, node.value, name)
    frame.env[name] = as_annotated(frame, annotation, value, node)


def _return(frame: Frame, node: ast.Return) -> None:
    if node not in frame.source.tree.body:
        raise frame.error(
            UnsupportedFeatureError,
            node,
            "return must be the last statement of the function, outside loops, branches and "
            "pl.at blocks",
        )
    frame.has_returned = True
    value = None if node.value is None else evaluate(frame, node.value)
    if frame.inline:
        frame.returned = value
        return
    values = () if value is None else value if isinstance(value, tuple | list) else (value,)
    params = [_returned_param(frame, item, node) for item in values]
    frame.body.append(Return(tuple(params), frame.source.span(node)))


def _returned_param(frame: Frame, value: Value, node: ast.Return) -> Var:
    if not is_tensor(value):
        raise frame.error(
            ParserTypeError,
            node,
            f"a kernel returns tensors that it writes, not {show_value(value)}; store it into a "
            "pl.Out[pl.Tensor] parameter",
        )
    root = frame.values.root(value)
    directions = {param.var: param.direction for param in frame.values.params}
    whole = frame.values.whole(root)
    if root is not whole:
        raise frame.error(
            InvalidOperationError,
            node,
            f"{value.name!r} is a part of {whole.name!r}; return {whole.name!r} itself",
        )
    if root not in directions:
        raise frame.error(
            InvalidOperationError,
            node,
            f"{value.name!r} was made in this function, so it cannot be returned; write it into a "
            "pl.Out[pl.Tensor] parameter",
        )
    written = {frame.values.whole(var) for var in frame.values.written}
    if directions[root] is Direction.In and root not in written:
        raise frame.error(
            InvalidOperationError,
            node,
            f"{root.name!r} is an input that is never written, so it cannot be returned",
        )
    return root


def _for(frame: Frame, node: ast.For) -> None:
    if is_spmd_loop(frame, node):
        spmd_loop(frame, node)
    else:
        for_statement(frame, node)


_STATEMENTS: Mapping[type[ast.stmt], Callable[[Frame, Any], None]] = MappingProxyType(
    {
        ast.Expr: _expression,
        ast.Pass: _pass,
        ast.Assign: _assign,
        ast.AugAssign: _augmented,
        ast.AnnAssign: _annotated,
        ast.Return: _return,
        ast.For: _for,
        ast.If: if_statement,
        ast.With: with_statement,
    }
)

_NAMES: Mapping[type[ast.stmt], str] = MappingProxyType(
    {
        ast.While: "while",
        ast.Break: "break",
        ast.Continue: "continue",
        ast.Try: "try",
        ast.Raise: "raise",
        ast.Assert: "assert",
        ast.FunctionDef: "a nested function",
        ast.AsyncFunctionDef: "a nested function",
        ast.ClassDef: "a class",
        ast.Import: "import",
        ast.ImportFrom: "import",
        ast.Global: "global",
        ast.Nonlocal: "nonlocal",
        ast.Delete: "del",
        ast.AsyncFor: "async for",
        ast.AsyncWith: "async with",
        ast.Match: "match",
    }
)
_REMEDIES: Mapping[type[ast.stmt], str] = MappingProxyType(
    {
        ast.While: "; use 'for i in pl.range(n):'",
        ast.Break: "; give pl.range the right bounds, or guard the rest with if",
        ast.Continue: "; guard the rest of the body with if",
        ast.Assert: "; use pl.static_assert for what is known when the kernel is compiled",
        ast.FunctionDef: "; define it at module level with @pl.jit.inline or @pl.jit.incore",
        ast.Import: "; import at module level",
        ast.ImportFrom: "; import at module level",
        ast.Match: "; use if and else",
    }
)
