"""Which assembler is used, and what it is known by.

The assembler that comes with the package is part of its SDK. Another one, selected by the
environment, is identified by what its build published, and has to show that it understands this
version; see `ptoas_wheel` for those that are Python programs, and `ptoas_acceptance`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pypto_toolchains.disk import SYSTEM_DISK, Disk
from pypto_toolchains.elf import MalformedElf, NotElf
from pypto_toolchains.evidence import Evidence, Unavailable
from pypto_toolchains.ptoas_acceptance import acceptance_record, is_kept, refusal
from pypto_toolchains.records import ProbeRecord, ProbeRecords
from pypto_toolchains.search import find_executable

COMPONENT = "ptoas"
ROOT_VARIABLE = "PTOAS_ROOT"

# Below PTOAS_ROOT, in this order.
_ROOT_SPELLINGS = ("ptoas", "bin/ptoas")


class PtoasNotFound(RuntimeError):
    """There is no assembler where the environment and the package say to look."""


@dataclass(frozen=True, slots=True)
class PtoasCapture:
    """The outcome for an assembler, and the records of what it had to be asked, for
    `ProbeRecords.save`.

    `recallable` says that the outcome depends on nothing but files and registered variables.
    """

    outcome: Evidence | Unavailable
    records: tuple[ProbeRecord, ...] = ()
    recallable: bool = True


def select_ptoas(
    environ: Mapping[str, str], bundled: Path, project_root: Path, disk: Disk = SYSTEM_DISK
) -> Path:
    """The assembler to run: `PTOAS_ROOT` alone if set, else the bundled one, else ``PATH``.

    Raises PtoasNotFound, which says what to do.
    """
    root = environ.get(ROOT_VARIABLE)
    if root:
        for spelling in _ROOT_SPELLINGS:
            candidate = os.path.join(project_root, root, spelling)
            if disk.is_executable(candidate):
                return Path(candidate)
        raise PtoasNotFound(
            f"{ROOT_VARIABLE}={root} holds no executable ptoas or bin/ptoas; "
            f"correct it, or unset it to use the bundled assembler"
        )
    if disk.is_executable(str(bundled)):
        return bundled
    found = find_executable("ptoas", environ.get("PATH"), str(project_root), disk)
    if found is None:
        raise PtoasNotFound(
            f"no assembler: {bundled} is missing and PATH has no ptoas; "
            f"reinstall the package or set {ROOT_VARIABLE}"
        )
    return Path(found)


def capture_ptoas(
    environ: Mapping[str, str],
    bundled: Path,
    project_root: Path,
    records: ProbeRecords,
    disk: Disk = SYSTEM_DISK,
) -> PtoasCapture:
    """The identity of the selected assembler: a Build-ID, or the facts of an installed wheel.

    One that is not `bundled` must have been accepted as well. Nothing is started where `records`
    has what would be learned by it.
    """
    try:
        path = select_ptoas(environ, bundled, project_root, disk)
    except PtoasNotFound as error:
        return PtoasCapture(Unavailable(COMPONENT, str(error)))
    try:
        identified = _identified(path, environ, project_root, records, disk)
    except (OSError, MalformedElf) as error:
        return PtoasCapture(Unavailable(COMPONENT, f"cannot identify {path}: {error}"))
    outcome = identified.outcome
    if path == bundled or isinstance(outcome, Unavailable):
        return identified
    accepted = acceptance_record(outcome.digest, environ)
    if is_kept(accepted, records):
        return identified
    refused = refusal(str(path), environ, str(project_root))
    if refused is not None:
        return PtoasCapture(Unavailable(COMPONENT, refused))
    return PtoasCapture(outcome, (*identified.records, accepted), identified.recallable)


def _identified(
    path: Path, environ: Mapping[str, str], project_root: Path, records: ProbeRecords, disk: Disk
) -> PtoasCapture:
    try:
        identity = disk.identity(str(path))
    except NotElf:
        pass
    else:
        return PtoasCapture(Evidence.of(COMPONENT, (("ptoas.native", identity),)))
    from pypto_toolchains.ptoas_wheel import AssemblerUnknown, wheel_facts

    try:
        found = wheel_facts(str(path), environ, str(project_root), records, disk)
    except AssemblerUnknown as error:
        return PtoasCapture(Unavailable(COMPONENT, str(error)))
    kept = () if found.record is None else (found.record,)
    return PtoasCapture(Evidence.of(COMPONENT, found.facts), kept, not found.of_user)
