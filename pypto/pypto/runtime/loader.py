"""Loading libraries into this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pypto.runtime.storage import BinaryPaths

if TYPE_CHECKING:
    from pypto._native import Program


def load_binaries(paths: BinaryPaths, *, n_tensors: int, n_scalars: int) -> Program:
    """Open every library of a program and resolve its entries.

    The paths must be unique for their contents (`BinaryPaths`); once this returns the files are
    mapped and their names no longer needed. Raises ``pypto._native.LoadError``, an ImportError.
    """
    from pypto._native import load_program

    return load_program(
        [(func_id, core_type, str(path)) for func_id, core_type, path in paths.kernels],
        str(paths.orchestration),
        paths.runtime.value,
        n_tensors,
        n_scalars,
    )
