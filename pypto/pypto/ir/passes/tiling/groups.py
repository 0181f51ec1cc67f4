"""Which operations share a nest of loops.

Operations join in program order as long as one loop can hold them all: their extents broadcast to
one domain, all reductions run along one axis, and no operation needs of another more than what
the same block holds. What a group reads and writes under one root has to be the same place in
every block, since blocks run one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from pypto.ir.nodes import AttrValue, Op, Operand, Var
from pypto.ir.op_spec import Role
from pypto.ir.passes.tiling.roles import (
    Extents,
    domain_of,
    joined,
    matrix_of,
    reduction_of,
    role_of,
    tensors_of,
)


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """A store: ``target`` takes ``value`` at ``offsets`` and is called ``result`` afterwards.

    ``position`` is that of the operation of the group after which it stands, ``attrs`` are those
    that the stores have.
    """

    position: int
    value: Var
    target: Var
    offsets: tuple[Operand, ...]
    result: Var
    attrs: Mapping[str, AttrValue] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Group:
    """Operations of one nest. Blocks advance along ``axis`` inside, along the other outside.

    ``in_place`` says that some memory is both read and written, ``whole`` that this is a single
    operation of which no blocks can be made.
    """

    ops: tuple[Op, ...]
    domain: Extents
    axis: int
    in_place: bool
    whole: bool = False

    @property
    def products(self) -> tuple[Op, ...]:
        """The matrix products."""
        return tuple(op for op in self.ops if role_of(op) is Role.PRODUCT)


@dataclass(frozen=True, slots=True)
class _Access:
    """A use of memory: the tensors that it may be, and the whole that is used, under its name.

    Without a ``whole``, it is another part of the memory in each block than that of the block.
    """

    roots: frozenset[Var]
    whole: tuple[Var, Extents] | None

    def meets(self, other: _Access) -> bool:
        """Whether both may use the same memory."""
        return not self.roots.isdisjoint(other.roots)

    def clashes(self, other: _Access) -> bool:
        """Whether one may use in a block what the other uses in another one."""
        return self.meets(other) and (self.whole is None or self.whole != other.whole)

    def repeats(self, domain: Extents, outer: int) -> bool:
        """Whether turns of the outer loop over a domain use the same part."""
        return self.whole is not None and self.whole[1][outer] != domain[outer]


class Memory(Protocol):
    """What memory the variables of a function name."""

    def tensors(self, var: Var) -> frozenset[Var]:
        """The parameters and created tensors in one of which a variable's memory lies."""

    def name(self, var: Var) -> Var:
        """One variable for all those that name the same whole."""


@dataclass(slots=True)
class _Forming:
    """A group that still grows."""

    memory: Memory
    ops: list[Op] = field(default_factory=list)
    domain: Extents = (1, 1)
    axis: int | None = None
    values: set[Var] = field(default_factory=set)
    slices: set[Var] = field(default_factory=set)
    aliases: set[Var] = field(default_factory=set)
    reads: set[_Access] = field(default_factory=set)
    writes: list[_Access] = field(default_factory=list)
    sums: list[Extents] = field(default_factory=list)  # what is added to memory, not just written

    def try_join(self, op: Op) -> bool:
        """Take an operation in, if one nest can hold it too."""
        role = role_of(op)
        domain = joined(self.domain, domain_of(op))
        reduction = reduction_of(op)
        axis = self.axis if reduction is None else reduction.axis
        if domain is None or (self.axis is not None and axis != self.axis):
            return False
        accesses = self._accesses(op, role)
        if accesses is None:
            return False
        sums = [*self.sums, *([domain_of(op)] if "atomic" in op.attrs else [])]
        if not self._agrees(*accesses, sums, domain, 0 if axis is None else 1 - axis):
            return False
        self._take(op, role, domain, axis, sums, *accesses)
        return True

    def _accesses(self, op: Op, role: Role) -> tuple[list[_Access], list[_Access]] | None:
        """What an operation reads and writes in memory; None where blocks are not enough."""
        operands = list(tensors_of(op))
        writes: list[_Access] = []
        if role is Role.WRITE:
            target = operands.pop(0)
            if target in self.values or target in self.slices:
                return None
            writes.append(self._access(target, partly=op.op != "tensor.assign"))
        reads: list[_Access] = []
        # What a block of these reads is not at the block's own place.
        elsewhere = {Role.PRODUCT: operands[-2:], Role.TRANSPOSE: operands}.get(role, [])
        for var in operands:
            if var in self.values or var in self.aliases:
                if role is Role.READ or var in elsewhere:
                    return None
            elif var not in self.slices:
                reads.append(self._access(var, partly=role is Role.READ or var in elsewhere))
            elif role is Role.READ:
                return None
        return reads, writes

    def _access(self, var: Var, *, partly: bool) -> _Access:
        extents = matrix_of(var)
        whole = None if partly or extents is None else (self.memory.name(var), extents)
        return _Access(self.memory.tensors(var), whole)

    def _agrees(
        self,
        reads: Sequence[_Access],
        writes: Sequence[_Access],
        sums: Sequence[Extents],
        domain: Extents,
        outer: int,
    ) -> bool:
        """Whether blocks may do all of it one after the other, in any order."""
        if any(read.meets(write) for read in reads for write in self.writes):
            return False
        if any(write.meets(other) for write in writes for other in self.writes):
            return False
        read_here = (*self.reads, *reads)
        if any(write.clashes(read) for write in writes for read in read_here):
            return False
        # What turns of the outer loop do again must not add up.
        if any(extents[outer] != domain[outer] for extents in sums):
            return False
        again = [w for w in (*self.writes, *writes) if w.repeats(domain, outer)]
        return not any(write.meets(read) for write in again for read in read_here)

    def _take(
        self,
        op: Op,
        role: Role,
        domain: Extents,
        axis: int | None,
        sums: list[Extents],
        reads: Sequence[_Access],
        writes: Sequence[_Access],
    ) -> None:
        self.ops.append(op)
        self.domain, self.axis, self.sums = domain, axis, sums
        self.reads.update(reads)
        self.writes += writes
        assert op.result is not None
        if role is Role.READ:
            self.slices.add(op.result)
        elif op.op == "tensor.assign":
            self.aliases.add(op.result)
        elif role is not Role.WRITE:
            self.values.add(op.result)

    def formed(self) -> Group:
        """What has joined so far."""
        axis = 1 if self.axis is None else self.axis
        in_place = any(write.meets(read) for write in self.writes for read in self.reads)
        return Group(tuple(self.ops), self.domain, axis, in_place)


def form_groups(ops: Sequence[Op], memory: Memory, apart: Callable[[Op], bool]) -> list[Group]:
    """The groups of a straight run of tensor-level operations, in order.

    No blocks are made of operations that are to stay ``apart``.
    """
    groups: list[Group] = []
    forming = _Forming(memory)
    for op in ops:
        alone = apart(op) or role_of(op) is Role.WHOLE
        if not alone and forming.try_join(op):
            continue
        if forming.ops:
            groups.append(forming.formed())
        forming = _Forming(memory)
        if alone or not forming.try_join(op):
            groups.append(Group((op,), (1, 1), 1, in_place=False, whole=True))
    if forming.ops:
        groups.append(forming.formed())
    return groups
