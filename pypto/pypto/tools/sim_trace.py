"""What the simulator recorded of a run: reading the files of ``dfx_outputs``.

Those of another kind than the timeline's are other recordings, which say nothing of time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from pypto.runtime.run_records import DIRECTORY
from pypto.runtime.swimlane import KIND, LaneTask, Swimlane
from pypto.tools.command import directory_of
from pypto_store.tools.answer import CommandError, Progress
from pypto_toolchains.json_fields import FieldError

_CORE = re.compile(r"(\D*)(\d*)")


@dataclass(frozen=True, slots=True)
class Run:
    """One recorded run, its tasks in order of their start."""

    file: str
    platform: str
    runtime: str
    tasks: tuple[LaneTask, ...]

    @property
    def cores(self) -> list[str]:
        """The cores that did something, by kind and then by number."""
        return sorted({task.core for task in self.tasks}, key=_core_order)

    @property
    def span(self) -> int:
        """Nanoseconds from the first start to the last end."""
        if not self.tasks:
            return 0
        return max(task.end for task in self.tasks) - self.tasks[0].start


def _core_order(core: str) -> tuple[str, int]:
    match = _CORE.match(core)
    assert match is not None  # it fits every text
    return match[1], int(match[2] or 0)


def read(given: Path, progress: Progress) -> tuple[Run, ...]:
    """The runs that a file, a dfx_outputs or a build directory with one has, in order of name.

    CommandError where there are none or a file cannot be read.
    """
    if given.is_file():
        run = _run(given)
        if run is None:
            raise CommandError(f"{given}: no recording of kind {KIND}")
        return (run,)
    directory_of(given)
    directory = given / DIRECTORY if (given / DIRECTORY).is_dir() else given
    files = sorted(directory.glob("*.json"))
    runs = []
    with progress.of("reading recordings", len(files)) as advance:
        for file in files:
            run = _run(file)
            if run is not None:
                runs.append(run)
            advance(1)
    if not runs:
        raise CommandError(
            f"{given}: no recorded run; run with RunConfig(enable_chip_swimlane=True) and name the "
            f"build directory or its {DIRECTORY}"
        )
    return tuple(runs)


def _run(file: Path) -> Run | None:
    """The run that a file records; None where it records something else."""
    try:
        lane = Swimlane.parse(file.read_bytes())
    except FieldError as error:
        raise CommandError(f"{file}: {error}; run again to record it anew") from error
    if lane is None:
        return None
    tasks = sorted(lane.tasks, key=lambda task: (task.start, task.core))
    return Run(file.name, lane.platform, lane.runtime, tuple(tasks))
