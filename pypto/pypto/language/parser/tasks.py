"""What a kernel says of one task: its blocks, its order, and what it shows of its tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from pypto.ir.dtypes import TASK_ID
from pypto.ir.nodes import PLAIN, Const, Operand, ScalarType, Schedule, Var
from pypto.language.parser.diagnostics.exceptions import (
    InvalidOperationError,
    ParserTypeError,
)
from pypto.language.parser.frame import Frame
from pypto.language.parser.scalars import index_operand
from pypto.language.parser.site import CallSite
from pypto.language.parser.values import (
    Value,
    is_array,
    is_task,
    is_tensor,
    show_value,
)


@dataclass(frozen=True, slots=True)
class NoDep:
    """``pl.no_dep(tensor)`` as an argument."""

    tensor: Var


@dataclass(frozen=True, slots=True)
class TaskRequest:
    """The schedule of a task whose tensors are not known yet.

    ``no_deps`` and ``dumps`` are tensors as the kernel names them, each with the word that named
    it. ``task`` is the variable for the task's id.
    """

    blocks: Operand | None = None
    deps: tuple[Operand, ...] = ()
    no_deps: tuple[tuple[str, Var], ...] = ()
    dumps: tuple[tuple[str, Var], ...] = ()
    task: Var | None = None
    node: ast.AST = field(default_factory=ast.Pass)

    def schedule(self, frame: Frame, tensors: Sequence[Var]) -> Schedule:
        """The schedule of a task that uses these tensors.

        One that says anything names its task too, so that a call that submits can say it all.
        Raises a :class:`ParserError` where a tensor is named that the task does not use.
        """
        root = frame.values.root
        used = {root(tensor) for tensor in tensors}
        for word, tensor in (*self.no_deps, *self.dumps):
            if root(tensor) not in used:
                raise frame.error(
                    InvalidOperationError,
                    self.node,
                    f"{word} names {tensor.name!r}, which the task does not use",
                )
        hidden = {root(tensor) for _, tensor in self.no_deps}
        shown = {root(tensor) for _, tensor in self.dumps} | frame.values.dump_tags
        once = tuple(dict.fromkeys(tensors))
        schedule = Schedule(
            blocks=self.blocks,
            deps=self.deps,
            no_deps=tuple(tensor for tensor in once if root(tensor) in hidden),
            dumps=tuple(tensor for tensor in once if root(tensor) in shown),
            task=self.task,
        )
        if schedule == PLAIN or schedule.task is not None:
            return schedule
        return replace(schedule, task=new_task(frame))


PLAIN_TASK = TaskRequest()


def new_task(frame: Frame, name: str = "task") -> Var:
    """The variable for a task's id."""
    return frame.new_var(name, ScalarType(TASK_ID))


def requested(
    site: CallSite, *, blocks: Operand | None = None, task: Var | None = None
) -> TaskRequest:
    """What the arguments ``deps``, ``no_dep_args`` and ``dumps`` of a call ask for."""
    return TaskRequest(
        blocks,
        tuple(_dependencies(site)),
        tuple(_named_tensors(site, "no_dep_args")),
        tuple(_named_tensors(site, "dumps")),
        task,
        site.node,
    )


def _dependencies(site: CallSite) -> Iterator[Operand]:
    value = site.values["deps"]
    if value is None:
        return
    if not isinstance(value, tuple | list):
        raise site.wrong("deps", f"deps must be a list such as [tid], not {show_value(value)}")
    yield from _tasks_in(site, value)


def _tasks_in(site: CallSite, value: Value) -> Iterator[Operand]:
    if value is None:
        return
    if is_task(value) or (is_array(value) and value.type.dtype == TASK_ID):
        yield value
    elif isinstance(value, tuple | list):
        # What pl.submit gives stands for its task.
        submitted = any(is_task(item) for item in value)
        for item in value:
            if not (submitted and is_tensor(item)):
                yield from _tasks_in(site, item)
    else:
        raise site.wrong(
            "deps", f"deps holds task ids, arrays of them and None, not {show_value(value)}"
        )


def _named_tensors(site: CallSite, parameter: str) -> Iterator[tuple[str, Var]]:
    if site.values.get(parameter) is None:
        return
    for item in site.sequence(parameter):
        if not is_tensor(item):
            raise site.wrong(parameter, f"{parameter} holds tensors, not {show_value(item)}")
        yield parameter, item


def block_count(site: CallSite, *parameters: str) -> Operand:
    """How many blocks a call asks for by one of its parameters."""
    given = [p for p in parameters if site.values[p] is not None]
    if len(given) != 1:
        said = "it is given twice" if given else f"{parameters[0]} is missing"
        raise site.frame.error(
            ParserTypeError, site.node, f"{site.name}: takes a number of blocks, but {said}"
        )
    what = f"{site.name}: the number of blocks"
    count = index_operand(site.frame, site.values[given[0]], site.at(given[0]), what)
    if isinstance(count, Const) and not 0 <= count.value < 2**31:
        raise site.wrong(
            given[0], f"a task cannot run in {count.value} blocks; it takes 0 to 2147483647"
        )
    return count
