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
from collections.abc import Mapping, Sequence
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
    name_of_record = record_name(driver, steering, environ, project_root)
    report = decode_record(records.load(name_of_record), driver)
    record = None
    search_path = environ.get("PATH")
    try:
        if (
            report is None
            or report.specs != _Search(report, steering, search_path, project_root, disk).specs()
        ):
            probed = _ask(driver, steering, environ, project_root, disk)
            if isinstance(probed, Unavailable):
                return probed
            report = probed
            record = (name_of_record, encode_record(driver, report))
    except OSError as error:
        return Unavailable(COMPONENT, f"cannot read what {driver.path} reads: {error}")
    helpers = _Search(report, steering, search_path, project_root, disk).helpers()
    facts = _facts(driver, report, helpers, disk)
    if isinstance(facts, Unavailable):
        return facts
    there = {helper: path for helper, path in helpers.items() if path is not None}
    return Gcc(driver, report, there, facts, record)


def _ask(
    driver: Driver,
    steering: Sequence[str],
    environ: Mapping[str, str],
    project_root: str,
    disk: Disk,
) -> DriverReport | Unavailable:
    """What the driver says of itself, unless it would do otherwise than is found here. OSError."""
    probed = probe(driver, steering, environ, project_root)
    if isinstance(probed, Unavailable):
        return probed
    report, started = probed
    search = _Search(report, steering, environ.get("PATH"), project_root, disk)
    problem = _contradiction(driver, started, search)
    return problem or replace(report, specs=search.specs())


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


@dataclass(frozen=True, slots=True)
class _Search:
    """Where a driver, and what it starts, look for what they run."""

    report: DriverReport
    steering: Sequence[str]
    search_path: str | None
    project_root: str
    disk: Disk

    def helpers(self) -> dict[str, str | None]:
        """What a build starts or has loaded, by name; None for what is not there."""
        searched = tuple(
            directory.rstrip("/") + "/"
            for directory in path_directories(self.search_path, self.project_root)
        )
        linker = self.linker()
        # collect2 knows no PATH to fall back to.
        on_path = () if self.search_path is None else searched
        foreign = f"{self.report.machine}-" if self.report.cross else ""
        found = {
            "cc1plus": self.own("cc1plus") or self._first("cc1plus", searched),
            "as": self.own("as") or self._first("as", searched),
            "collect2": self.own("collect2"),
            "ld": (
                self.own("real-ld")
                or self.own("collect-ld")
                or self.own(linker)
                or self._first(foreign + linker, on_path)
            ),
        }
        if self.report.plugin:
            # No program: it need not be executable.
            places = (prefix + self.report.plugin for prefix in self._prefixes())
            found["plugin"] = next((place for place in places if self.disk.exists(place)), None)
        return found

    def own(self, name: str) -> str | None:
        """The program of that name in the driver's own places."""
        return self._first(name, self._prefixes())

    def linker(self) -> str:
        """The linker's name, as the last option about it has it."""
        chosen = [
            option.removeprefix(_LINKER) for option in self.steering if option.startswith(_LINKER)
        ]
        return f"ld.{chosen[-1]}" if chosen else "ld"

    def specs(self) -> tuple[tuple[str, str], ...]:
        """The files that rewrite command lines, and perhaps some that are not read. OSError."""
        prefixes = (*self._absolute(self.report.libraries), *self._prefixes())
        files = dict.fromkeys(prefix + "specs" for prefix in prefixes)
        return tuple((path, self.disk.sha256(path)) for path in files if self.disk.exists(path))

    def _prefixes(self) -> tuple[str, ...]:
        return self._absolute(self.report.programs)

    def _absolute(self, prefixes: Sequence[str]) -> tuple[str, ...]:
        return tuple(os.path.join(self.project_root, prefix) for prefix in prefixes)

    def _first(self, name: str, prefixes: Sequence[str]) -> str | None:
        candidates = (prefix + name for prefix in prefixes)
        return next((path for path in candidates if self.disk.is_executable(path)), None)


def _contradiction(
    driver: Driver, started: Sequence[Started], search: _Search
) -> Unavailable | None:
    """What the driver would start that is not what was found, if anything. OSError."""
    found = search.helpers()
    # Asked about the linker, a driver does not know the names that collect2 prefers.
    found[search.linker()] = search.own(search.linker())
    for helper in started:
        name = os.path.basename(helper.program)
        ours = found.get(name)
        # Without a directory it is left to PATH, which was searched for it.
        same = "/" not in helper.program or (
            ours is not None
            and os.path.samefile(os.path.join(search.project_root, helper.program), ours)
        )
        if name not in found or not same:
            return Unavailable(COMPONENT, f"{driver.path} uses {helper.program}, not {ours}")
    names = {os.path.basename(helper.program) for helper in started}
    if unused := [
        name for name in ("cc1plus", "as", "collect2") if found[name] and name not in names
    ]:
        return Unavailable(COMPONENT, f"{driver.path} does not start {', '.join(unused)}")
    return None
