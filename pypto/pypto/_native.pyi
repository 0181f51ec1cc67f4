"""The native core: the simulated chip and the loader of compiled programs."""

from collections.abc import Callable, Sequence

class LoadError(ImportError):
    """A library cannot be loaded, or lacks an entry."""

class KernelFault(RuntimeError):
    """A run ended with a fault. ``kernel`` is a function number, -1 outside of kernels."""

    op: str
    message: str
    kernel: int
    unit: str
    line: int
    column: int
    pto_line: int

class Chip:
    """A simulated chip; its threads start with the first run."""

    def __init__(self, platform: str) -> None: ...
    def close(self) -> None: ...

class Program:
    """A loaded program."""

    def bind(
        self, chip: Chip, tensors: Sequence[tuple[int, tuple[int, ...], int]]
    ) -> Callable[..., None]: ...
    def close(self) -> None: ...

def build_info() -> dict[str, object]: ...
def sha256_files(paths: Sequence[str]) -> list[bytes]: ...
def load_program(
    kernels: Sequence[tuple[int, str, str]],
    orchestration: str,
    runtime: str,
    n_tensors: int,
    n_scalars: int,
) -> Program: ...
