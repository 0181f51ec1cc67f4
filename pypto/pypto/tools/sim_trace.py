"""What the simulator recorded of a run: reading the files of ``dfx_outputs``.

::

    {"schema": 1, "kind": "chip_swimlane", "platform": NAME, "runtime": NAME, "clock": "ns",
     "tasks": [{"id": N, "name": NAME, "core": NAME, "start": NS, "end": NS,
                "block": N or null, "deps": [N]}]}

``core`` is such as ``aic0``, ``aiv3`` or ``aicpu``; times are nanoseconds since the run began.
``id``, ``block`` and ``deps``, and the names of platform and runtime, may be absent; other fields
are skipped. Files of another ``kind`` are other recordings, which say nothing of time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto.tools.command import directory_of
from pypto_store.tools.answer import CommandError, Progress
from pypto_toolchains.json_fields import (
    FieldError,
    as_int,
    as_list,
    as_object,
    as_text,
    parse_object,
)

DIRECTORY = "dfx_outputs"
KIND = "chip_swimlane"
SCHEMA = 1

_MAX_BYTES = 1 << 30
_CORE = re.compile(r"(\D*)(\d*)")


@dataclass(frozen=True, slots=True)
class Task:
    """One piece of work on one core. `start` and `end` are nanoseconds since the run began.

    `number` names the task among those of its run, of which this may be a part (`block`), and
    `deps` are those that it waited for.
    """

    number: int | None
    name: str
    core: str
    start: int
    end: int
    block: int | None
    deps: tuple[int, ...]

    @property
    def duration(self) -> int:
        """Nanoseconds that it took."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Run:
    """One recorded run, its tasks in order of their start."""

    file: str
    platform: str
    runtime: str
    tasks: tuple[Task, ...]

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
        return _parsed(file.name, parse_object(file.read_bytes(), _MAX_BYTES))
    except FieldError as error:
        raise CommandError(f"{file}: {error}; run again to record it anew") from error


def _parsed(name: str, document: dict[str, Any]) -> Run | None:
    if document.get("kind") != KIND:
        return None
    if document.get("schema") != SCHEMA:
        raise FieldError(f"schema is {document.get('schema')!r}, but this reads {SCHEMA}")
    tasks = as_list(document.get("tasks"), "tasks")
    made = [_task(task, f"tasks[{at}]") for at, task in enumerate(tasks)]
    return Run(
        file=name,
        platform=str(document.get("platform", "")),
        runtime=str(document.get("runtime", "")),
        tasks=tuple(sorted(made, key=lambda task: (task.start, task.core))),
    )


def _task(value: object, where: str) -> Task:
    fields = as_object(value, where)
    start, end = (as_int(fields.get(name), f"{where}.{name}") for name in ("start", "end"))
    if end < start:
        raise FieldError(f"{where} ends before it starts")
    return Task(
        number=_optional(fields, "id", where),
        name=as_text(fields.get("name"), f"{where}.name"),
        core=as_text(fields.get("core"), f"{where}.core"),
        start=start,
        end=end,
        block=_optional(fields, "block", where),
        deps=tuple(
            as_int(number, f"{where}.deps")
            for number in as_list(fields.get("deps", []), f"{where}.deps")
        ),
    )


def _optional(fields: dict[str, Any], name: str, where: str) -> int | None:
    value = fields.get(name)
    return None if value is None else as_int(value, f"{where}.{name}")
