"""The identity of a GCC driver and of the helpers it runs, without running it twice.

Which helper a driver starts depends on the driver, on a few variables and on which of the paths
it tries exist. What the driver itself contributes (its version and the directories it searches)
is learned by a probe once and kept in a record whose name is a digest of the driver's path, its
Build-ID and those variables. Everything else, that is every path tried before each helper and
the Build-ID of the helper found, is looked at anew each time, so a record never goes stale.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pypto_store.records import RecordBuilder
from pypto_toolchains.disk import SYSTEM_DISK, Disk
from pypto_toolchains.elf import MalformedElf, NotElf
from pypto_toolchains.evidence import Evidence, Unavailable
from pypto_toolchains.process import ToolError, ToolResult, run_tool
from pypto_toolchains.records import ProbeRecords
from pypto_toolchains.search import (
    find_executable,
    first_executable,
    has_relative_entry,
    link_target,
    path_directories,
)

COMPONENT = "device_toolchain"

# Probe records, on disk in <root>/tools/<digest>.json:
#   schema 1: {"driver", "libraries", "machine", "programs", "schema", "sha256", "version"},
#   where sha256 is that of the record without it: a flipped bit would look like another compiler.
RECORD_SCHEMA = 1

# They change which directories a driver searches; a relative entry is taken from its directory.
SEARCH_VARIABLES = ("COMPILER_PATH", "GCC_EXEC_PREFIX", "LIBRARY_PATH")

_DRIVER_NAME = re.compile(r"(?:[A-Za-z0-9_.]+-)*(?:g\+\+|c\+\+|gcc)(?:-[0-9][0-9.]*)?")
_PROBE_SECONDS = 30.0
_MAX_DIRECTORIES = 256


@dataclass(frozen=True, slots=True)
class Driver:
    """A GCC driver: the path it is started by, and its native identity."""

    path: str
    identity: str


@dataclass(frozen=True, slots=True)
class DriverReport:
    """What a driver says of itself: version, target, and where it searches, in order."""

    version: str
    machine: str
    programs: tuple[str, ...]
    libraries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Capture:
    """The outcome for one driver. `record` is what a probe said, if one had to run:
    (digest, content) for `ProbeRecords.save`."""

    outcome: Evidence | Unavailable
    record: tuple[str, bytes] | None


def select_driver(
    name: str, environ: Mapping[str, str], project_root: str, disk: Disk = SYSTEM_DISK
) -> Driver | Unavailable:
    """The driver that a child in `project_root` starts for `name` (a bare name or a path).

    Unavailable for a missing one, for a script, and for an ELF file that is not recognisably a
    GCC driver, such as a compiler wrapper found under a compiler's name.
    """
    path = find_executable(name, environ.get("PATH"), project_root, disk)
    if path is None:
        return Unavailable(COMPONENT, f"no C++ compiler {name!r} on PATH; install g++")
    try:
        real = link_target(path, disk)
    except OSError as error:
        return Unavailable(COMPONENT, f"cannot identify {path}: {error}")
    if not _DRIVER_NAME.fullmatch(os.path.basename(real)):
        return Unavailable(
            COMPONENT, f"{path} runs {real}, an unrecognised compiler or compiler wrapper"
        )
    try:
        return Driver(path, disk.identity(real))
    except NotElf:
        return Unavailable(COMPONENT, f"{path} runs {real}, which is a script and not a driver")
    except (OSError, MalformedElf) as error:
        return Unavailable(COMPONENT, f"cannot identify {path}: {error}")


def capture_gcc(
    name: str,
    environ: Mapping[str, str],
    project_root: str,
    records: ProbeRecords,
    disk: Disk = SYSTEM_DISK,
) -> Capture:
    """The identity of the driver `name` and of its helpers, for compiles run in `project_root`."""
    driver = select_driver(name, environ, project_root, disk)
    if isinstance(driver, Unavailable):
        return Capture(driver, None)
    digest = _record_digest(driver, environ, project_root)
    report = _parse_record(records.load(digest), driver)
    fresh = None
    if report is None:
        probed = _probe(driver, environ, project_root)
        if isinstance(probed, Unavailable):
            return Capture(probed, None)
        report = probed
        fresh = (digest, _record_content(driver, report))
    return Capture(_evidence(driver, report, environ, project_root, disk), fresh)


def _record_digest(driver: Driver, environ: Mapping[str, str], project_root: str) -> str:
    record = RecordBuilder("pypto.toolchain.probe/v1")
    record.bytes("path", os.fsencode(driver.path)).text("identity", driver.identity)
    relative = False
    for variable in SEARCH_VARIABLES:
        value = environ.get(variable)
        record.sequence(variable, () if value is None else (os.fsencode(value),))
        relative |= value is not None and has_relative_entry(value)
    record.sequence("cwd", (os.fsencode(project_root),) if relative else ())
    return record.finish().hex


def _evidence(
    driver: Driver,
    report: DriverReport,
    environ: Mapping[str, str],
    project_root: str,
    disk: Disk,
) -> Evidence | Unavailable:
    facts = [
        ("driver.path", driver.path),
        ("driver.native", driver.identity),
        ("driver.version", report.version),
        ("driver.machine", report.machine),
    ]
    for name, path in _helpers(report, environ.get("PATH"), project_root, disk).items():
        if path is None:
            package = "g++" if name in ("cc1plus", "collect2") else "binutils"
            return Unavailable(
                COMPONENT, f"{driver.path} finds no {name!r}; install {package} completely"
            )
        try:
            identity = disk.identity(path)
        except NotElf:
            return Unavailable(COMPONENT, f"the helper {path} is a script, not an executable")
        except (OSError, MalformedElf) as error:
            return Unavailable(COMPONENT, f"cannot identify the helper {path}: {error}")
        facts.append((f"{name}.path", path))
        facts.append((f"{name}.native", identity))
    for directory in report.libraries:
        # A specs file rewrites the driver's command lines: it is part of the tool.
        specs = os.path.join(project_root, directory, "specs")
        if disk.exists(specs):
            try:
                facts.append((f"specs.{specs}", disk.sha256(specs)))
            except OSError as error:
                return Unavailable(COMPONENT, f"cannot read {specs}: {error}")
    return Evidence.of(COMPONENT, tuple(facts))


def _helpers(
    report: DriverReport, search_path: str | None, project_root: str, disk: Disk
) -> dict[str, str | None]:
    programs = tuple(os.path.join(project_root, directory) for directory in report.programs)
    path = path_directories(search_path, project_root)
    searched = (*programs, *path)
    # collect2 prefers these two names over `ld`, in the compiler's own directories only.
    linker = first_executable("real-ld", programs, disk) or first_executable(
        "collect-ld", programs, disk
    )
    return {
        "cc1plus": first_executable("cc1plus", searched, disk),
        "as": first_executable("as", searched, disk),
        "collect2": first_executable("collect2", searched, disk),
        "ld": linker or first_executable("ld", searched, disk),
    }


def _probe(
    driver: Driver, environ: Mapping[str, str], project_root: str
) -> DriverReport | Unavailable:
    spoken = {**environ, "LC_ALL": "C", "LANGUAGE": ""}

    def run(*arguments: str) -> ToolResult:
        return run_tool(
            [driver.path, *arguments],
            cwd=Path(project_root),
            environ=spoken,
            timeout=_PROBE_SECONDS,
            stage=f"probe {driver.path}",
        )

    def ask(*arguments: str) -> str:
        return run(*arguments).stdout.strip()

    try:
        # A wrapper answers every question below by asking the driver that it hides.
        itself = run("-###", "-E", "-x", "c++", os.devnull).stderr
        shown = os.fsencode(driver.path).decode("utf-8", "replace")  # as run_tool decodes it
        if f"COLLECT_GCC={shown}\n" not in itself:
            return Unavailable(COMPONENT, f"{driver.path} is a wrapper that runs another driver")
        directories = dict(
            line.split(": =", 1) for line in ask("-print-search-dirs").splitlines() if ": =" in line
        )
        report = DriverReport(
            version=ask("-dumpfullversion", "-dumpversion"),
            machine=ask("-dumpmachine"),
            programs=_directories(directories.get("programs", "")),
            libraries=_directories(directories.get("libraries", "")),
        )
        if not (report.version and report.machine and report.programs):
            return Unavailable(COMPONENT, f"{driver.path} does not answer as a GCC driver does")
        found = _helpers(report, environ.get("PATH"), project_root, SYSTEM_DISK)
        for name in ("cc1plus", "as", "collect2"):
            said = ask(f"-print-prog-name={name}")
            ours = found[name]
            if "/" in said and (ours is None or not os.path.samefile(said, ours)):
                return Unavailable(COMPONENT, f"{driver.path} uses {said}, not {ours}")
    except (ToolError, OSError) as error:
        return Unavailable(COMPONENT, f"cannot probe {driver.path}: {error}")
    return report


def _directories(listed: str) -> tuple[str, ...]:
    """A driver's directory list in its order, each once: a repetition finds nothing new."""
    return tuple(dict.fromkeys(entry.rstrip("/") for entry in listed.split(":") if entry))


def _record_content(driver: Driver, report: DriverReport) -> bytes:
    fields = {
        "driver": driver.path,
        "libraries": report.libraries,
        "machine": report.machine,
        "programs": report.programs,
        "schema": RECORD_SCHEMA,
        "version": report.version,
    }
    return _canonical({**fields, "sha256": hashlib.sha256(_canonical(fields)).hexdigest()})


def _canonical(fields: Mapping[str, object]) -> bytes:
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


def _parse_record(content: bytes | None, driver: Driver) -> DriverReport | None:
    """The report of a record, or None for one that is absent, damaged or of another schema."""
    if content is None:
        return None
    try:
        fields = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict) or "sha256" not in fields:
        return None
    check = fields.pop("sha256")
    if (
        check != hashlib.sha256(_canonical(fields)).hexdigest()
        or set(fields) != {"driver", "libraries", "machine", "programs", "schema", "version"}
        or type(fields["schema"]) is not int
        or fields["schema"] != RECORD_SCHEMA
        or fields["driver"] != driver.path
    ):
        return None
    version, machine = fields["version"], fields["machine"]
    programs, libraries = fields["programs"], fields["libraries"]
    for directories in (programs, libraries):
        if (
            not isinstance(directories, list)
            or len(directories) > _MAX_DIRECTORIES
            or not all(isinstance(entry, str) and "\0" not in entry for entry in directories)
        ):
            return None
    if not (isinstance(version, str) and isinstance(machine, str) and programs):
        return None
    return DriverReport(version, machine, tuple(programs), tuple(libraries))
