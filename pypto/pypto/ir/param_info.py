"""The parameters of a compiled program, as metadata that outlives its representation.

A leaf: both the artifact and what writes it read this, and it imports nothing above `pypto.ir`.
"""

from __future__ import annotations

from dataclasses import dataclass

from pypto.ir.dtypes import DataType
from pypto.ir.nodes import Direction, Function, TensorType

DYNAMIC = -1


@dataclass(frozen=True, slots=True)
class ParamInfo:
    """One parameter of an orchestration function.

    ``shape`` is ``None`` for a scalar; an extent that is known only at run time is -1 there, and
    ``symbols`` names it: two equal names in one program are one extent. ``symbols`` has the length
    of ``shape`` and ``None`` where the extent is fixed or has no name.
    """

    name: str
    direction: Direction
    shape: tuple[int, ...] | None
    dtype: DataType
    symbols: tuple[str | None, ...] = ()

    def __post_init__(self) -> None:
        rank = 0 if self.shape is None else len(self.shape)
        if not self.symbols and rank:
            object.__setattr__(self, "symbols", (None,) * rank)
        if len(self.symbols) != rank:
            raise ValueError(
                f"parameter {self.name!r}: {len(self.symbols)} symbols for {rank} dims"
            )
        for extent, symbol in zip(self.shape or (), self.symbols, strict=True):
            if extent < 0 and extent != DYNAMIC:
                raise ValueError(f"parameter {self.name!r}: extent {extent} is negative")
            if symbol is not None and extent != DYNAMIC:
                raise ValueError(f"parameter {self.name!r}: {symbol!r} names a fixed extent")
        if self.shape is None and self.direction is not Direction.In:
            raise ValueError(f"parameter {self.name!r}: a scalar can only be read")

    @property
    def is_tensor(self) -> bool:
        """Whether it is a tensor rather than a scalar."""
        return self.shape is not None


def params_of(function: Function) -> tuple[ParamInfo, ...]:
    """The parameters of an orchestration function in order."""
    result = []
    for param in function.params:
        kind = param.var.type
        if isinstance(kind, TensorType):
            shape = tuple(dim if isinstance(dim, int) else DYNAMIC for dim in kind.shape)
            symbols = tuple(None if isinstance(dim, int) else dim.symbol for dim in kind.shape)
        else:
            shape, symbols = None, ()
        result.append(ParamInfo(param.name_hint, param.direction, shape, kind.dtype, symbols))
    return tuple(result)
