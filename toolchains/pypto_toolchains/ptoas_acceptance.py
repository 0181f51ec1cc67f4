"""Whether an assembler that is not ours starts and understands what this version gives it.

Assemblers of other versions exist that do neither. The question is answered by letting one
translate a small program, in the way that every program is translated, and looking at what comes
out for the few things that are relied upon. Only a yes is worth remembering: whoever is told no
will change something.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from pypto_store.digest import Digest
from pypto_store.records import RecordBuilder
from pypto_toolchains.process import ToolError, run_tool
from pypto_toolchains.records import ProbeRecord, ProbeRecords, sealed, unsealed

_SECONDS = 60.0
_TOLD_CHARACTERS = 400
_SAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ptoas_sample.pto.in")
_SAMPLE_ARCH = "a2a3"

# What is around the code, and the code itself, as far as other generated text refers to it.
_RELIED_UPON = (
    ("the header of the instructions", r'^#include "pto/[\w/-]+\.hpp"$'),
    (
        "the kernel's function",
        r"^__global__ AICORE void sample\(\s*__gm__ float\s*\*\s*\w+,\s*__gm__ float\s*\*\s*\w+\)",
    ),
    ("the load", r"\bTLOAD\("),
    ("the multiplication", r"\bTMULS\("),
    ("the store", r"\bTSTORE\("),
)

# What decides whether a program starts, beside its files.
_STARTING_VARIABLES = ("LD_AUDIT", "LD_LIBRARY_PATH", "LD_PRELOAD")

# Acceptance records, on disk in <root>/tools/<digest>.json: a line with the SHA-256 of what
# follows in hex, then this. The name says of what.
_ACCEPTED = b'{"accepted":true,"schema":1}'


def translation_options(arch: str) -> tuple[str, ...]:
    """The options that every program for the architecture `arch` is translated with."""
    return (f"--pto-arch={arch}", "--pto-level=level3", "--enable-insert-sync")


def translate(
    assembler: Path,
    text: str,
    output: str,
    arch: str,
    *,
    directory: Path,
    environ: Mapping[str, str],
    timeout: float,
) -> None:
    """Translate the file `text` of `directory` into `output` there; `timeout` is in seconds.

    Both are plain names, so that no directory can enter the assembler's output. Raises ToolError.
    """
    run_tool(
        [str(assembler), text, "-o", output, *translation_options(arch)],
        cwd=directory,
        environ=environ,
        timeout=timeout,
        stage="ptoas",
    )


def refusal(path: str, environ: Mapping[str, str], project_root: str) -> str | None:
    """Why the assembler at `path` cannot be used, or None. It runs in `project_root`, and writes
    nothing."""
    try:
        result = run_tool(
            [path, _SAMPLE, "-o", "-", *translation_options(_SAMPLE_ARCH)],
            cwd=Path(project_root),
            environ=environ,
            timeout=_SECONDS,
            stage="translating a small program",
        )
    except ToolError as error:
        # The end of what it wrote says what went wrong; assemblers may write a lot before.
        summary = str(error).partition("\n")[0].removesuffix(":")
        tail = error.stderr[-_TOLD_CHARACTERS:].strip()
        told = f"{path} cannot be used: {summary}"
        return f"{told}: {tail}" if tail else told
    for what, pattern in _RELIED_UPON:
        if re.search(pattern, result.stdout, re.MULTILINE) is None:
            return f"{path} translates a small program to text without {what}"
    return None


def acceptance_record(assembler: Digest, environ: Mapping[str, str]) -> ProbeRecord:
    """The record that the assembler whose evidence is `assembler` was accepted."""
    record = RecordBuilder("pypto.toolchain.acceptance/v1").digest("assembler", assembler)
    with open(_SAMPLE, "rb") as file:
        record.bytes("sample", file.read())
    record.sequence("relied upon", tuple(pattern for _, pattern in _RELIED_UPON))
    record.sequence("options", translation_options(_SAMPLE_ARCH))
    for name in _STARTING_VARIABLES:
        value = environ.get(name)
        record.sequence(name, () if value is None else (os.fsencode(value),))
    return record.finish().hex, sealed(_ACCEPTED)


def is_kept(record: ProbeRecord, records: ProbeRecords) -> bool:
    """Whether an earlier process left this record."""
    return unsealed(records.load(record[0])) == unsealed(record[1])
