"""What became of one run that somebody else has to judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class RunResult:
    """The outcome of running ``test_name``.

    ``error`` says in one text why it did not pass, ``None`` where it did. ``execution_time`` is the
    time of the run itself in seconds, ``None`` where it was not reached. ``profile`` maps the names
    of the records that the run wrote to their files.
    """

    passed: bool
    test_name: str
    error: str | None = None
    execution_time: float | None = None
    profile: Mapping[str, Path] | None = None

    def __post_init__(self) -> None:
        if self.passed is not (self.error is None):
            raise ValueError("a result has an error exactly if it did not pass")
