"""The rows of operations that schedule: blocks of a task, task ids, and arrays of scalars.

``array.*`` and ``task.*`` stand in orchestration code alone, the others on a core.
"""

from __future__ import annotations

from collections.abc import Iterator

from pypto.ir import scheduling_rules
from pypto.ir.op_spec import OperandKind, OpSpec


def scheduling_rows() -> Iterator[OpSpec]:
    """The rows of these operations."""
    array, scalar = OperandKind.ARRAY, OperandKind.SCALAR
    yield OpSpec(
        "array.create",
        (),
        ("size", "dtype"),
        scheduling_rules.array_create,
        "",
        "",
        "An array of scalars: numbers are 0, truth values false, task ids none.",
        off_core=True,
    )
    yield OpSpec(
        "array.read",
        (array, scalar),
        (),
        scheduling_rules.array_read,
        "",
        "",
        "One element of an array.",
        off_core=True,
    )
    yield OpSpec(
        "array.write",
        (array, scalar, scalar),
        (),
        scheduling_rules.array_write,
        "",
        "",
        "An element of the array takes the last operand's value; there is no result.",
        off_core=True,
    )
    yield OpSpec(
        "task.none",
        (),
        (),
        scheduling_rules.task_none,
        "",
        "",
        "The id of no task.",
        off_core=True,
    )
    for name, doc in (
        ("block_idx", "Which block of its task this is, from 0."),
        ("block_num", "How many blocks its task has."),
    ):
        yield OpSpec(
            f"tile.get_{name}",
            (),
            (),
            scheduling_rules.block,
            "",
            "",
            doc,
            place=name,
            public=f"tile.get_{name}",
        )
