"""Task ids that nobody reads: a task needs none then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pypto.ir.nodes import Call, Scope, Stmt, Var
from pypto.ir.passes.rewrite import reads, with_bodies


def without_unread_tasks(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The body of a function whose tasks are known by an id only where one is read.

    ``pl.submit`` always gives an id, and so the same program is made of a text that drops it.
    """
    return _pruned(body, frozenset(reads(body)))


def _pruned(body: Sequence[Stmt], read: frozenset[Var]) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    for stmt in body:
        rebuilt = with_bodies(stmt, lambda inner: _pruned(inner, read))
        if isinstance(rebuilt, Call | Scope):
            task = rebuilt.schedule.task
            if task is not None and task not in read:
                rebuilt = replace(rebuilt, schedule=replace(rebuilt.schedule, task=None))
        out.append(rebuilt)
    return tuple(out)
