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

from pypto.ir.nodes import AttrValue, Op, Operand, Var
from pypto.ir.passes.tiling.roles import (
    REDUCTIONS,
    Extents,
    Role,
    domain_of,
    joined,
    matrix_of,
    role_of,
    tensors_of,
)

# The whole of a tensor of those extents; None is any other part of it.
Place = Extents | None


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


@dataclass(slots=True)
class _Forming:
    """A group that still grows."""

    root_of: Callable[[Var], Var]
    ops: list[Op] = field(default_factory=list)
    domain: Extents = (1, 1)
    axis: int | None = None
    values: set[Var] = field(default_factory=set)
    slices: set[Var] = field(default_factory=set)
    aliases: set[Var] = field(default_factory=set)
    reads: dict[Var, set[Place]] = field(default_factory=dict)
    writes: dict[Var, Place] = field(default_factory=dict)
    sums: list[Extents] = field(default_factory=list)  # what is added to memory, not just written

    def try_join(self, op: Op) -> bool:
        """Take an operation in, if one nest can hold it too."""
        role = role_of(op)
        domain = joined(self.domain, domain_of(op))
        axis = REDUCTIONS[op.op][0] if op.op in REDUCTIONS else self.axis
        if domain is None or (self.axis is not None and axis != self.axis):
            return False
        reads, writes = self._accesses(op, role)
        if reads is None:
            return False
        if any(self.root_of(var) in self.writes for var, _ in reads):
            return False
        for var, place in writes:
            root = self.root_of(var)
            read = {p for v, p in reads if self.root_of(v) is root} | self.reads.get(root, set())
            if root in self.writes or (read and (place is None or read != {place})):
                return False
        sums = [*self.sums, *([domain_of(op)] if "atomic" in op.attrs else [])]
        outer = 0 if axis is None else 1 - axis
        if any(extents[outer] != domain[outer] for extents in sums):
            return False  # each turn of the outer loop would add it once more
        if not self._once(domain, outer, reads, writes):
            return False
        self.sums = sums
        self._take(op, role, domain, axis, reads, writes)
        return True

    def _accesses(
        self, op: Op, role: Role
    ) -> tuple[list[tuple[Var, Place]] | None, list[tuple[Var, Place]]]:
        """What an operation reads and writes in memory; no reads where blocks are not enough."""
        operands = list(tensors_of(op))
        writes: list[tuple[Var, Place]] = []
        if role is Role.WRITE:
            target = operands.pop(0)
            if target in self.values or target in self.slices:
                return None, []
            writes.append((target, matrix_of(target) if op.op == "tensor.assign" else None))
        reads: list[tuple[Var, Place]] = []
        # What a block of these reads is not at the block's own place.
        elsewhere = {Role.PRODUCT: operands[-2:], Role.TRANSPOSE: operands}.get(role, [])
        for var in operands:
            if var in self.values or var in self.aliases:
                if role is Role.READ or var in elsewhere:
                    return None, []
            elif var not in self.slices:
                partly = role is Role.READ or var in elsewhere
                reads.append((var, None if partly else matrix_of(var)))
            elif role is Role.READ:
                return None, []
        return reads, writes

    def _once(
        self,
        domain: Extents,
        outer: int,
        reads: Sequence[tuple[Var, Place]],
        writes: Sequence[tuple[Var, Place]],
    ) -> bool:
        """Whether no block is written, and read before that, by two turns of the outer loop."""
        own = {self.root_of(var) for var, _ in reads}
        places = {**self.writes, **{self.root_of(var): place for var, place in writes}}
        return all(
            place is None or place[outer] == domain[outer]
            for root, place in places.items()
            if root in self.reads or root in own
        )

    def _take(
        self,
        op: Op,
        role: Role,
        domain: Extents,
        axis: int | None,
        reads: Sequence[tuple[Var, Place]],
        writes: Sequence[tuple[Var, Place]],
    ) -> None:
        self.ops.append(op)
        self.domain, self.axis = domain, axis
        for var, place in reads:
            self.reads.setdefault(self.root_of(var), set()).add(place)
        for var, place in writes:
            self.writes[self.root_of(var)] = place
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
        in_place = bool(self.reads.keys() & self.writes.keys())
        return Group(tuple(self.ops), self.domain, axis, in_place)


def form_groups(ops: Sequence[Op], root_of: Callable[[Var], Var]) -> list[Group]:
    """The groups of a straight run of tensor-level operations, in order.

    ``root_of`` gives the memory that a variable names.
    """
    groups: list[Group] = []
    forming = _Forming(root_of)
    for op in ops:
        alone = role_of(op) is Role.WHOLE
        if not alone and forming.try_join(op):
            continue
        if forming.ops:
            groups.append(forming.formed())
        forming = _Forming(root_of)
        if alone or not forming.try_join(op):
            groups.append(Group((op,), (1, 1), 1, in_place=False, whole=True))
    if forming.ops:
        groups.append(forming.formed())
    return groups
