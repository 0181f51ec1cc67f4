"""Schedules, task ids and arrays of scalars as C++ of the orchestration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pypto.codegen.cpp_scalars import cpp_type
from pypto.ir.nodes import ArrayType, Const, Op, Operand, Schedule, Var
from pypto.ir.typing_rules import type_of

Text = Callable[[Operand], str]


def schedule_lines(
    schedule: Schedule, params: str, tensors: Sequence[Operand], value: Text
) -> Iterator[str]:
    """What a task's arguments `params`, whose tensors are these, are told of its schedule."""
    if schedule.blocks is not None:
        yield f"{params}.set_blocks({value(schedule.blocks)});"
    for position, tensor in enumerate(tensors):
        if tensor in schedule.dumps:
            yield f"{params}.add_dump({position});"
    if not schedule.deps:
        return
    sizes = [type_.size if isinstance(type_ := type_of(d), ArrayType) else 1 for d in schedule.deps]
    if len(schedule.deps) == 1 and isinstance(type_of(schedule.deps[0]), ArrayType):
        yield f"{params}.set_dependencies({value(schedule.deps[0])}, {sizes[0]});"
        return
    name, at = f"{params}_deps", 0
    yield f"TaskId {name}[{sum(sizes)}];"
    for dependency, size in zip(schedule.deps, sizes, strict=True):
        given = value(dependency)
        if isinstance(type_of(dependency), ArrayType):
            yield f"for (int i = 0; i < {size}; ++i) {name}[{at} + i] = {given}[i];"
        else:
            yield f"{name}[{at}] = {given};"
        at += size
    yield f"{params}.set_dependencies({name}, {at});"


def created_array(op: Op, name: str) -> str:
    """The declaration of an array."""
    assert op.result is not None and isinstance(op.result.type, ArrayType)
    type_ = op.result.type
    return f"{cpp_type(type_.dtype)} {name}[{type_.size}] = {{}};"


def element(array: Operand, index: Operand, value: Text) -> str:
    """An element of an array; an index that is not known yet is held against its size."""
    assert isinstance(array, Var) and isinstance(array.type, ArrayType)
    if isinstance(index, Const):
        return f"{value(array)}[{index.value}]"
    return f"element({value(array)}, {value(index)})"


def may_miss(op: Op) -> bool:
    """Whether an element that is read or written may turn out not to exist."""
    return not isinstance(op.operands[1], Const)
