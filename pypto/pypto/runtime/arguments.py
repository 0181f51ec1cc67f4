"""Checking the arguments of a call and turning them into what the chip is given.

Two ways lead through here. `Signature.bind` checks everything and says precisely what is wrong.
`dispatch.py` skips it for arguments of shapes that have been bound before.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pypto.ir.nodes import Direction
from pypto.ir.param_info import DYNAMIC, ParamInfo
from pypto.runtime.device_tensor import DeviceTensor
from pypto.runtime.scalars import encode_scalar

if TYPE_CHECKING:
    import torch

_MAX_EXTENT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class TensorArgument:
    """A checked tensor: device address, bytes, extents, element type by its ABI code."""

    address: int
    nbytes: int
    shape: tuple[int, ...]
    dtype_code: int


@dataclass(frozen=True, slots=True)
class BoundArguments:
    """Tensors and scalars, each in the order of their parameters."""

    tensors: tuple[TensorArgument, ...]
    scalars: tuple[int, ...]


class Signature:
    """The parameters of a program called ``name`` and the rules for its arguments.

    A call passes all parameters (in place) or, where the function returns values, all but the
    pure outputs, which are then made and returned.
    """

    def __init__(self, name: str, params: Sequence[ParamInfo], num_return_types: int) -> None:
        self.name = name
        self.params = tuple(params)
        self.output_indices = tuple(
            index
            for index, param in enumerate(self.params)
            if param.is_tensor and param.direction is Direction.Out
        )
        self.has_return = num_return_types > 0
        self.tensor_indices = tuple(i for i, p in enumerate(self.params) if p.is_tensor)
        self.scalar_indices = tuple(i for i, p in enumerate(self.params) if not p.is_tensor)

    def returns_for(self, count: int) -> bool:
        """Whether a call with ``count`` arguments is one that returns its outputs.

        TypeError if no call has that many.
        """
        if count == len(self.params):
            return False
        if self.has_return and count == len(self.params) - len(self.output_indices):
            return True
        expected = f"{len(self.params)} (in-place)"
        if self.has_return and self.output_indices:
            expected += f" or {len(self.params) - len(self.output_indices)} (return)"
        raise TypeError(
            f"{self.name} expects {expected} arguments, got {count}. "
            f"Parameters: [{', '.join(param.name for param in self.params)}]"
        )

    def with_outputs(self, args: Sequence[object]) -> tuple[tuple[object, ...], list[Any]]:
        """The arguments of an in-place call that makes the outputs of ``args``, and those outputs.

        ValueError where the extents of an output are known only at run time.
        """
        import torch

        given = iter(args)
        full: list[object] = []
        outputs = []
        for index, param in enumerate(self.params):
            if index not in self.output_indices:
                full.append(next(given))
                continue
            if param.shape is None or DYNAMIC in param.shape:
                raise ValueError(
                    f"{self.name}: output {param.name!r} has an extent that is known only at run "
                    f"time; pass it in place, as one of {len(self.params)} arguments"
                )
            output = torch.zeros(param.shape, dtype=getattr(torch, param.dtype.torch_name))
            outputs.append(output)
            full.append(output)
        return tuple(full), outputs

    def bind(self, args: Sequence[object]) -> BoundArguments:
        """Check the arguments of an in-place call.

        TypeError for a wrong count, kind or element type; ValueError for a shape, layout, device
        or value that the parameter cannot have. Both name the argument.
        """
        if len(args) != len(self.params):
            self.returns_for(len(args))
        torch = sys.modules.get("torch")
        tensors: list[TensorArgument] = []
        scalars: list[int] = []
        extents: dict[str, tuple[int, str]] = {}
        for index, (param, value) in enumerate(zip(self.params, args, strict=True)):
            what = f"{self.name}: argument {param.name!r} (position {index})"
            is_torch = torch is not None and isinstance(value, torch.Tensor)
            is_tensor = is_torch or isinstance(value, DeviceTensor)
            if param.shape is None:
                if is_tensor:
                    raise TypeError(f"{what} must be a scalar of {param.dtype}, got a tensor")
                scalars.append(encode_scalar(param.dtype, value, what))
                continue
            if not is_tensor:
                hint = "; use torch.from_numpy" if type(value).__name__ == "ndarray" else ""
                raise TypeError(f"{what} must be a torch.Tensor, got {type(value).__name__}{hint}")
            tensor = (
                _torch_tensor(what, param, value)
                if is_torch
                else _device_tensor(what, param, value)
            )
            _check_shape(what, param, tensor.shape, extents)
            tensors.append(tensor)
        return BoundArguments(tuple(tensors), tuple(scalars))


def _torch_tensor(what: str, param: ParamInfo, value: Any) -> TensorArgument:
    tensor: torch.Tensor = value
    expected = f"torch.{param.dtype.torch_name}"
    if str(tensor.dtype) != expected:
        raise TypeError(
            f"{what} must have dtype {expected}, got {tensor.dtype}; convert it with "
            f".to({expected})"
        )
    if tensor.device.type != "cpu":
        raise ValueError(
            f"{what} must be on the cpu for the simulated chip, got device {tensor.device}"
        )
    if str(tensor.layout) != "torch.strided":
        raise ValueError(f"{what} must be dense, got layout {tensor.layout}; pass .to_dense()")
    if not tensor.is_contiguous():
        raise ValueError(f"{what} must be contiguous; pass its .contiguous() copy")
    if tensor.is_neg():
        raise ValueError(
            f"{what} is a view that torch negates when it reads it; pass its .resolve_neg() copy"
        )
    nbytes = tensor.numel() * tensor.element_size()
    return TensorArgument(
        _address(what, tensor, nbytes), nbytes, tuple(tensor.shape), param.dtype.abi_code
    )


def _address(what: str, tensor: torch.Tensor, nbytes: int) -> int:
    """Where the elements are. Fake, traced and freed tensors are on the cpu and nowhere."""
    try:
        owned = tensor.untyped_storage().nbytes()
        begin = tensor.storage_offset() * tensor.element_size()
        address = tensor.data_ptr() if owned >= begin + nbytes else 0
    except (NotImplementedError, RuntimeError):
        address = 0
    if address == 0 and nbytes > 0:
        raise ValueError(
            f"{what} has no memory for its {nbytes} bytes: it is a {type(tensor).__name__} that "
            "only stands for a tensor, or its storage was freed"
        )
    return address


def _device_tensor(what: str, param: ParamInfo, value: Any) -> TensorArgument:
    tensor: DeviceTensor = value
    if tensor.dtype.torch_name != param.dtype.torch_name:
        raise TypeError(f"{what} must have dtype {param.dtype}, got {tensor.dtype}")
    return TensorArgument(tensor.data_ptr, tensor.nbytes, tensor.shape, param.dtype.abi_code)


def _check_shape(
    what: str, param: ParamInfo, shape: tuple[int, ...], extents: dict[str, tuple[int, str]]
) -> None:
    expected = param.shape or ()
    fits = len(shape) == len(expected) and all(
        want in (DYNAMIC, have) for want, have in zip(expected, shape, strict=True)
    )
    if not fits:
        wanted = ", ".join(
            (symbol or "?") if extent == DYNAMIC else str(extent)
            for extent, symbol in zip(expected, param.symbols, strict=True)
        )
        raise ValueError(f"{what} must have shape [{wanted}], got {list(shape)}")
    for symbol, have in zip(param.symbols, shape, strict=True):
        if symbol is None:
            continue
        first, owner = extents.setdefault(symbol, (have, param.name))
        if first != have:
            raise ValueError(
                f"{what} has extent {have} where {owner!r} has {first}, but both are {symbol!r}"
            )
    for extent in shape:
        if extent > _MAX_EXTENT:
            raise ValueError(f"{what} has extent {extent}; a chip's tensors end at {_MAX_EXTENT}")
