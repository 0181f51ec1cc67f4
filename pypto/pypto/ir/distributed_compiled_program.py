"""Programs for several chips: their names and settings, and the one refusal of them all.

A configuration can be written down, so that code which holds one imports and type-checks; nothing
compiles or runs for more than one chip yet, and whatever would says so.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from pypto.backend import BackendType
from pypto.ir.typing_rules import is_whole


class DistributedUnavailable(NotImplementedError):
    """Something was asked of several chips, which this version compiles and runs nothing for."""


def refuse_distributed(what: str) -> NoReturn:
    """DistributedUnavailable naming ``what`` was asked for and what there is instead."""
    raise DistributedUnavailable(
        f"{what}: only programs for a single chip can be compiled and run; "
        "use ir.compile without distributed_config, and CompiledProgram"
    )


@dataclass(frozen=True, slots=True)
class DistributedConfig:
    """Which chips a program for several runs on.

    ``device_ids`` are the chips, one a rank; ``num_sub_workers`` the Python workers beside them;
    ``runtime`` and ``aicpu_thread_num`` are those of every chip, ``None`` for the defaults.
    """

    device_ids: Sequence[int] = (0,)
    num_sub_workers: int = 0
    runtime: str | None = None
    aicpu_thread_num: int | None = None

    def __post_init__(self) -> None:
        ids = tuple(self.device_ids)
        if not ids or any(not is_whole(i) or i < 0 for i in ids):
            raise ValueError(f"device_ids must be numbers of chips, got {self.device_ids!r}")
        if len(set(ids)) != len(ids):
            raise ValueError(f"device_ids names a chip twice: {list(ids)}")
        if isinstance(self.num_sub_workers, bool) or self.num_sub_workers < 0:
            raise ValueError(f"num_sub_workers must not be negative, got {self.num_sub_workers!r}")
        object.__setattr__(self, "device_ids", ids)


class DistributedCompiledProgram:
    """A program compiled for several chips. None can be made yet."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        refuse_distributed("DistributedCompiledProgram")

    @classmethod
    def from_dir(
        cls,
        directory: str | os.PathLike[str],
        *,
        platform: str | None = None,
        backend_type: BackendType | None = None,
        distributed_config: DistributedConfig | None = None,
    ) -> DistributedCompiledProgram:
        """The program for several chips in ``directory``; raises DistributedUnavailable."""
        refuse_distributed(f"DistributedCompiledProgram.from_dir({os.fspath(directory)!r})")
