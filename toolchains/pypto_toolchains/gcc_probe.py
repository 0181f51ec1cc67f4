"""Asking a GCC driver what it is and where it searches, and the record that keeps the answer.

A compiler wrapper passes questions on to the driver behind it, so no answer in words tells the two
apart. What does is which program starts the helpers: the probe lets the driver compile and link
nothing with ``-wrapper``, so that every helper's turn is taken by a shell that says who started it
(the executable behind its parent process) and what it was to be. Nothing is compiled, and only the
driver's own temporary names appear in TMPDIR, which it removes.

On disk, in <root>/tools/<digest of the circumstances>.json, sealed as `records` has it, schema 2:

    {"cross": bool, "driver": path, "executable": path, "libraries": [prefix, ...],
     "machine": text, "plugin": name or "", "programs": [prefix, ...], "schema": 2,
     "specs": [[path, sha256], ...], "version": text}

Schema 1 had no ``cross``, ``executable``, ``plugin`` and ``specs``, and a seal of its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_store.records import RecordBuilder
from pypto_toolchains.evidence import Unavailable
from pypto_toolchains.process import ToolError, ToolResult, run_tool
from pypto_toolchains.records import sealed, unsealed
from pypto_toolchains.search import has_relative_entry

COMPONENT = "device_toolchain"
RECORD_SCHEMA = 2

# They change which directories a driver searches; a relative entry is taken from its directory.
# The two roots stand for the prefix that the driver was configured with.
SEARCH_VARIABLES = (
    "BINUTILS_ROOT",
    "COMPILER_PATH",
    "GCC_EXEC_PREFIX",
    "GCC_ROOT",
    "LIBRARY_PATH",
)

_PROBE_SECONDS = 30.0
_MAX_DIRECTORIES = 256
_MAX_SPECS = 16
# In a helper's place: the program that started it, then its own name and arguments, counted.
# The option splits at commas, so there is none.
_TELL = 'command -p printf "%s\\0" "$(command -p readlink "/proc/$PPID/exe")" "$0" "$#" "$@"'


@dataclass(frozen=True, slots=True)
class Driver:
    """A GCC driver: the path it is started by, the file which that is, and its native identity."""

    path: str
    executable: str
    identity: str


@dataclass(frozen=True, slots=True)
class DriverReport:
    """What a driver says of itself.

    `programs` and `libraries` are the prefixes it puts before a name it searches, in order, nearly
    all of them directories with a final slash; `cross` is whether it compiles for another machine
    than it runs on; `plugin` names the library that it has the linker load, or is empty; `specs`
    are the files that rewrite its command lines, with their digests.
    """

    version: str
    machine: str
    cross: bool
    programs: tuple[str, ...]
    libraries: tuple[str, ...]
    plugin: str
    specs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Started:
    """A helper that a driver wanted to start: by which name, with which arguments."""

    program: str
    arguments: tuple[str, ...]


def probe(
    driver: Driver, options: Sequence[str], environ: Mapping[str, str], project_root: str
) -> tuple[DriverReport, tuple[Started, ...]] | Unavailable:
    """Ask `driver`, run with `options` in `project_root`; what it would start comes with it.

    The report names no specs files: whoever searches for them adds those it found.
    """
    spoken = {**environ, "LC_ALL": "C", "LANGUAGE": ""}

    def run(*arguments: str) -> ToolResult:
        return run_tool(
            [driver.path, *options, *arguments],
            cwd=Path(project_root),
            environ=spoken,
            timeout=_PROBE_SECONDS,
            stage=f"probe {driver.path}",
        )

    told_by = ("-v", "-wrapper", f"/bin/sh,-c,{_TELL}", "-x", "c++", os.devnull)
    try:
        # Apart from the rest, which may fail behind a wrapper in ways that explain nothing.
        if problem := _wrapped(driver, _started(run(*told_by, "-E").stdout)):
            return problem
        whole = run(*told_by, "-shared", "-o", os.devnull)
        searched = _pairs(run("-print-search-dirs").stdout, ": =")
        specs = run("-dumpspecs").stdout
        linker = run("-print-prog-name=ld").stdout.strip()
    except ToolError as error:
        if "clang version" in error.stderr:
            return clang(driver.path, driver.executable)
        lines = (error.stderr or str(error)).splitlines()
        said = next((line for line in lines if "error: " in line), lines[-1])
        return Unavailable(COMPONENT, f"{driver.path} does not answer as a GCC driver does: {said}")
    started = _started(whole.stdout)
    if problem := _wrapped(driver, started):
        return problem
    told = {**_pairs(whole.stderr, ": "), **_pairs(whole.stderr, "gcc version ")}
    report = DriverReport(
        version=told.get("", ""),
        machine=told.get("Target", ""),
        cross="*cross_compile:\n1\n" in specs,
        programs=_prefixes(searched.get("programs", "")),
        libraries=_prefixes(searched.get("libraries", "")),
        plugin=_plugin([helper for _, helper in started]),
        specs=(),
    )
    if not (started and report.version and report.machine and report.programs):
        return Unavailable(COMPONENT, f"{driver.path} gives no version, target or directories")
    # collect2, which searches the linker, was not run: the driver would find it by the same steps.
    return report, (*(helper for _, helper in started), Started(linker, ()))


def clang(path: str, executable: str) -> Unavailable:
    """Why clang, started as `path`, is not identified."""
    return Unavailable(
        COMPONENT,
        f"{path} is clang ({executable}), whose compiler lies in shared libraries that this "
        "policy does not identify; put the directory of g++ first on PATH",
    )


def _pairs(text: str, separator: str) -> dict[str, str]:
    """The lines that have the separator, as what is before it and what is behind."""
    halves = (line.partition(separator) for line in text.splitlines())
    return {before: after.strip() for before, found, after in halves if found}


def _prefixes(listed: str) -> tuple[str, ...]:
    """A driver's search list in its order, each once: a repetition finds nothing new."""
    return tuple(dict.fromkeys(entry for entry in listed.split(":") if entry))


def _started(told: str) -> list[tuple[str, Started]]:
    """Who started each helper, and the helper; empty where the text is something else."""
    words = told.split("\0")[:-1]
    found = []
    while words:
        if len(words) < 3 or not words[2].isdecimal():
            return []
        end = 3 + int(words[2])
        found.append((words[0], Started(words[1], tuple(words[3:end]))))
        words = words[end:]
    return found


def _wrapped(driver: Driver, started: Sequence[tuple[str, Started]]) -> Unavailable | None:
    """Why what starts the helpers is not the driver itself, or None."""
    for executable, _ in started:
        if not executable:
            return Unavailable(
                COMPONENT,
                f"/proc does not tell which program {driver.path} runs; make /proc readable",
            )
        if not _same_file(executable, driver.executable):
            return Unavailable(
                COMPONENT,
                f"{driver.path} is a compiler wrapper: it runs {executable}; put the directory "
                "of that compiler first on PATH",
            )
    return None


def _plugin(started: Sequence[Started]) -> str:
    for helper in started:
        for option, value in zip(helper.arguments, helper.arguments[1:], strict=False):
            if option == "-plugin":
                return os.path.basename(value)
    return ""


def _same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def record_name(
    driver: Driver, options: Sequence[str], environ: Mapping[str, str], project_root: str
) -> str:
    """The name under which the answers of `driver` are kept: all that they depend on."""
    record = RecordBuilder("pypto.toolchain.probe/v2")
    # Where the links lead decides where the installation is taken to be.
    record.bytes("path", os.fsencode(driver.path))
    record.bytes("executable", os.fsencode(driver.executable))
    record.text("identity", driver.identity)
    record.sequence("options", [os.fsencode(option) for option in options])
    relative = any(option[:2] == "-B" and option[2:3] != "/" for option in options)
    for variable in SEARCH_VARIABLES:
        value = environ.get(variable)
        record.sequence(variable, () if value is None else (os.fsencode(value),))
        relative |= value is not None and has_relative_entry(value)
    record.sequence("cwd", (os.fsencode(project_root),) if relative else ())
    return record.finish().hex


def encode_record(driver: Driver, report: DriverReport) -> bytes:
    """The bytes of the record of a driver's answers."""
    fields = {
        "cross": report.cross,
        "driver": driver.path,
        "executable": driver.executable,
        "libraries": report.libraries,
        "machine": report.machine,
        "plugin": report.plugin,
        "programs": report.programs,
        "schema": RECORD_SCHEMA,
        "specs": report.specs,
        "version": report.version,
    }
    return sealed(json.dumps(fields, sort_keys=True, separators=(",", ":")).encode("ascii"))


def decode_record(content: bytes | None, driver: Driver) -> DriverReport | None:
    """The answers a record keeps, or None for one that is absent, damaged or of another schema."""
    body = unsealed(content)
    if body is None:
        return None
    try:
        fields = json.loads(body)
        report = DriverReport(
            version=_text(fields.pop("version")),
            machine=_text(fields.pop("machine")),
            cross=_flag(fields.pop("cross")),
            programs=_texts(fields.pop("programs"), _MAX_DIRECTORIES),
            libraries=_texts(fields.pop("libraries"), _MAX_DIRECTORIES),
            plugin=_text(fields.pop("plugin")),
            specs=tuple(
                (_text(path), _text(digest))
                for path, digest in _few(fields.pop("specs"), _MAX_SPECS)
            ),
        )
        rest = {"driver": driver.path, "executable": driver.executable, "schema": RECORD_SCHEMA}
        whole = fields == rest and type(fields["schema"]) is int and bool(report.programs)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return report if whole else None


def _text(value: object) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise TypeError("no text")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError("no flag")
    return value


def _few(value: object, most: int) -> list[Any]:
    if not isinstance(value, list) or len(value) > most:
        raise TypeError("no short list")
    return value


def _texts(value: object, most: int) -> tuple[str, ...]:
    return tuple(_text(item) for item in _few(value, most))
