"""One run of a build directory, with the edits that were made to it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pypto.ir.distributed_compiled_program import refuse_distributed
from pypto.runtime.compiled_meta import CompiledMeta
from pypto.runtime.compiled_program import CompiledProgram
from pypto.runtime.debug.edited import (
    invalidate_binary_cache,
    rebuild_kernel_cpp_from_pto,
    refuse_cache,
)
from pypto.runtime.directory_kind import DirectoryKind, kind_of, where_to_look
from pypto.runtime.errors import ArtifactError
from pypto.runtime.golden_file import FILE_NAME, GoldenFile
from pypto.runtime.host import environment
from pypto.runtime.run_config import RunConfig
from pypto.runtime.switches import switched_on

REBUILD_VARIABLE = "PYPTO_REBUILD_FROM_PTO"


def rerun(
    work_dir: str | os.PathLike[str],
    *args: Any,
    config: RunConfig | None = None,
    recompile: bool = True,
    rebuild_from_pto: bool | None = None,
    validate: bool = False,
) -> Any:
    """Run the program in ``work_dir`` once, as a call of a `CompiledProgram` does.

    Assembler texts that were edited reach their kernels first, unless ``rebuild_from_pto`` is
    False or, where it is None, ``PYPTO_REBUILD_FROM_PTO`` is 0. Binaries are built afresh;
    ``recompile=False`` uses those that are there as far as their sources, tools and runtime are
    known to be the same. With ``validate`` the outputs are compared with those that the
    directory's ``golden.py`` computes, which takes all arguments in place.

    Raises FileNotFoundError where there is no build, ValueError for one in a cache, AssertionError
    naming an output that is not as computed.
    """
    directory = Path(work_dir)
    require_single(directory)
    refuse_cache(directory)
    golden = _golden(directory) if validate else None
    if _rebuilds(rebuild_from_pto, environment()):
        rebuild_kernel_cpp_from_pto(directory)
    if recompile:
        invalidate_binary_cache(directory)
    compiled = CompiledProgram.from_dir(directory)
    if golden is None:
        return compiled(*args, config=config)
    if len(args) != len(compiled.param_names):
        raise TypeError(
            f"{directory}: validation takes all {len(compiled.param_names)} arguments in place, "
            f"got {len(args)}"
        )
    expected = golden.expected(args)
    compiled(*args, config=config)
    golden.check(expected, args)
    return None


def golden_inputs(directory: Path) -> list[Any]:
    """The arguments that the directory's ``golden.py`` makes; ArtifactError if there is none."""
    return _golden(directory).inputs()


def require_single(directory: Path) -> None:
    """Raises unless ``directory`` is a build for one chip, saying what it is instead."""
    kind = kind_of(directory)
    if kind is DirectoryKind.DISTRIBUTED:
        refuse_distributed(f"{directory} holds a program for several chips")
    if kind is DirectoryKind.NONE:
        raise FileNotFoundError(
            f"{directory}: neither kernel_config.py nor orchestration/host_orch.py is there; "
            f"{where_to_look(directory)}"
        )


def _golden(directory: Path) -> GoldenFile:
    golden = GoldenFile.find(directory, CompiledMeta.load(directory).params)
    if golden is None:
        raise ArtifactError(
            f"{directory}: has no {FILE_NAME}, which would give inputs and expected outputs; "
            "write one, or pass tensors to pypto.runtime.debug.replay()"
        )
    return golden


def _rebuilds(chosen: bool | None, environ: Mapping[str, str]) -> bool:
    return switched_on(environ, REBUILD_VARIABLE) if chosen is None else chosen
