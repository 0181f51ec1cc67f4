"""The native core: the simulated chip, the loader of programs, and file hashing."""

from collections.abc import Sequence
from typing import Any

from pypto_store.manifest import FileRecord

class LoadError(ImportError):
    """A library cannot be loaded, or lacks an entry."""

class KernelFault(RuntimeError):
    """A kernel, or the orchestration, ended a run. ``kernel`` is -1 outside of kernels."""

    code: int
    op: str
    message: str
    kernel: int
    unit: str
    line: int
    column: int
    pto_line: int

class Chip:
    """A simulated chip. Its threads start when first needed, in any process."""

    def __init__(
        self,
        platform: str,
        *,
        clusters: int = ...,
        task_window: int = ...,
        heap_bytes: int = ...,
        caller_helps: bool = ...,
    ) -> None: ...
    @property
    def platform(self) -> str: ...
    @property
    def clusters(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    def close(self) -> None: ...

class BoundCall:
    """A program bound to a chip and to the shapes of its tensors."""

    def __call__(self, *addresses_then_scalars: int) -> None: ...
    def run_tensors(self, tensors: tuple[object, ...], *scalars: int) -> bool: ...

class Program:
    """Kernels and an orchestration, loaded."""

    def run(
        self,
        chip: Chip,
        tensors: Sequence[tuple[int, int, Sequence[int], int]],
        scalars: Sequence[int],
    ) -> None: ...
    def run_recorded(
        self,
        chip: Chip,
        tensors: Sequence[tuple[int, int, Sequence[int], int]],
        scalars: Sequence[int],
        *,
        contents: bool,
    ) -> dict[str, Any]:
        """As `run`; gives tasks, spans, scopes, most_tasks, most_bytes and duration_ns."""

    def bind(self, chip: Chip, tensors: Sequence[tuple[int, Sequence[int], int]]) -> BoundCall: ...
    @property
    def closed(self) -> bool: ...
    def close(self) -> None: ...

def build_info() -> dict[str, object]: ...
def on_chip_limits() -> dict[str, dict[str, int]]: ...
def sha256_files(paths: Sequence[str | bytes]) -> list[bytes]: ...

class SourceHashing:
    def wait(self) -> list[tuple[bytes, bytes]]: ...

def hash_sources(
    roots: Sequence[str | bytes], suffixes: Sequence[str], skipped_directories: Sequence[str]
) -> SourceHashing: ...
def observations_hold(observations: Sequence[Sequence[str]]) -> bool: ...
def x86_level() -> str | None: ...

class SlotReader:
    """Reads store entries; None where it does not accept one."""

    def __init__(
        self,
        *,
        record: type[FileRecord],
        manifest_name: str,
        signature_name: str,
        manifest_limit: int,
        path_limit: int,
        keep_file: int,
        keep_total: int,
    ) -> None: ...
    def validate(
        self, slot: int, head: bytes, middle: bytes
    ) -> tuple[bytes, tuple[FileRecord, ...], dict[str, bytes]] | None: ...
    def read_file(
        self, slot: int, head: bytes, middle: bytes, name: str, limit: int
    ) -> tuple[bytes, tuple[FileRecord, ...], bytes] | None: ...

def load_program(
    kernels: Sequence[tuple[int, str, str]],
    orchestration: str,
    runtime: str,
    n_tensors: int,
    n_scalars: int,
) -> Program: ...
