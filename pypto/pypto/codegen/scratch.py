"""Tensors that an orchestration creates and of which every core gets a copy.

The blocks of one task run at the same time and cannot wait for each other. Where they share a
tensor that goes to no other task, all that a block can count on there is what it has written
itself: whatever else it finds was written by a block that may run before, after or beside it.
Such a tensor is scratch memory, and blocks that shared it would overwrite what others still
need. Most are made for a product of what a vector operation computed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from pypto.ir.nodes import Call, Const, Function, Op, Program, Stmt, Var
from pypto.ir.passes.aliases import written_positions
from pypto.ir.passes.rewrite import blocks, reads, walk


def scratch_tensors(program: Program, function: Function) -> frozenset[Var]:
    """The tensors that an orchestration creates for one task in blocks alone.

    Each is created without a first value, in the body that holds the call, so that every time the
    call runs it has a new one. What kernels in C++ do with theirs is not known.
    """
    read = Counter(reads(function.body))
    bodies: list[Sequence[Stmt]] = [function.body]
    bodies += [block.body for stmt in walk(function.body) for block in blocks(stmt)]
    return frozenset(var for body in bodies for var in _of_body(program, body, read))


def _of_body(program: Program, body: Sequence[Stmt], read: Counter[Var]) -> Iterator[Var]:
    created = {
        stmt.result
        for stmt in body
        if isinstance(stmt, Op) and stmt.op == "tensor.create" and "init_value" not in stmt.attrs
    }
    for stmt in body:
        if not isinstance(stmt, Call) or not _runs_in_blocks(stmt):
            continue
        callee = program.functions[stmt.callee]
        if callee.external is not None:
            continue
        results = dict(zip(written_positions(callee), stmt.results, strict=True))
        for position, operand in enumerate(stmt.operands):
            after = results.get(position)
            if operand in created and read[operand] == 1 and (after is None or not read[after]):
                assert isinstance(operand, Var)
                yield operand


def _runs_in_blocks(call: Call) -> bool:
    count = call.schedule.blocks
    return count is not None and not (isinstance(count, Const) and count.value <= 1)
