"""One loaded program on one chip: the path of every run.

The first call with certain extents checks its arguments one by one and keeps what the chip needs
to know of them. Later calls with the same extents only compare what can differ, in as few steps
of the interpreter as it takes, and pass addresses.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pypto.runtime.arguments import Signature
from pypto.runtime.errors import KernelFault, SourceMap, locate
from pypto.runtime.scalars import encode_scalar

if TYPE_CHECKING:
    from pypto._native import Chip, Program

_shape = operator.attrgetter("shape")
_dtype = operator.attrgetter("dtype")
_is_cpu = operator.attrgetter("is_cpu")
_is_contiguous = operator.methodcaller("is_contiguous")
_address = operator.methodcaller("data_ptr")

# More shapes than this are bound afresh each time, so that a program with many run-time extents
# does not keep every one it ever saw.
_MAX_TEMPLATES = 256


class Dispatcher:
    """Calls ``program`` on ``chip`` in place; calling it returns when the run has ended.

    ``kernel_names`` are the kernels by number and ``sources`` maps units to the user's files;
    both serve the message of a fault.
    """

    def __init__(
        self,
        signature: Signature,
        program: Program,
        chip: Chip,
        *,
        kernel_names: Sequence[str],
        sources: SourceMap,
    ) -> None:
        self._signature = signature
        self._program = program
        self._chip = chip
        self._kernel_names = kernel_names
        self._sources = sources
        self._templates: dict[tuple[Any, ...], Callable[..., None]] = {}
        self._count = len(signature.params)
        self._scalars = tuple(
            (
                index,
                signature.params[index].dtype,
                f"{signature.name}: argument {signature.params[index].name!r} (position {index})",
            )
            for index in signature.scalar_indices
        )
        self._tensor_indices = signature.tensor_indices
        # torch's element types of the tensors; known once torch is.
        self._dtypes: list[Any] | None = None

    def __call__(self, args: tuple[Any, ...]) -> None:
        """Run with the arguments of an in-place call.

        Raises TypeError or ValueError as `Signature.bind` does, and KernelFault.
        """
        tensors = [args[index] for index in self._tensor_indices] if self._scalars else args
        try:
            call = self._templates[tuple(map(_shape, tensors))]
            known = (
                len(args) == self._count
                and list(map(_dtype, tensors)) == self._dtypes
                and all(map(_is_cpu, tensors))
                and all(map(_is_contiguous, tensors))
            )
        except (KeyError, AttributeError, TypeError, IndexError):
            known = False
        if not known:
            self._first(args)
            return
        try:
            if self._scalars:
                call(
                    *map(_address, tensors),
                    *[
                        encode_scalar(dtype, args[index], what)
                        for index, dtype, what in self._scalars
                    ],
                )
            else:
                call(*map(_address, tensors))
        except RuntimeError as error:
            self._raise_fault(error)

    def _first(self, args: tuple[Any, ...]) -> None:
        bound = self._signature.bind(args)
        call = self._program.bind(
            self._chip,
            [(tensor.nbytes, tensor.shape, tensor.dtype_code) for tensor in bound.tensors],
        )
        tensors = [args[index] for index in self._tensor_indices]
        if len(self._templates) < _MAX_TEMPLATES and all(
            hasattr(tensor, "is_contiguous") for tensor in tensors
        ):
            self._dtypes = [tensor.dtype for tensor in tensors]
            self._templates[tuple(map(_shape, tensors))] = call
        try:
            call(*(tensor.address for tensor in bound.tensors), *bound.scalars)
        except RuntimeError as error:
            self._raise_fault(error)

    def _raise_fault(self, error: RuntimeError) -> None:
        from pypto._native import KernelFault as NativeFault

        if not isinstance(error, NativeFault):
            raise error
        number = error.kernel
        known = 0 <= number < len(self._kernel_names)
        raise KernelFault(
            error.message,
            op=error.op,
            kernel=self._kernel_names[number] if known else "",
            unit=error.unit,
            line=error.line,
            column=error.column,
            pto_line=error.pto_line,
            location=locate(self._sources, error.unit, error.line, error.column),
        ) from None
