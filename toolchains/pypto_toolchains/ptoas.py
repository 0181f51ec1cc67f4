"""Which assembler is used, and what it is known by."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pypto_toolchains.disk import SYSTEM_DISK, Disk
from pypto_toolchains.elf import MalformedElf, NotElf
from pypto_toolchains.evidence import Evidence, Unavailable
from pypto_toolchains.search import find_executable

COMPONENT = "ptoas"
ROOT_VARIABLE = "PTOAS_ROOT"

# Below PTOAS_ROOT, in this order.
_ROOT_SPELLINGS = ("ptoas", "bin/ptoas")


class PtoasNotFound(RuntimeError):
    """There is no assembler where the environment and the package say to look."""


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
    environ: Mapping[str, str], bundled: Path, project_root: Path, disk: Disk = SYSTEM_DISK
) -> Evidence | Unavailable:
    """The Build-ID of a standalone assembler. A launcher script is not identified by itself."""
    try:
        path = select_ptoas(environ, bundled, project_root, disk)
        return Evidence.of(COMPONENT, (("ptoas.native", disk.identity(str(path))),))
    except PtoasNotFound as error:
        return Unavailable(COMPONENT, str(error))
    except NotElf:
        return Unavailable(COMPONENT, f"{path} is a launcher that this version cannot identify")
    except (OSError, MalformedElf) as error:
        return Unavailable(COMPONENT, f"cannot identify {path}: {error}")
