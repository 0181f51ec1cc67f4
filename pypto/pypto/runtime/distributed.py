"""The names of what will run programs for several chips, each of which refuses for now."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

from pypto.ir.distributed_compiled_program import DistributedCompiledProgram, refuse_distributed
from pypto.runtime.compiled_program import CompiledProgram
from pypto.runtime.run_config import RunConfig
from pypto.runtime.worker import Worker


class DistributedWorker(Worker):
    """A worker over several chips. None can be made yet."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        refuse_distributed("DistributedWorker")

    def run(self, compiled: CompiledProgram, *args: Any) -> None:
        """Raises DistributedUnavailable."""
        refuse_distributed("DistributedWorker.run")

    def close(self) -> None:
        """There is nothing to give back."""

    @property
    def closed(self) -> bool:
        """True: none was ever open."""
        return True


class DistributedRunHandle:
    """A run on several chips that was started and not waited for. None can be made yet."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        refuse_distributed("DistributedRunHandle")


class StackedDeviceTensor:
    """A tensor with one part on each of several chips. None can be made yet."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        refuse_distributed("StackedDeviceTensor")


def execute_distributed_compiled(
    work_dir: str | os.PathLike[str],
    args: Sequence[Any],
    *,
    config: RunConfig | None = None,
    platform: str | None = None,
) -> Any:
    """Run the program for several chips in ``work_dir`` once.

    Deprecated: use ``DistributedCompiledProgram.from_dir(work_dir, platform=platform)(*args,
    config=config)``, which is what this does.
    """
    warnings.warn(
        "execute_distributed_compiled is deprecated; use pypto.ir.DistributedCompiledProgram"
        ".from_dir(work_dir, platform=platform)(*args, config=config)",
        DeprecationWarning,
        stacklevel=2,
    )
    compiled: Any = DistributedCompiledProgram.from_dir(work_dir, platform=platform)
    return compiled(*args, config=config)
