"""One loaded program on one chip: the path of every run.

The first call with certain extents checks its arguments one by one and keeps what the chip needs
to know of them. Later calls only compare what can differ and pass addresses. The loop that does
so is spelled out: each step saved there is a good part of what a call costs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from pypto.runtime.arguments import BoundArguments, Signature
from pypto.runtime.errors import KernelFault, SourceMap, locate
from pypto.runtime.scalars import encode_scalar

if TYPE_CHECKING:
    from pypto._native import BoundCall, Chip, Program

# More extents than this are bound afresh each time, so that a program with many run-time extents
# does not keep all it ever saw.
_MAX_CALLS = 256

# A bound call, with the extents and the element type that each tensor must have for it.
_Recent = tuple["BoundCall", tuple[tuple[Any, Any], ...]]


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
        self._count = len(signature.params)
        self._tensor_indices = signature.tensor_indices
        self._scalars = tuple(
            (
                index,
                signature.params[index].dtype,
                f"{signature.name}: argument {signature.params[index].name!r} (position {index})",
            )
            for index in signature.scalar_indices
        )
        self._calls: dict[tuple[tuple[int, ...], ...], BoundCall] = {}
        # Threads replace it whole; each call works with the one it read.
        self._recent: _Recent | None = None

    def __call__(self, args: tuple[Any, ...]) -> None:
        """Run with the arguments of an in-place call.

        Raises TypeError or ValueError as `Signature.bind` does, and KernelFault.
        """
        recent = self._recent
        if recent is None or len(args) != self._count:
            self._checked(args)
            return
        call, checks = recent
        tensors = self._tensors(args)
        try:
            for tensor, (shape, dtype) in zip(tensors, checks, strict=True):
                if tensor.shape != shape or tensor.dtype is not dtype:
                    self._checked(args)
                    return
        except (AttributeError, RuntimeError):
            # The chip's own tensors, or no tensors at all.
            self._checked(args)
            return
        self._run(call, tensors, args)

    def _tensors(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple([args[index] for index in self._tensor_indices]) if self._scalars else args

    def _run(self, call: BoundCall, tensors: tuple[Any, ...], args: tuple[Any, ...]) -> None:
        """Run with tensors whose extents and element types are those of `call`."""
        try:
            if not call.run_tensors(
                tensors,
                *[encode_scalar(dtype, args[index], what) for index, dtype, what in self._scalars],
            ):
                self._checked(args)
        except (RuntimeError, ValueError) as error:
            self._failed(error, args)

    def like(self, args: tuple[Any, ...]) -> Callable[[tuple[Any, ...]], None]:
        """A shorter way for torch tensors of exactly the extents and element types of ``args``.

        Its caller answers for those; everything else is checked as ever. Raises as a call does.
        """
        call = self._call_for(self._signature.bind(args))
        if self._scalars:
            return lambda args: self._run(call, self._tensors(args), args)
        run_tensors = call.run_tensors

        def run(args: tuple[Any, ...]) -> None:
            try:
                if not run_tensors(args):
                    self._checked(args)
            except (RuntimeError, ValueError) as error:
                self._failed(error, args)

        return run

    def _call_for(self, bound: BoundArguments) -> BoundCall:
        shapes = tuple(tensor.shape for tensor in bound.tensors)
        call = self._calls.get(shapes)
        if call is None:
            call = self._program.bind(
                self._chip,
                [(tensor.nbytes, tensor.shape, tensor.dtype_code) for tensor in bound.tensors],
            )
            if len(self._calls) < _MAX_CALLS:
                self._calls[shapes] = call
        return call

    def _checked(self, args: tuple[Any, ...]) -> None:
        bound = self._signature.bind(args)
        call = self._call_for(bound)
        tensors = [args[index] for index in self._tensor_indices]
        if all(hasattr(tensor, "is_contiguous") for tensor in tensors):
            checks = tuple((tensor.shape, tensor.dtype) for tensor in tensors)
            self._recent = (call, checks)
        try:
            call(*(tensor.address for tensor in bound.tensors), *bound.scalars)
        except (RuntimeError, ValueError) as error:
            self._failed(error, args)

    def _failed(self, error: Exception, args: tuple[Any, ...]) -> NoReturn:
        from pypto._native import KernelFault as NativeFault

        if isinstance(error, ValueError):
            # A tensor has no memory. The chip refuses before anything runs; here it gets a name.
            self._signature.bind(args)
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


class RecordingDispatcher(Dispatcher):
    """A dispatcher whose runs are recorded; ``record`` is given what each did.

    Its calls take the long way, because what is recorded costs more.
    """

    def __init__(
        self,
        signature: Signature,
        program: Program,
        chip: Chip,
        *,
        kernel_names: Sequence[str],
        sources: SourceMap,
        record: Callable[[Mapping[str, Any]], None],
        contents: bool,
    ) -> None:
        super().__init__(signature, program, chip, kernel_names=kernel_names, sources=sources)
        self._record = record
        self._contents = contents

    def __call__(self, args: tuple[Any, ...]) -> None:
        """Run with the arguments of an in-place call, and record it."""
        bound = self._signature.bind(args)
        tensors = [(t.address, t.nbytes, t.shape, t.dtype_code) for t in bound.tensors]
        try:
            record = self._program.run_recorded(
                self._chip, tensors, bound.scalars, contents=self._contents
            )
        except (RuntimeError, ValueError) as error:
            self._failed(error, args)
        self._record(record)

    def like(self, args: tuple[Any, ...]) -> Callable[[tuple[Any, ...]], None]:
        """Itself: there is no shorter way."""
        self._signature.bind(args)
        return self
