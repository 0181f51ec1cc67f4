"""Functions whose author promises that each name is bound once (``strict_ssa=True``)."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pypto.language.parser.diagnostics.exceptions import SSAViolationError
from pypto.language.parser.frame import Frame

_Bound = dict[str, ast.AST]


def check_single_assignment(frame: Frame) -> None:
    """Raises SSAViolationError where the function of ``frame`` binds a name that has a value.

    What a loop or an arm of a branch binds is its own; what its ``pl.yield_`` is assigned to, and
    what both arms bind, has a value afterwards.
    """
    arguments = frame.source.tree.args
    params = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    bound: _Bound = {argument.arg: argument for argument in params}
    _block(frame, frame.source.tree.body, bound)


def _block(frame: Frame, body: Sequence[ast.stmt], bound: _Bound) -> None:
    for statement in body:
        match statement:
            case ast.If(body=then, orelse=orelse):
                arms = [_inside(frame, arm, (), bound) for arm in (then, orelse)]
                yielded = [_yielded(arm) for arm in (then, orelse)]
                for name in arms[0]:
                    if name in arms[1] or name in yielded[0]:
                        _bind(frame, name, arms[0][name], bound)
            case ast.For(target=target, body=inner):
                own = _inside(frame, inner, _targets(target), bound)
                for name in _yielded(inner):
                    _bind(frame, name, own[name], bound)
            case ast.With(items=items, body=inner):
                for item in items:
                    if item.optional_vars is not None:
                        _bind_all(frame, _targets(item.optional_vars), bound)
                _block(frame, inner, bound)
            case ast.Assign(targets=targets):
                for target in targets:
                    _bind_all(frame, _targets(target), bound)
            case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
                _bind_all(frame, _targets(target), bound)


def _inside(
    frame: Frame, body: Sequence[ast.stmt], targets: Sequence[ast.Name], bound: _Bound
) -> _Bound:
    """What a nested block binds by itself."""
    inside = dict(bound)
    _bind_all(frame, targets, inside)
    _block(frame, body, inside)
    return {name: node for name, node in inside.items() if name not in bound}


def _bind_all(frame: Frame, names: Sequence[ast.Name], bound: _Bound) -> None:
    for name in names:
        _bind(frame, name.id, name, bound)


def _bind(frame: Frame, name: str, node: ast.AST, bound: _Bound) -> None:
    if name in bound:
        line, _ = frame.source.user_position(bound[name])
        raise frame.error(
            SSAViolationError,
            node,
            f"{name!r} is bound again; it was bound on line {line}, and with strict_ssa=True a "
            "name is bound once: use another name",
        )
    bound[name] = node


def _targets(target: ast.expr) -> tuple[ast.Name, ...]:
    return tuple(_names(target))


def _names(target: ast.expr) -> Iterator[ast.Name]:
    for node in ast.walk(target):
        # Nobody wants what is bound to "_".
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id != "_":
            yield node


def _yielded(body: Sequence[ast.stmt]) -> tuple[str, ...]:
    """The names that a block's last statement binds to what ``pl.yield_`` gives."""
    last = body[-1] if body else None
    if not isinstance(last, ast.Assign) or not isinstance(last.value, ast.Call):
        return ()
    function = last.value.func
    if not isinstance(function, ast.Attribute) or function.attr != "yield_":
        return ()
    return tuple(name.id for target in last.targets for name in _targets(target))
