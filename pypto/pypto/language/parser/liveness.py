"""Which names are read after each statement, and which a block binds.

Rebinding a name in a loop or a branch makes a value that the loop carries or the branch returns,
but only if somebody reads it: a name that is always written first is a temporary. This is the
classical backward analysis over structured code; it looks at syntax alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence

Names = frozenset[str]


def read_names(*nodes: ast.AST | None) -> Names:
    """Every name that the expressions read."""
    return frozenset(
        node.id
        for root in nodes
        if root is not None
        for node in ast.walk(root)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    )


def bound_names(statements: Iterable[ast.stmt]) -> Names:
    """Every name that the statements bind, at any depth."""
    return frozenset(_bound(statements))


def _bound(statements: Iterable[ast.stmt]) -> Iterator[str]:
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                # ``out[:] = e`` rebinds ``out`` to the tensor that has been written.
                if isinstance(node.value, ast.Name):
                    yield node.value.id
            elif isinstance(node, ast.Call) and _called(node) == "write":
                # So does ``pl.write(out, [0], s)``; a tensor's name keeps its memory all the same.
                named = [word.value for word in node.keywords if word.arg == "x"]
                for written in (*node.args[:1], *named):
                    if isinstance(written, ast.Name):
                        yield written.id


def _called(call: ast.Call) -> str:
    callee = call.func
    return callee.attr if isinstance(callee, ast.Attribute) else getattr(callee, "id", "")


def live_after(body: Sequence[ast.stmt]) -> Mapping[ast.stmt, Names]:
    """For each statement, at any depth, the names that may be read after it."""
    table: dict[ast.stmt, Names] = {}
    _block(body, frozenset(), table)
    return table


def _block(body: Sequence[ast.stmt], live: Names, table: dict[ast.stmt, Names]) -> Names:
    """The names live before a block, given those live after it."""
    for statement in reversed(body):
        table[statement] = live
        live = _before(statement, live, table)
    return live


def _targets(*targets: ast.expr) -> Names:
    return frozenset(
        node.id
        for target in targets
        for node in ast.walk(target)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )


def _before(statement: ast.stmt, live: Names, table: dict[ast.stmt, Names]) -> Names:
    match statement:
        case ast.For(target=target, iter=iter_, body=body):
            own = _targets(target)
            around = live
            while True:  # grows within a finite set
                inside = _block(body, around, table) - own
                if inside <= around:
                    return around | read_names(iter_)
                around |= inside
        case ast.If(test=test, body=body, orelse=orelse):
            return _block(body, live, table) | _block(orelse, live, table) | read_names(test)
        case ast.With(items=items, body=body):
            inside = _block(body, live, table)
            return inside | read_names(*(item.context_expr for item in items))
        case ast.Assign(targets=targets):
            return (live - _targets(*targets)) | read_names(statement)
        case ast.AnnAssign(target=target, value=value):
            return (live - _targets(target)) | read_names(target, value)
        case ast.AugAssign(target=target):
            return live | read_names(statement) | _targets(target)
        case _:
            return live | read_names(statement)
