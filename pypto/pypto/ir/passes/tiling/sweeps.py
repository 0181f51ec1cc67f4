"""What the parts of a group need of each other: which sweep over the inner axis computes what.

The first sweep computes what needs no reduction, the next what needs a result of the first, and so
on. What does not vary along the inner axis is computed before the sweeps that need it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pypto.ir.nodes import Op, Var
from pypto.ir.op_spec import Role
from pypto.ir.passes.tiling.groups import Group, Output
from pypto.ir.passes.tiling.roles import matrix_of, reduction_of, role_of, tensors_of


@dataclass(frozen=True, slots=True)
class Value:
    """What is known of a value that a group computes or slices.

    ``ready`` is the sweep that can read it, ``varying`` whether it changes along the inner axis.
    """

    op: Op
    ready: int
    varying: bool


class Sweeps:
    """The operations of a group, by the sweep that computes them."""

    def __init__(self, group: Group, outputs: Sequence[Output]) -> None:
        self.group = group
        self.outputs = outputs
        self.values: dict[Var, Value] = {}
        self.needed: list[int] = []  # positions of the operations that stores need
        self._aliases: dict[Var, Var] = {}
        self._describe()
        self._last = max((value.ready for value in self.values.values()), default=0)

    def _describe(self) -> None:
        for op in self.group.ops:
            assert op.result is not None
            if op.op == "tensor.assign":
                self._aliases[op.result] = tensors_of(op)[1]
            if role_of(op) is Role.WRITE:
                continue
            sources = [self.ready(v) for v in tensors_of(op) if role_of(op) is not Role.READ]
            ready = max(sources, default=0) + (reduction_of(op) is not None)
            self.values[op.result] = Value(op, ready, self.varies(op.result))
        wanted = {self.origin(o.value) for o in self.outputs}
        for position, op in reversed(list(enumerate(self.group.ops))):
            if op.result in wanted and op.result in self.values:
                self.needed.append(position)
                wanted.update(self.origin(v) for v in tensors_of(op))
        self.needed.reverse()

    def origin(self, var: Var) -> Var:
        """The value that a variable is another name of."""
        while var in self._aliases:
            var = self._aliases[var]
        return var

    def ready(self, var: Var) -> int:
        """The sweep that can read a value; memory is ready from the first on."""
        known = self.values.get(self.origin(var))
        return 0 if known is None else known.ready

    def varies(self, var: Var) -> bool:
        """Whether a value changes along the inner axis."""
        extents = matrix_of(self.origin(var))
        assert extents is not None
        return extents[self.group.axis] != 1

    def is_memory(self, var: Var) -> bool:
        """Whether a value is loaded, not computed."""
        known = self.values.get(self.origin(var))
        return known is None or role_of(known.op) is Role.READ

    def sole_reader(self, var: Var) -> bool:
        """Whether one operation reads a value, and no store."""
        readers = sum(tensors_of(self.group.ops[p]).count(var) for p in self.needed)
        return readers == 1 and all(self.origin(o.value) is not var for o in self.outputs)

    @property
    def levels(self) -> range:
        """The sweeps, some of which may be empty."""
        return range(self._last + 1)

    @property
    def count(self) -> int:
        """How many sweeps run through the inner axis."""
        return sum(any(self.at(level)) for level in self.levels)

    def before(self, level: int) -> tuple[list[int], list[Output]]:
        """What does not vary and is ready with a sweep: operations but reductions, and stores."""
        positions = []
        for position in self.needed:
            op, known = self._known(position)
            if reduction_of(op) is None and not known.varying and known.ready == level:
                positions.append(position)
        return positions, [o for o in self._outputs_at(level) if not self.varies(o.value)]

    def at(self, level: int) -> tuple[list[int], list[Output]]:
        """The reductions and the stores of a sweep."""
        positions = []
        for position in self.needed:
            op, known = self._known(position)
            if reduction_of(op) is not None and known.ready == level + 1:
                positions.append(position)
        return positions, [o for o in self._outputs_at(level) if self.varies(o.value)]

    def computed(self, reductions: Sequence[int], stores: Sequence[Output]) -> list[int]:
        """What a sweep computes: all that varies of what it reduces and stores."""
        wanted = {self.group.ops[position].result for position in reductions}
        wanted |= {self.origin(o.value) for o in stores}
        found = []
        for position in reversed(self.needed):
            op, known = self._known(position)
            if op.result in wanted and (known.varying or position in reductions):
                found.append(position)
                wanted.update(self.origin(v) for v in tensors_of(op))
        return found[::-1]

    def _known(self, position: int) -> tuple[Op, Value]:
        op = self.group.ops[position]
        assert op.result is not None
        return op, self.values[op.result]

    def _outputs_at(self, level: int) -> list[Output]:
        return [o for o in self.outputs if self.ready(o.value) == level]
