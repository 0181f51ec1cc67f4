"""``chip_swimlane.json``: when each task of a run ran, and on which core.

Grammar, schema 1::

    {"schema": 1, "kind": "chip_swimlane", "platform": NAME, "runtime": NAME, "clock": "ns",
     "tasks": [{"id": N, "name": NAME, "core": NAME, "start": NS, "end": NS,
                "block": N, "blocks": N, "deps": [N], "counters": {NAME: N}}]}

There is an entry for each part of a task on a core, and one without ``id`` for each scope of the
orchestration. ``core`` is such as ``aic0``, ``aiv3`` or ``aicpu``; times are nanoseconds since the
run began. The names of platform and runtime may be absent, and of a task all but ``name``,
``core``, ``start`` and ``end``; fields that are not listed are skipped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pypto_toolchains.json_fields import (
    FieldError,
    as_int,
    as_list,
    as_object,
    as_text,
    parse_object,
)

KIND = "chip_swimlane"
FILE_NAME = f"{KIND}.json"
SCHEMA = 1

_MAX_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class LaneTask:
    """One piece of work on one core. `start` and `end` are nanoseconds since the run began.

    `number` names the task among those of its run, of which this may be the part from `block` on,
    `blocks` long. `deps` are the tasks that it waited for. None stands for what was not recorded.
    """

    name: str
    core: str
    start: int
    end: int
    number: int | None = None
    block: int | None = None
    blocks: int | None = None
    deps: tuple[int, ...] | None = None
    counters: Mapping[str, int] | None = None

    @property
    def duration(self) -> int:
        """Nanoseconds that it took."""
        return self.end - self.start

    def _fields(self) -> dict[str, Any]:
        fields = {
            "id": self.number,
            "name": self.name,
            "core": self.core,
            "start": self.start,
            "end": self.end,
            "block": self.block,
            "blocks": self.blocks,
            "deps": None if self.deps is None else list(self.deps),
            "counters": None if self.counters is None else dict(self.counters),
        }
        return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Swimlane:
    """The tasks of one run, in the order in which they were recorded."""

    platform: str
    runtime: str
    tasks: tuple[LaneTask, ...]

    def to_json(self) -> bytes:
        """The bytes of the file."""
        document = {
            "schema": SCHEMA,
            "kind": KIND,
            "platform": self.platform,
            "runtime": self.runtime,
            "clock": "ns",
            "tasks": [task._fields() for task in self.tasks],
        }
        return (json.dumps(document, indent=1) + "\n").encode()

    @classmethod
    def parse(cls, data: bytes) -> Swimlane | None:
        """The value of a file's bytes; None for a recording of another kind.

        FieldError if they are malformed.
        """
        document = parse_object(data, _MAX_BYTES)
        if document.get("kind") != KIND:
            return None
        if document.get("schema") != SCHEMA:
            raise FieldError(f"schema is {document.get('schema')!r}, but this reads {SCHEMA}")
        tasks = as_list(document.get("tasks"), "tasks")
        return cls(
            platform=str(document.get("platform", "")),
            runtime=str(document.get("runtime", "")),
            tasks=tuple(_task(task, f"tasks[{at}]") for at, task in enumerate(tasks)),
        )


def _task(value: object, where: str) -> LaneTask:
    fields = as_object(value, where)
    start, end = (as_int(fields.get(name), f"{where}.{name}") for name in ("start", "end"))
    if end < start:
        raise FieldError(f"{where} ends before it starts")
    return LaneTask(
        name=as_text(fields.get("name"), f"{where}.name"),
        core=as_text(fields.get("core"), f"{where}.core"),
        start=start,
        end=end,
        number=_number(fields, "id", where),
        block=_number(fields, "block", where),
        blocks=_number(fields, "blocks", where),
        deps=_deps(fields, where),
        counters=_counters(fields, where),
    )


def _number(fields: Mapping[str, Any], name: str, where: str) -> int | None:
    value = fields.get(name)
    return None if value is None else as_int(value, f"{where}.{name}")


def _deps(fields: Mapping[str, Any], where: str) -> tuple[int, ...] | None:
    if (deps := fields.get("deps")) is None:
        return None
    where = f"{where}.deps"
    return tuple(as_int(number, where) for number in as_list(deps, where))


def _counters(fields: Mapping[str, Any], where: str) -> dict[str, int] | None:
    if (counters := fields.get("counters")) is None:
        return None
    where = f"{where}.counters"
    return {
        name: as_int(count, f"{where}.{name}") for name, count in as_object(counters, where).items()
    }
