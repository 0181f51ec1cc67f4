"""Descriptions of arguments, and arguments made from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pypto.ir.dtypes import DataType
from pypto.ir.nodes import Direction
from pypto.ir.param_info import DYNAMIC, ParamInfo

if TYPE_CHECKING:
    import torch

# What an extent that is known only at run time is taken to be where nobody says.
SAMPLE_EXTENT = 128


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor argument: ``name``, extents, element type.

    ``init_value`` is what it starts with: a tensor of the same shape, a function that makes one, a
    number for every element, or ``None`` for random elements (zeros for an output).
    """

    name: str
    shape: tuple[int, ...]
    dtype: DataType
    init_value: torch.Tensor | Callable[[], torch.Tensor] | float | None = None
    is_output: bool = False

    def create_tensor(self, generator: torch.Generator | None = None) -> torch.Tensor:
        """A new tensor; random elements come from ``generator``, or torch's global one."""
        import torch

        kind = getattr(torch, self.dtype.torch_name)
        init = self.init_value() if callable(self.init_value) else self.init_value
        if isinstance(init, torch.Tensor):
            if tuple(init.shape) != self.shape:
                raise ValueError(
                    f"{self.name}: init_value must have shape {list(self.shape)}, got "
                    f"{list(init.shape)}"
                )
            return init.to(kind).clone()
        if init is not None:
            return torch.full(self.shape, init, dtype=kind)
        if self.is_output:
            return torch.zeros(self.shape, dtype=kind)
        if self.dtype.is_float:
            return torch.randn(self.shape, generator=generator).to(kind)
        low, high = (0, 2) if self.dtype.name == "bool" else (-8, 8)
        if self.dtype.is_unsigned:
            low = 0
        return torch.randint(low, high, self.shape, generator=generator).to(kind)


@dataclass(frozen=True, slots=True)
class ScalarSpec:
    """A scalar argument and its value."""

    name: str
    dtype: DataType
    value: bool | int | float


def specs_of(
    params: Sequence[ParamInfo], extents: Mapping[str, int] | None = None
) -> tuple[TensorSpec | ScalarSpec, ...]:
    """Arguments that fit a program's parameters.

    ``extents`` gives run-time extents by their symbol; SAMPLE_EXTENT is taken for others.
    """
    known = {} if extents is None else extents
    found: list[TensorSpec | ScalarSpec] = []
    for param in params:
        if param.shape is None:
            one = True if param.dtype.name == "bool" else 1.0 if param.dtype.is_float else 1
            found.append(ScalarSpec(param.name, param.dtype, one))
            continue
        shape = tuple(
            extent if extent != DYNAMIC else known.get(symbol or "", SAMPLE_EXTENT)
            for extent, symbol in zip(param.shape, param.symbols, strict=True)
        )
        output = param.direction is Direction.Out
        found.append(TensorSpec(param.name, shape, param.dtype, is_output=output))
    return tuple(found)


def arguments_of(
    specs: Sequence[TensorSpec | ScalarSpec], generator: torch.Generator | None = None
) -> list[Any]:
    """The arguments that specifications describe, in their order.

    Random elements come from ``generator``, or torch's global one.
    """
    return [s.value if isinstance(s, ScalarSpec) else s.create_tensor(generator) for s in specs]
