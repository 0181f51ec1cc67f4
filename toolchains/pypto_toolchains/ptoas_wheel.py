"""The identity of an assembler that was installed as a wheel and is started by its script.

Such an assembler is a Python program around a native compiler. What it does follows from the
interpreter its script names, from how that starts (see `ptoas_startup`), from the wheel and from
the NumPy wheel beside it. All of that is found without importing the compiler; and where anything
could lead out of the wheel, there is no identity, because then its records say nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pypto_toolchains.disk import Disk, read_whole
from pypto_toolchains.elf import MalformedElf, NotElf
from pypto_toolchains.ptoas_launcher import UnknownLauncher, parse_launcher
from pypto_toolchains.ptoas_startup import (
    VALUED_VARIABLES,
    Place,
    Startup,
    StartupUnknown,
    archives,
    before_the_library,
    hook_files,
    startup_of,
)
from pypto_toolchains.records import ProbeRecord, ProbeRecords
from pypto_toolchains.search import has_relative_entry
from pypto_toolchains.wheel_records import (
    RECORD_NAMES,
    InstalledWheel,
    WheelUnknown,
    installed_wheel,
    required_project,
)

COMPILER = "ptoas"
NUMPY = "numpy"
# What the wheel brings: the program, and the libraries of device code it reads.
COMPILER_PACKAGES = (COMPILER, "ptodsl", "TileOps", "SoftOps")

_PYTHON_PATH_VARIABLE = "PYTHONPATH"
_LOCAL_BUILD = "_online"
_CORE = "_core."
_LIBRARY = "libPTOASCompiler"
_MAX_LAUNCHER_BYTES = 64 * 1024


class AssemblerUnknown(Exception):
    """The assembler cannot be identified; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class WheelFacts:
    """What identifies the assembler, and the record of what had to be asked, if anything.

    `of_user` says that its interpreter looks for packages in the home directory.
    """

    facts: tuple[tuple[str, str], ...]
    record: ProbeRecord | None
    of_user: bool


def wheel_facts(
    path: str,
    environ: Mapping[str, str],
    project_root: str,
    records: ProbeRecords,
    disk: Disk,
) -> WheelFacts:
    """The facts of the assembler whose script is `path`. Raises AssemblerUnknown."""
    try:
        return _wheel_facts(path, environ, project_root, records, disk)
    except UnknownLauncher as error:
        raise AssemblerUnknown(
            f"{path} is no launcher that can be identified: {error}; install the ptoas wheel with "
            f"pip or uv, or use a standalone executable"
        ) from error
    except StartupUnknown as error:
        raise AssemblerUnknown(
            f"{path} cannot be identified, because its interpreter does not tell how it starts: "
            f"{error}"
        ) from error
    except WheelUnknown as error:
        raise AssemblerUnknown(f"{path} cannot be identified: {error}") from error
    except (NotElf, MalformedElf) as error:
        raise AssemblerUnknown(
            f"{path} cannot be identified: {error}, and was expected to be an executable or library"
        ) from error
    except OSError as error:
        raise AssemblerUnknown(f"{path} cannot be identified: {error}") from error


def _wheel_facts(
    path: str,
    environ: Mapping[str, str],
    project_root: str,
    records: ProbeRecords,
    disk: Disk,
) -> WheelFacts:
    script = disk.resolved(path)
    launcher = parse_launcher(read_whole(script, disk, _MAX_LAUNCHER_BYTES))
    searched = environ.get(_PYTHON_PATH_VARIABLE)
    if searched and has_relative_entry(searched):
        raise AssemblerUnknown(
            f"{_PYTHON_PATH_VARIABLE} has a relative or empty entry, so where {path} finds its "
            f"packages depends on the directory; make every entry absolute"
        )
    names = (*COMPILER_PACKAGES, NUMPY)
    startup, record = startup_of(
        launcher.interpreter,
        os.path.dirname(script),
        names,
        environ,
        project_root,
        records,
        disk,
    )
    wheel = _compiler_wheel(startup, disk)
    _check_requirements(wheel)
    _check_launcher(launcher.entry, script, wheel, disk)
    for name in COMPILER_PACKAGES:
        _check_package(name, startup.places[name], wheel, disk)
    for file in before_the_library(startup, disk):
        raise AssemblerUnknown(
            f"{file} stands before Python's own module of that name where {path} searches; "
            f"remove or rename it"
        )
    facts = [
        ("launcher", disk.sha256(script)),
        ("python.version", startup.version),
        ("python.abi", startup.abi),
        ("python.executable", disk.resolved(launcher.interpreter)),
        ("python.native", disk.identity(disk.resolved(launcher.interpreter))),
        *((name, environ[name]) for name in VALUED_VARIABLES if name in environ),
        *_startup_facts(startup, disk),
        *_record_facts(wheel),
        *_native_facts(wheel, disk),
        *_numpy_facts(startup.places[NUMPY], wheel, disk),
    ]
    return WheelFacts(tuple(facts), record, startup.of_user)


def _startup_facts(startup: Startup, disk: Disk) -> Iterator[tuple[str, str]]:
    for index, entry in enumerate(startup.search):
        yield f"path.{index}", entry
    for archive in archives(startup, disk):
        yield f"archive.{archive}", disk.sha256(archive)
    for file in hook_files(startup, disk):
        yield f"pth.{file}", disk.sha256(file)
    for name, place in startup.modules:
        if place.file is not None:
            yield f"startup.{name}", f"{place.file} sha256:{disk.sha256(place.file)}"
        elif place.paths:  # a namespace: it has no content of its own
            yield f"startup.{name}", os.pathsep.join(place.paths)
        else:
            raise AssemblerUnknown(
                f"the interpreter starts with a module {name} that no file holds; remove the hook "
                f"that makes it"
            )


def _record_facts(wheel: InstalledWheel) -> Iterator[tuple[str, str]]:
    yield f"{wheel.name}.version", wheel.version
    for name, digest in zip(RECORD_NAMES, wheel.digests, strict=True):
        yield f"{wheel.name}.{name}", digest


def _compiler_wheel(startup: Startup, disk: Disk) -> InstalledWheel:
    place = startup.places[COMPILER]
    if place is None or place.file is None:
        told = "none" if place is None else f"only the namespace {os.pathsep.join(place.paths)}"
        raise AssemblerUnknown(
            f"the launcher's interpreter finds {told} for the package {COMPILER}; install the "
            f"{COMPILER} wheel into its environment"
        )
    return installed_wheel(COMPILER, os.path.dirname(os.path.dirname(place.file)), disk)


def _check_requirements(wheel: InstalledWheel) -> None:
    allowed = {COMPILER: NUMPY}.get(wheel.name)
    for requirement in wheel.requirements:
        if required_project(requirement) != allowed:
            only = f"{allowed} alone" if allowed else "nothing"
            raise AssemblerUnknown(
                f"{wheel.name} {wheel.version} requires {requirement!r}, and is identified only "
                f"where it requires {only}"
            )


def _check_launcher(entry: str, script: str, wheel: InstalledWheel, disk: Disk) -> None:
    ours = (file for file in wheel.files if os.path.basename(file) == os.path.basename(script))
    if entry.partition(":")[0].partition(".")[0] != COMPILER or not any(
        disk.resolved(file) == script for file in ours
    ):
        raise AssemblerUnknown(
            f"{script} is not the command of the {COMPILER} wheel in {wheel.site}; install that "
            f"wheel anew"
        )


def _check_package(name: str, place: Place | None, wheel: InstalledWheel, disk: Disk) -> None:
    """Raise AssemblerUnknown unless imports of `name` stay among the wheel's own files."""
    home = os.path.join(wheel.site, name)
    brought = [file for file in wheel.files if file.startswith(home + os.sep)]
    if place is None:
        if brought:
            raise AssemblerUnknown(
                f"the {wheel.name} wheel in {wheel.site} brings {name}, which its interpreter does "
                f"not find; install the wheel anew"
            )
        return
    if place.file is not None and place.file not in wheel.files:
        raise AssemblerUnknown(
            f"{name} is imported from {place.file}, which is no file of the {wheel.name} wheel in "
            f"{wheel.site}; remove what redirects it"
        )
    if place.paths != (home,) or not brought:
        raise AssemblerUnknown(
            f"{name} is searched in {os.pathsep.join(place.paths) or 'no directory'} and not in "
            f"{home} alone; remove what extends or redirects it"
        )
    _check_contained(brought, wheel, disk)
    if _LOCAL_BUILD in disk.listing(home).split("\0"):
        raise AssemblerUnknown(
            f"{home} holds local builds in {_LOCAL_BUILD}, whose changes no version tells; install "
            f"a released {COMPILER} wheel"
        )


def _check_contained(files: list[str], wheel: InstalledWheel, disk: Disk) -> None:
    """Raise AssemblerUnknown where a link leads from the wheel's directories somewhere else."""
    site = disk.resolved(wheel.site)
    for directory in sorted({os.path.dirname(file) for file in files}):
        inside = os.path.relpath(directory, wheel.site)
        if disk.exists(directory) and disk.resolved(directory) != os.path.join(site, inside):
            raise AssemblerUnknown(
                f"{directory} leads out of the {wheel.name} wheel, to {disk.resolved(directory)}; "
                f"install the wheel by copying"
            )


def _native_facts(wheel: InstalledWheel, disk: Disk) -> Iterator[tuple[str, str]]:
    home = os.path.join(wheel.site, COMPILER)
    cores = []
    for entry in disk.listing(home).split("\0"):
        file = os.path.join(home, entry)
        if not entry.startswith(_CORE):
            continue
        if file not in wheel.files:
            raise AssemblerUnknown(
                f"{file} is no file of the {wheel.name} wheel; remove it, or install the wheel anew"
            )
        if entry.endswith(".so"):
            cores.append(file)
    if not cores:
        raise AssemblerUnknown(
            f"{home} has no native compiler ({_CORE[:-1]}*.so); install the {wheel.name} wheel anew"
        )
    libraries = [file for file in wheel.files if os.path.basename(file).startswith(_LIBRARY)]
    for file in sorted(cores + libraries):
        inside = os.path.relpath(file, wheel.site)
        real = disk.resolved(file)
        if real != os.path.join(disk.resolved(wheel.site), inside):
            raise AssemblerUnknown(
                f"{file} leads out of the {wheel.name} wheel, to {real}; install the wheel by "
                f"copying"
            )
        yield f"native.{inside}", disk.identity(real)


def _numpy_facts(
    place: Place | None, compiler: InstalledWheel, disk: Disk
) -> Iterator[tuple[str, str]]:
    if place is None or place.file is None:
        if compiler.requirements:
            raise AssemblerUnknown(
                f"{compiler.name} requires {NUMPY}, which its interpreter does not find; install "
                f"{NUMPY} into its environment"
            )
        return
    wheel = installed_wheel(NUMPY, os.path.dirname(os.path.dirname(place.file)), disk)
    home = os.path.join(wheel.site, NUMPY)
    if place.file not in wheel.files or place.paths != (home,):
        raise AssemblerUnknown(
            f"{NUMPY} is imported from {place.file}, which is no file of the {NUMPY} wheel in "
            f"{wheel.site}; remove what redirects it"
        )
    _check_requirements(wheel)
    yield from _record_facts(wheel)
