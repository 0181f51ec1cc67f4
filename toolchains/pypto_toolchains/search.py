"""Finding an executable the way the program that will start it does."""

from __future__ import annotations

import errno
import os

from pypto_toolchains.disk import SYSTEM_DISK, Disk

_DEFAULT_PATH = "/bin:/usr/bin"
_MAX_LINKS = 40


def link_target(path: str, disk: Disk = SYSTEM_DISK) -> str:
    """What `path` names after following it, as long as it is itself a link.

    Directories on the way may be links still; OSError where links never end.
    """
    for _ in range(_MAX_LINKS):
        said = disk.link(path)
        if not said:
            return path
        path = os.path.join(os.path.dirname(path), said)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)


def first_executable(
    name: str, directories: tuple[str, ...], disk: Disk = SYSTEM_DISK
) -> str | None:
    """The first ``directory/name`` that may be executed, spelled with the directory as given.

    Directories are used as they are, so they must be absolute or relative to the process.
    """
    for directory in directories:
        candidate = f"{directory}/{name}"
        if disk.is_executable(candidate):
            return candidate
    return None


def path_directories(search_path: str | None, cwd: str) -> tuple[str, ...]:
    """The directories of a ``PATH`` value; relative and empty entries are taken from `cwd`.

    A child started in `cwd` resolves its ``PATH`` there, whatever the parent's directory is.
    """
    entries = (_DEFAULT_PATH if search_path is None else search_path).split(os.pathsep)
    return tuple(entry if entry[:1] == "/" else os.path.join(cwd, entry) for entry in entries)


def has_relative_entry(search_path: str) -> bool:
    """Whether a ``:`` (or ``;``) separated list has an entry that depends on the directory."""
    return any(entry[:1] != "/" for entry in search_path.replace(";", ":").split(":"))


def find_executable(
    name: str, search_path: str | None, cwd: str, disk: Disk = SYSTEM_DISK
) -> str | None:
    """The executable a child in `cwd` would start for `name`, or None.

    A name with a slash is no search: it is that file, relative to `cwd`.
    """
    if "/" in name:
        candidate = os.path.join(cwd, name)
        return candidate if disk.is_executable(candidate) else None
    return first_executable(name, path_directories(search_path, cwd), disk)
