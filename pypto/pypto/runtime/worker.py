"""Workers: many runs with tensors that stay on the chip."""

from __future__ import annotations

import abc
import contextvars
import ctypes
import math
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pypto.ir.dtypes import BY_NAME, DataType
from pypto.runtime.chips import open_chip
from pypto.runtime.compiled_program import CompiledProgram
from pypto.runtime.config_argument import run_config
from pypto.runtime.device_tensor import DeviceTensor
from pypto.runtime.run_config import RunConfig

if TYPE_CHECKING:
    from typing import Self

    from pypto.runtime.dispatch import Dispatcher

_ALIGNMENT = 64

_current: contextvars.ContextVar[ChipWorker | None] = contextvars.ContextVar(
    "pypto_current_worker", default=None
)


class Worker(abc.ABC):
    """Runs artifacts repeatedly; a context manager that closes itself."""

    @abc.abstractmethod
    def run(self, compiled: CompiledProgram, *args: Any) -> None:
        """Run ``compiled`` once, in place, with all its arguments."""

    @abc.abstractmethod
    def close(self) -> None:
        """End the worker and give back what it holds; further calls do nothing."""

    @property
    @abc.abstractmethod
    def closed(self) -> bool:
        """Whether it was closed."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class RegistrationHandle:
    """A program on a worker; call it with the program's arguments to run it in place."""

    def __init__(self, worker: ChipWorker, compiled: CompiledProgram, call: Dispatcher) -> None:
        self._worker = worker
        self._call = call
        self.compiled = compiled

    def __call__(self, *args: Any) -> None:
        self._worker._require_open()
        self._call(args)


class ChipWorker(Worker):
    """A chip of its own, for many runs of programs of its platform.

    ``config`` gives the platform and the options of every run. Tensors that it allocates belong to
    it and end with it. It may be used by one thread at a time.

    >>> with ChipWorker(config=config) as worker:
    ...     out = worker.alloc_tensor((128, 64), pl.FP32)
    ...     worker.run(compiled, x, out)
    """

    def __init__(self, config: RunConfig | None = None) -> None:
        self._config = RunConfig() if config is None else run_config(config)
        self._options = self._config.run_options()
        self._chip = open_chip(self._options)
        self._closed = False
        self._registrations: dict[int, RegistrationHandle] = {}
        self._allocations: dict[int, tuple[DeviceTensor, Any]] = {}
        self._tokens: list[contextvars.Token[ChipWorker | None]] = []

    @staticmethod
    def current() -> ChipWorker | None:
        """The worker whose ``with`` block runs, the innermost one; ``None`` outside of any."""
        return _current.get()

    @property
    def platform(self) -> str:
        """The platform token of its chip."""
        return self._options.platform

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    @property
    def aicpu_dlopen_count(self) -> int:
        """How many programs were registered."""
        return len(self._registrations)

    def register(self, compiled: CompiledProgram) -> RegistrationHandle:
        """Load ``compiled`` for this worker; the same program gives the same handle.

        ValueError if it was compiled for another platform.
        """
        self._require_open()
        handle = self._registrations.get(id(compiled))
        if handle is None:
            if compiled.platform != self.platform:
                raise ValueError(
                    f"{compiled!r} is for platform {compiled.platform!r}, this worker for "
                    f"{self.platform!r}; compile it for the worker's platform"
                )
            call = compiled.dispatcher(self._chip, self._options)
            # The handle keeps the program alive, so its id stays its own.
            handle = RegistrationHandle(self, compiled, call)
            self._registrations[id(compiled)] = handle
        return handle

    def run(self, compiled: CompiledProgram, *args: Any) -> None:
        """Run ``compiled`` once, in place, with all its arguments; registers it first."""
        self.register(compiled)(*args)

    def alloc_tensor(
        self, shape: Sequence[int], dtype: DataType | Any, init: Any = None
    ) -> DeviceTensor:
        """A tensor on the chip, of a pypto or torch element type.

        Its contents are those of ``init``, a contiguous torch tensor of that shape and type, or
        zeros.
        """
        self._require_open()
        extents = tuple(int(extent) for extent in shape)
        if not extents or any(extent < 0 for extent in extents):
            raise ValueError(f"shape must be extents that are not negative, got {list(shape)}")
        element = dtype if isinstance(dtype, DataType) else _element_type(dtype)
        nbytes = math.prod(extents) * element.get_byte()
        if init is not None:
            _check_init(init, extents, element)
        memory = (ctypes.c_ubyte * (nbytes + _ALIGNMENT))()
        base = ctypes.addressof(memory)
        tensor = DeviceTensor(base + -base % _ALIGNMENT, extents, element)
        self._allocations[tensor.data_ptr] = (tensor, memory)
        if init is not None:
            self.copy_to(init.data_ptr(), tensor.data_ptr, nbytes)
        return tensor

    def free_tensor(self, tensor: DeviceTensor) -> None:
        """Give a tensor's memory back; ValueError if it is not this worker's."""
        self._require_open()
        owned = self._allocations.get(tensor.data_ptr)
        if owned is None or owned[0] is not tensor:
            raise ValueError("the tensor was not allocated by this worker, or was freed before")
        del self._allocations[tensor.data_ptr]

    def copy_to(self, host_ptr: int, dev_ptr: int, nbytes: int) -> None:
        """Copy ``nbytes`` from host memory into a tensor of this worker."""
        self._check_range(dev_ptr, nbytes)
        ctypes.memmove(dev_ptr, host_ptr, nbytes)

    def copy_from(self, host_ptr: int, dev_ptr: int, nbytes: int) -> None:
        """Copy ``nbytes`` from a tensor of this worker into host memory."""
        self._check_range(dev_ptr, nbytes)
        ctypes.memmove(host_ptr, dev_ptr, nbytes)

    def close(self) -> None:
        """End the worker: its tensors, registrations and chip."""
        if self._closed:
            return
        self._closed = True
        self._registrations.clear()
        self._allocations.clear()
        self._chip.close()

    def __enter__(self) -> Self:
        self._require_open()
        self._tokens.append(_current.set(self))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _current.reset(self._tokens.pop())
        self.close()

    def _require_open(self) -> None:
        if self._closed:
            raise RuntimeError("the ChipWorker is closed; make a new one")

    def _check_range(self, address: int, nbytes: int) -> None:
        self._require_open()
        if nbytes < 0:
            raise ValueError(f"nbytes must not be negative, got {nbytes}")
        for tensor, _ in self._allocations.values():
            if tensor.data_ptr <= address <= tensor.data_ptr + tensor.nbytes - nbytes:
                return
        raise ValueError(f"{nbytes} bytes from {address:#x} are not inside a tensor of this worker")


def _element_type(dtype: object) -> DataType:
    name = str(dtype).removeprefix("torch.")
    for element in BY_NAME.values():
        if element.torch_name == name and element.name != "index":
            return element
    raise TypeError(f"Unsupported torch dtype: {dtype!r}")


def _check_init(init: Any, shape: tuple[int, ...], dtype: DataType) -> None:
    if tuple(init.shape) != shape:
        raise ValueError(f"init must have shape {list(shape)}, got {list(init.shape)}")
    if str(init.dtype) != f"torch.{dtype.torch_name}":
        raise TypeError(f"init must have dtype torch.{dtype.torch_name}, got {init.dtype}")
    if init.device.type != "cpu" or not init.is_contiguous():
        raise ValueError("init must be a contiguous tensor on the cpu")
