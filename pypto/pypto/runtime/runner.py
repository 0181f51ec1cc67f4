"""Running an output directory: the older spelling of `CompiledProgram.from_dir`."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Sequence
from typing import Any

from pypto.backend import target_of
from pypto.runtime.compiled_program import CompiledProgram
from pypto.runtime.options import DfxOptions, RunOptions
from pypto.runtime.run_config import RunConfig

__all__ = ["RunOptions", "execute_compiled"]


def execute_compiled(
    work_dir: str | os.PathLike[str],
    args: Sequence[Any],
    *,
    platform: str | None = None,
    device_id: int | None = None,
    config: RunConfig | None = None,
    dfx: DfxOptions | None = None,
    aicpu_thread_num: int | None = None,
) -> Any:
    """Run the program in ``work_dir`` once.

    Deprecated: use ``CompiledProgram.from_dir(work_dir)(*args, config=config)``, where the
    configuration carries every setting. Here the explicit arguments win over it; without either
    the platform is the artifact's.
    """
    warnings.warn(
        "execute_compiled is deprecated; use "
        "pypto.ir.CompiledProgram.from_dir(work_dir)(*args, config=config)",
        DeprecationWarning,
        stacklevel=2,
    )
    compiled = CompiledProgram.from_dir(work_dir)
    target = target_of(compiled.platform if platform is None else platform)
    base = RunConfig() if config is None else config
    chosen = dataclasses.replace(base, arch=target.backend_type, execution_mode=target.mode)
    if device_id is not None:
        chosen = dataclasses.replace(chosen, device_id=device_id)
    if aicpu_thread_num is not None:
        chosen = dataclasses.replace(chosen, aicpu_thread_num=aicpu_thread_num)
    if dfx is not None:
        chosen = dataclasses.replace(chosen, **dataclasses.asdict(dfx))
    return compiled(*args, config=chosen)
