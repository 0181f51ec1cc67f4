"""What the passes of a compilation took, as files of its output directory.

::

    report/pipeline_profile.json    for programs
    report/pipeline_profile.txt     the same to read

Grammar, schema 1: ``{"schema": 1, "stages": [{"pass": NAME, "seconds": NUMBER}]}``, in the order in
which the passes ran. A pass may run more than once.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from pypto_toolchains.json_fields import (
    FieldError,
    as_list,
    as_object,
    as_text,
    check_keys,
    parse_object,
)

SCHEMA = 1
FILE_NAME = "report/pipeline_profile.json"
TEXT_NAME = "report/pipeline_profile.txt"

_MAX_BYTES = 1 << 22


@dataclass(frozen=True, slots=True)
class PassProfile:
    """The name and the seconds of each pass that ran."""

    stages: tuple[tuple[str, float], ...]

    def files(self) -> dict[str, str]:
        """The texts of both files, by their names."""
        stages = [{"pass": name, "seconds": seconds} for name, seconds in self.stages]
        document = json.dumps({"schema": SCHEMA, "stages": stages}, indent=2)
        lines = [f"{seconds * 1e3:10.3f} ms  {name}" for name, seconds in self.stages]
        return {FILE_NAME: document + "\n", TEXT_NAME: "\n".join(lines) + "\n"}

    @classmethod
    def parse(cls, data: bytes) -> PassProfile:
        """The value of the JSON file's bytes; FieldError if they are malformed."""
        document = parse_object(data, _MAX_BYTES)
        if document.get("schema") != SCHEMA:
            raise FieldError(f"schema is {document.get('schema')!r}, but this reads {SCHEMA}")
        check_keys(document, "the document", {"schema", "stages"})
        stages = as_list(document["stages"], "stages")
        return cls(tuple(_stage(stage, f"stages[{at}]") for at, stage in enumerate(stages)))

    def seconds(self, number: int, name: str) -> float | None:
        """What the pass with this number, from 1, took; None if it is not the one of that name."""
        if 0 < number <= len(self.stages) and self.stages[number - 1][0] == name:
            return self.stages[number - 1][1]
        return None


def _stage(value: object, where: str) -> tuple[str, float]:
    fields = as_object(value, where)
    check_keys(fields, where, {"pass", "seconds"})
    seconds = fields["seconds"]
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise FieldError(f"{where}.seconds must be a number, not {seconds!r}")
    return as_text(fields["pass"], f"{where}.pass"), float(seconds)
