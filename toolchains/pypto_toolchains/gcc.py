"""The identity of a GCC driver and of the helpers it runs, without running it twice.

Which helper a driver starts depends on the driver, on a few variables and on which of the paths
it tries exist. What the driver itself contributes (its version and where it searches) is learned
by a probe once and kept in a record whose name is a digest of the driver's path, of where that
leads, its Build-ID and those variables. Everything else, that is every path tried before each
helper and the Build-ID of the helper found, is looked at anew each time, so a record never goes
stale.

Helpers that a build of ours starts, and where they are searched:

    cc1plus, as   the driver's own prefixes, then PATH, as execvp does
    collect2      the driver's own prefixes
    ld            by collect2: real-ld, collect-ld and ld in the driver's prefixes, then, on PATH,
                  ld, or <machine>-ld for a cross compiler
    plugin        what the linker loads for the driver's sake; the driver's own prefixes
    specs         files that rewrite the driver's command lines; all of its prefixes

lto-wrapper and the compilers it starts are not among them: ``-flto`` is refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pypto_toolchains.disk import SYSTEM_DISK, Disk
from pypto_toolchains.elf import MalformedElf, NotElf
from pypto_toolchains.evidence import Unavailable
from pypto_toolchains.gcc_probe import (
    COMPONENT,
    Driver,
    DriverReport,
    Started,
    clang,
    decode_record,
    encode_record,
    probe,
    record_name,
)
from pypto_toolchains.records import ProbeRecords
from pypto_toolchains.search import find_executable, link_target, path_directories

_DRIVER_NAME = re.compile(r"(?:[A-Za-z0-9_.]+-)*(?:g\+\+|c\+\+|gcc)(?:-[0-9][0-9.]*)?")
_LINKER = "-fuse-ld="
# They let the driver start, load or read something that is not followed here.
_NOT_FOLLOWED = ("-specs", "--specs", "-wrapper", "-fplugin", "-flto", "-gsplit-dwarf", "@")


@dataclass(frozen=True, slots=True)
class Gcc:
    """An identified driver.

    `helpers` are the paths of what it runs or has loaded, by name; `facts` are the evidence.
    `record` is what a probe said, if one had to run: (name, content) for `ProbeRecords.save`.
    """

    driver: Driver
    report: DriverReport
    helpers: Mapping[str, str]
    facts: tuple[tuple[str, str], ...]
    record: tuple[str, bytes] | None


def select_driver(
    name: str, environ: Mapping[str, str], project_root: str, disk: Disk = SYSTEM_DISK
) -> Driver | Unavailable:
    """The driver that a child in `project_root` starts for `name` (a bare name or a path).

    Unavailable for a missing one, for a script, and for an ELF file whose name is not that of a
    GCC driver. A wrapper under such a name is found out by the probe.
    """
    path = find_executable(name, environ.get("PATH"), project_root, disk)
    if path is None:
        return Unavailable(COMPONENT, f"no C++ compiler {name!r} on PATH; install it")
    try:
        called = os.path.basename(link_target(path, disk))
        executable = disk.resolved(path)
        identity = disk.identity(executable)
    except NotElf:
        return Unavailable(
            COMPONENT,
            f"{path} is a script and not a GCC driver; put the directory of the compiler that it "
            "runs first on PATH",
        )
    except (OSError, MalformedElf) as error:
        return Unavailable(COMPONENT, f"cannot identify {path}: {error}")
    if called.startswith("clang"):
        return clang(path, executable)
    if not _DRIVER_NAME.fullmatch(called):
        return Unavailable(
            COMPONENT,
            f"{path} runs {executable}, an unrecognised compiler or compiler wrapper; put the "
            "directory of g++ first on PATH",
        )
    return Driver(path, executable, identity)


def identify_gcc(
    name: str,
    options: Sequence[str],
    environ: Mapping[str, str],
    project_root: str,
    records: ProbeRecords,
    disk: Disk = SYSTEM_DISK,
) -> Gcc | Unavailable:
    """The driver `name` and its helpers, for compiles with `options` run in `project_root`.

    Options that have nothing to do with which tools are run may be among them.
    """
    steering = _steering(options)
    if isinstance(steering, Unavailable):
        return steering
    driver = select_driver(name, environ, project_root, disk)
    if isinstance(driver, Unavailable):
        return driver
    kept = record_name(driver, steering, environ, project_root)
    report = decode_record(records.load(kept), driver)
    fresh = None
    try:
        if report is None or _specs(report, project_root, disk) != report.specs:
            probed = probe(driver, steering, environ, project_root)
            if isinstance(probed, Unavailable):
                return probed
            report, started = probed
            report = replace(report, specs=_specs(report, project_root, disk))
            fresh = (kept, encode_record(driver, report))
            found = _helpers(report, steering, environ.get("PATH"), project_root, disk)
            # The driver does not know the names that collect2 prefers for the linker.
            linker = _linker(steering)
            own = _absolute(report.programs, project_root)
            found[linker] = _first(linker, own, disk.is_executable)
            if problem := _contradiction(driver, started, found, project_root):
                return problem
    except OSError as error:
        return Unavailable(COMPONENT, f"cannot read what {driver.path} reads: {error}")
    helpers = _helpers(report, steering, environ.get("PATH"), project_root, disk)
    facts = _facts(driver, report, helpers, disk)
    if isinstance(facts, Unavailable):
        return facts
    there = {helper: path for helper, path in helpers.items() if path is not None}
    return Gcc(driver, report, there, facts, fresh)


def _steering(options: Sequence[str]) -> tuple[str, ...] | Unavailable:
    """The options that decide which tools are run, each in one word."""
    steering = []
    words = iter(options)
    for word in words:
        if word.startswith(_NOT_FOLLOWED):
            return Unavailable(
                COMPONENT, f"the SDK compiles with {word}, which brings in tools of its own"
            )
        if word.startswith("-B"):
            option = "-B" + (word[2:] or next(words, ""))
            if not option.endswith("/"):
                # Whether it means a directory or the beginning of names depends on what exists.
                return Unavailable(COMPONENT, f"the SDK's option {option} has no final slash")
            steering.append(option)
        elif word.startswith(_LINKER):
            steering.append(word)
    return tuple(steering)


def _facts(
    driver: Driver, report: DriverReport, helpers: Mapping[str, str | None], disk: Disk
) -> tuple[tuple[str, str], ...] | Unavailable:
    facts = [
        ("driver.path", driver.path),
        ("driver.version", report.version),
        ("driver.machine", report.machine),
        # The probe has seen that what was invoked is what ran.
        ("driver.invoked", driver.identity),
        ("driver.executable", driver.executable),
        ("driver.executed", driver.identity),
    ]
    for name, path in helpers.items():
        if path is None:
            package = "binutils" if name in ("as", "ld") else "g++"
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
    facts += [(f"specs.{path}", digest) for path, digest in report.specs]
    return tuple(facts)


def _helpers(
    report: DriverReport,
    steering: Sequence[str],
    search_path: str | None,
    project_root: str,
    disk: Disk,
) -> dict[str, str | None]:
    own = _absolute(report.programs, project_root)
    searched = _as_prefixes(path_directories(search_path, project_root))
    # collect2 has no PATH of its own to fall back to.
    linkers = () if search_path is None else searched
    linker = _linker(steering)
    helpers = {
        "cc1plus": _first("cc1plus", (*own, *searched), disk.is_executable),
        "as": _first("as", (*own, *searched), disk.is_executable),
        "collect2": _first("collect2", own, disk.is_executable),
        "ld": (
            _first("real-ld", own, disk.is_executable)
            or _first("collect-ld", own, disk.is_executable)
            or _first(linker, own, disk.is_executable)
            or _first(
                f"{report.machine}-{linker}" if report.cross else linker,
                linkers,
                disk.is_executable,
            )
        ),
    }
    if report.plugin:
        helpers["plugin"] = _first(report.plugin, own, disk.exists)
    return helpers


def _linker(steering: Sequence[str]) -> str:
    """The linker's name, as the last option about it has it."""
    chosen = [option.removeprefix(_LINKER) for option in steering if option.startswith(_LINKER)]
    return f"ld.{chosen[-1]}" if chosen else "ld"


def _specs(report: DriverReport, project_root: str, disk: Disk) -> tuple[tuple[str, str], ...]:
    prefixes = _absolute((*report.libraries, *report.programs), project_root)
    files = dict.fromkeys(prefix + "specs" for prefix in prefixes)
    return tuple((path, disk.sha256(path)) for path in files if disk.exists(path))


def _absolute(prefixes: Sequence[str], project_root: str) -> tuple[str, ...]:
    return tuple(os.path.join(project_root, prefix) for prefix in prefixes)


def _as_prefixes(directories: Sequence[str]) -> tuple[str, ...]:
    return tuple(directory.rstrip("/") + "/" for directory in directories)


def _first(name: str, prefixes: Sequence[str], usable: Callable[[str], bool]) -> str | None:
    return next((prefix + name for prefix in prefixes if usable(prefix + name)), None)


def _contradiction(
    driver: Driver, started: Sequence[Started], found: Mapping[str, str | None], project_root: str
) -> Unavailable | None:
    """What the driver would start that is not what was found, if anything."""
    for helper in started:
        name = os.path.basename(helper.program)
        ours = found.get(name)
        # Without a directory it is left to PATH, which we searched for it.
        same = "/" not in helper.program or (
            ours is not None and os.path.samefile(os.path.join(project_root, helper.program), ours)
        )
        if name not in found or not same:
            return Unavailable(COMPONENT, f"{driver.path} uses {helper.program}, not {ours}")
    names = {os.path.basename(helper.program) for helper in started}
    if unused := [
        name for name in ("cc1plus", "as", "collect2") if found[name] and name not in names
    ]:
        return Unavailable(COMPONENT, f"{driver.path} does not start {', '.join(unused)}")
    return None
