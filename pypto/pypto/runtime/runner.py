"""Running an output directory: the older spelling of `CompiledProgram.from_dir`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

from pypto.backend import target_of
from pypto.runtime.compiled_program import CompiledProgram
from pypto.runtime.config_argument import run_config
from pypto.runtime.options import DfxOptions
from pypto.runtime.options import RunOptions as RunOptions  # its documented place
from pypto.runtime.run_config import RunConfig

__all__ = ["execute_compiled"]


def execute_compiled(
    work_dir: str | os.PathLike[str],
    args: Sequence[Any],
    *,
    platform: str | None = None,
    device_id: int = 0,
    config: RunConfig | None = None,
    dfx: DfxOptions | None = None,
    aicpu_thread_num: int | None = None,
) -> Any:
    """Run the program in ``work_dir`` once.

    Deprecated: use ``CompiledProgram.from_dir(work_dir)(*args, config=config)``, where the
    configuration carries every setting. Here it is read for its ring sizes alone: the platform is
    the argument, or the artifact's, and the device, the records and the threads are the arguments.
    """
    warnings.warn(
        "execute_compiled is deprecated; use "
        "pypto.ir.CompiledProgram.from_dir(work_dir)(*args, config=config)",
        DeprecationWarning,
        stacklevel=2,
    )
    compiled = CompiledProgram.from_dir(work_dir)
    target = target_of(compiled.platform if platform is None else platform)
    rings = RunConfig() if config is None else run_config(config)
    chosen = RunConfig(
        arch=target.backend_type,
        execution_mode=target.mode,
        device_id=device_id,
        aicpu_thread_num=aicpu_thread_num,
        ring_task_window=rings.ring_task_window,
        ring_heap=rings.ring_heap,
        ring_dep_pool=rings.ring_dep_pool,
        **({} if dfx is None else dfx.as_kwargs()),
    )
    return compiled(*args, config=chosen)
