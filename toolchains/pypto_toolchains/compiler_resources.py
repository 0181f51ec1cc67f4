"""What a compiler reads beside its source: directories of headers, and the inputs of every link.

A compile of nothing, with the options of the real ones, makes the compiler say where it looks for
headers and the linker say each file that it opens or misses. Sources name any header, so of those
directories everything counts. Of a link it is what was opened, as long as nothing has appeared
where something was missed.

A compiler names the directories that it finds without any link, which may be set to others later.
Those that it does not find it names as it made them up; so it is asked once more with an
installation and a system root that do not exist, and what it says then is set upon the real ones.

On disk, in <root>/tools/<digest of the circumstances>.json, sealed as `records` has it, schema 1:

    {"absent": [path, ...], "include": [directory, ...], "link": [path, ...], "schema": 1}

The circumstances are the content of the driver and of its helpers, and the options.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pypto_store.records import RecordBuilder
from pypto_toolchains.disk import Disk
from pypto_toolchains.gcc import Gcc
from pypto_toolchains.process import ToolError, ToolResult, run_tool
from pypto_toolchains.records import ProbeRecord, ProbeRecords, sealed, unsealed

RECORD_SCHEMA = 1

_PROBE_SECONDS = 30.0
_UNDECODABLE = "\ufffd"  # as run_tool decodes it
_MAX_PATHS = 4096

_COMPLAINT = re.compile(r"\b(?:cannot|error)\b")
_LIBRARIES = re.compile(r"^libraries: =(.+)$", re.MULTILINE)
_SHOW = ("-v", "-x", "c++", os.devnull)
_SEARCH_BEGINS = "#include <...> search starts here:"
_SEARCH_ENDS = "End of search list."
_NOT_THERE = re.compile(r'ignoring nonexistent directory "(.*)"')
_ATTEMPT = re.compile(r"attempt to open (.*) (succeeded|failed)")
_LINKER_SCRIPT = "using internal linker script:"
# The linker goes on to directories that it does not name.
_FOLLOWED = re.compile(r"(.*) needed by (.*)")
# A library of one kind is taken before one of the other in the same directory.
_LIBRARY_SUFFIXES = (".so", ".a")


class ResourcesUnknown(Exception):
    """What a compile reads cannot be told; the text says why."""


@dataclass(frozen=True, slots=True)
class Resources:
    """Absolute paths, links and all: the directories of headers, in the order in which they are
    searched, those that are not there too; what a link opens; what must not be there for a link to
    open those."""

    include: tuple[str, ...]
    link: tuple[str, ...]
    absent: tuple[str, ...]


def resources_of(
    compiler: Gcc,
    options: Sequence[str],
    content: Iterable[tuple[str, str]],
    environ: Mapping[str, str],
    project_root: str,
    records: ProbeRecords,
    disk: Disk,
) -> tuple[Resources, ProbeRecord | None]:
    """What compiles with `options` read, and the record to keep if that had to be asked.

    `content` are (path, digest) of all that makes up the compiler. Raises ResourcesUnknown.
    """
    name = _record_name(compiler, options, content, project_root)
    resources = _decode(records.load(name))
    if resources is not None and _holds(resources, disk):
        return resources, None
    resources = _probed(compiler, options, environ, project_root, disk)
    if not _holds(resources, disk):
        raise ResourcesUnknown(f"the files that {compiler.driver.path} links change meanwhile")
    return resources, (name, _encode(resources))


def _holds(resources: Resources, disk: Disk) -> bool:
    return all(disk.exists(path) for path in resources.link) and not any(
        disk.exists(path) for path in resources.absent
    )


def _record_name(
    compiler: Gcc,
    options: Sequence[str],
    content: Iterable[tuple[str, str]],
    project_root: str,
) -> str:
    record = RecordBuilder("pypto.toolchain.resources/v1")
    record.sequence("facts", [os.fsencode(text) for fact in compiler.facts for text in fact])
    record.sequence("content", [os.fsencode(text) for pair in content for text in pair])
    record.sequence("options", [os.fsencode(option) for option in options])
    record.bytes("project_root", os.fsencode(project_root))
    return record.finish().hex


def _probed(
    compiler: Gcc,
    options: Sequence[str],
    environ: Mapping[str, str],
    project_root: str,
    disk: Disk,
) -> Resources:
    driver = compiler.driver.path
    place = environ.get("TMPDIR", "")
    parent = place if os.path.isabs(place) else "/tmp"  # noqa: S108
    try:
        with tempfile.TemporaryDirectory(prefix="pypto-probe-", dir=parent) as scratch:

            def run(*arguments: str) -> ToolResult:
                return run_tool(
                    [driver, *options, *arguments],
                    cwd=Path(project_root),
                    environ={**environ, "LC_ALL": "C", "LANGUAGE": "", "TMPDIR": scratch},
                    timeout=_PROBE_SECONDS,
                    stage=f"probe {driver}",
                )

            # Deep enough for what goes up from it.
            prefix, sysroot = f"{scratch}/prefix/1/2/3/4/5/6/", f"{scratch}/sysroot"
            nowhere = run("-iprefix", prefix, f"--sysroot={sysroot}", "-E", *_SHOW)
            real = run("-print-sysroot").stdout.strip()
            searched = run("-print-search-dirs").stdout
            said = run(*_SHOW, "-Wl,--verbose", "-o", f"{scratch}/output.so")
    except ToolError as error:
        told = [line for line in error.stderr.splitlines() if _COMPLAINT.search(line)]
        raise ResourcesUnknown(
            f"{driver} does not compile an empty file: {told[0] if told else error}"
        ) from error
    except OSError as error:
        raise ResourcesUnknown(f"cannot compile an empty file: {error}") from error
    prefixes = _library_prefixes(searched, project_root)
    include = [
        os.path.join(project_root, directory.replace(prefix, prefixes[0]).replace(sysroot, real))
        for directory in _include_directories(nowhere.stderr)
    ]
    opened, missed = _link_attempts(said, project_root, scratch)
    if any(_UNDECODABLE in path for path in (*include, *opened, *missed)):
        raise ResourcesUnknown(f"{driver} reads files whose names are no UTF-8")
    if not (include and opened):
        raise ResourcesUnknown(
            f"{driver} and its linker do not say what they read, as those of GNU do"
        )
    known = {disk.resolved(directory) for directory in include if disk.exists(directory)}
    for directory in _include_directories(said.stderr):
        path = os.path.join(project_root, directory)
        if disk.exists(path) and disk.resolved(path) not in known:
            raise ResourcesUnknown(f"{driver} looks for headers in {path} for an unknown reason")
    absent = dict.fromkeys((*missed, *_passed_over(opened, prefixes, disk)))
    return Resources(
        tuple(dict.fromkeys(include)),
        opened,
        tuple(path for path in absent if path not in opened),
    )


def _include_directories(said: str) -> list[str]:
    """The directories that a compiler searches, and those that it would if they existed."""
    found = []
    searching = False
    for line in said.splitlines():
        missing = _NOT_THERE.fullmatch(line)
        if line in (_SEARCH_BEGINS, _SEARCH_ENDS):
            searching = line == _SEARCH_BEGINS
        elif missing is not None:
            found.append(missing[1])
        elif searching:
            found.append(line.removeprefix(" "))
    return found


def _library_prefixes(said: str, project_root: str) -> tuple[str, ...]:
    """What the driver puts before the name of an object or a library, in its order."""
    listed = _LIBRARIES.search(said)
    if listed is None:
        raise ResourcesUnknown("the compiler does not say where it searches libraries")
    return tuple(os.path.join(project_root, prefix) for prefix in listed[1].split(":"))


def _link_attempts(
    said: ToolResult, project_root: str, scratch: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The files that the linker opened, and those that it would have liked better."""
    opened: list[str] = []
    missed: list[str] = []
    lines = said.stdout.splitlines()
    if _LINKER_SCRIPT not in lines:
        raise ResourcesUnknown("the linker does not say that it uses the script built into it")
    for line in lines:
        if followed := _FOLLOWED.fullmatch(line):
            raise ResourcesUnknown(
                f"the linker looks for {followed[1]} because {followed[2]} needs it"
            )
        attempt = _ATTEMPT.fullmatch(line)
        if attempt is None:
            continue
        path = os.path.join(project_root, attempt[1])
        if not path.startswith(scratch + "/"):
            (opened if attempt[2] == "succeeded" else missed).append(path)
    return tuple(dict.fromkeys(opened)), tuple(dict.fromkeys(missed))


def _passed_over(opened: Sequence[str], prefixes: Sequence[str], disk: Disk) -> Iterable[str]:
    """Where the driver would have found an object or a library before it came to those opened.

    It hands the linker the paths of the former, and of the latter only directories that exist.
    What is there although it comes earlier was not searched for: a linker script named the other.
    """
    directories = [prefix.rstrip("/") for prefix in prefixes]
    for path in opened:
        directory, name = os.path.split(path)
        if directory not in directories:
            continue
        stem, suffix = os.path.splitext(name)
        names = [stem + other for other in _LIBRARY_SUFFIXES] if suffix in _LIBRARY_SUFFIXES else []
        earlier = directories[: directories.index(directory)]
        candidates = [
            f"{one}/{other}" for one in earlier for other in dict.fromkeys((name, *names))
        ]
        if not any(map(disk.exists, candidates)):
            yield from candidates


def _encode(resources: Resources) -> bytes:
    fields = {
        "absent": resources.absent,
        "include": resources.include,
        "link": resources.link,
        "schema": RECORD_SCHEMA,
    }
    return sealed(json.dumps(fields, sort_keys=True, separators=(",", ":")).encode("ascii"))


def _decode(content: bytes | None) -> Resources | None:
    """What a record says, or None for one that is absent, damaged or of another schema."""
    body = unsealed(content)
    if body is None:
        return None
    try:
        fields = json.loads(body)
        if fields.pop("schema") != RECORD_SCHEMA or fields.keys() != {"absent", "include", "link"}:
            return None
        resources = Resources(
            include=_paths(fields["include"]),
            link=_paths(fields["link"]),
            absent=_paths(fields["absent"]),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return resources


def _paths(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > _MAX_PATHS:
        raise TypeError("no list of paths")
    for item in value:
        if not isinstance(item, str) or not item.startswith("/") or "\0" in item:
            raise TypeError("no path")
    return tuple(value)
