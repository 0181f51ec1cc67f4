"""``pl.yield_`` at the end of the body of a loop or of an arm of a branch."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from pypto.language import functions as pl
from pypto.language.parser.annotations import as_annotated
from pypto.language.parser.diagnostics.exceptions import ParserSyntaxError
from pypto.language.parser.expressions import evaluate
from pypto.language.parser.frame import Frame
from pypto.language.parser.signature import annotation_value
from pypto.language.parser.values import Value


@dataclass(frozen=True, slots=True)
class Yield:
    """The values that a body hands on, and the names that they are assigned to, if any."""

    statement: ast.Expr | ast.Assign | ast.AnnAssign
    call: ast.Call
    names: tuple[str, ...]

    def evaluate(self, frame: Frame) -> list[Value]:
        """The values, each as its annotation says it is."""
        values = [evaluate(frame, value) for value in self.call.args]
        if isinstance(self.statement, ast.AnnAssign):
            annotation = annotation_value(frame, self.statement.annotation)
            values = [as_annotated(frame, annotation, value, self.statement) for value in values]
        return values


def split_yield(frame: Frame, body: Sequence[ast.stmt]) -> tuple[Sequence[ast.stmt], Yield | None]:
    """A body without the ``pl.yield_`` that ends it, and that; ``None`` where there is none."""
    last = body[-1] if body else None
    if not isinstance(last, ast.Expr | ast.Assign | ast.AnnAssign):
        return body, None
    if not isinstance(last.value, ast.Call):
        return body, None
    call = last.value
    if not is_call_of(frame, call, pl.yield_):
        return body, None
    if call.keywords or any(isinstance(value, ast.Starred) for value in call.args):
        raise frame.error(ParserSyntaxError, last, "pl.yield_ takes values, as in pl.yield_(a, b)")
    if isinstance(last, ast.Expr):
        return body[:-1], Yield(last, call, ())
    targets = last.targets if isinstance(last, ast.Assign) else [last.target]
    target = targets[0]
    names = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    found = tuple(name.id for name in names if isinstance(name, ast.Name))
    if len(targets) > 1 or len(found) != len(names) or len(names) != len(call.args):
        raise frame.error(
            ParserSyntaxError, last, "pl.yield_ is assigned to one name for each of its values"
        )
    if len(set(found)) < len(found):
        raise frame.error(ParserSyntaxError, last, "pl.yield_ is assigned to one name twice")
    return body[:-1], Yield(last, call, found)


def is_call_of(frame: Frame, call: ast.Call, function: object) -> bool:
    """Whether a call is of a language function, by its own name or one that it was imported as."""
    callee = call.func
    if isinstance(callee, ast.Attribute):
        return callee.attr == getattr(function, "__name__", None)
    return isinstance(callee, ast.Name) and frame.source.namespace.get(callee.id) is function


def branch_names(frame: Frame, node: ast.If) -> tuple[str, ...] | None:
    """The names that both arms of a branch yield, or ``None`` where neither ends in a yield.

    An arm that is a branch itself can be read in two ways: it goes on with this branch, as ``elif``
    does, or it is a statement of its own, whose names are bound in the arm like any others.
    """
    first, second = _arm_names(frame, node.body), _arm_names(frame, node.orelse)
    if first is None and second is None:
        return None
    arms = ((node.body, first), (node.orelse, second))
    if first != second and all(names is None or _is_branch(arm) for arm, names in arms):
        return None
    if first is None or second is None:
        raise frame.error(
            ParserSyntaxError,
            node,
            "one branch of this if ends in pl.yield_ and the other does not; both must, with the "
            "same names",
        )
    if first != second:
        raise frame.error(
            ParserSyntaxError,
            node,
            f"one branch of this if yields {_shown(first)}, the other {_shown(second)}; both must "
            "assign pl.yield_ to the same names",
        )
    return first


def _is_branch(body: Sequence[ast.stmt]) -> bool:
    return len(body) == 1 and isinstance(body[0], ast.If)


def _arm_names(frame: Frame, body: Sequence[ast.stmt]) -> tuple[str, ...] | None:
    if _is_branch(body):
        return branch_names(frame, cast("ast.If", body[0]))
    final = split_yield(frame, body)[1]
    return None if final is None else final.names or ("",) * len(final.call.args)


def _shown(names: tuple[str, ...]) -> str:
    if not any(names):
        return f"{len(names)} values without a name"
    return ", ".join(names)
