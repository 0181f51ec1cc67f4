"""Telling who holds a lock, for people whose process waits for it.

The kernel lists locks with the process that took each. What it does not show (another machine's,
another container's) is said to be unknown; nothing is decided by it. Imported only by who waits
for long.
"""

from __future__ import annotations

import logging
import os
import re

# 1: FLOCK  ADVISORY  WRITE 2710 fe:00:2154497 0 EOF; an arrow marks those who wait themselves.
_LOCK = re.compile(r"\d+: FLOCK +\S+ +\S+ +(\d+) ([0-9a-f]+):([0-9a-f]+):(\d+) ")
_COMMAND_LIMIT = 160  # characters
_log = logging.getLogger(__name__)


def describe_holder(descriptor: int) -> tuple[str, bool]:
    """Who holds the lock of an open lock file, in words, and whether it is stopped."""
    pids = _holders(descriptor)
    if not pids:
        return "a process that cannot be seen from here, perhaps on another machine", False
    stopped = [pid for pid in pids if _state(pid) in ("T", "t")]
    told = ", ".join(_describe(pid, pid in stopped) for pid in pids)
    return told, bool(stopped)


def report_wait(path: str, descriptor: int, waited: float, *, urgent: bool) -> None:
    """Log that the lock at `path` has been waited for, and who holds it.

    waited: seconds. A warning if `urgent`, or if the holder is stopped and will not end by itself.
    """
    holder, stopped = describe_holder(descriptor)
    level = logging.WARNING if urgent or stopped else logging.INFO
    _log.log(level, "waiting since %.0f s for %s, held by %s", waited, path, holder)


def _holders(descriptor: int) -> list[int]:
    status = os.fstat(descriptor)
    place = (os.major(status.st_dev), os.minor(status.st_dev), status.st_ino)
    exact: list[int] = []
    similar: list[int] = []
    for line in _read("/proc/locks").splitlines():
        found = _LOCK.match(line)
        if found is None or int(found[1]) == 0 or int(found[4]) != status.st_ino:
            continue
        # Some file systems show files another device than locks: then the inode has to do.
        known = exact if (int(found[2], 16), int(found[3], 16)) == place[:2] else similar
        known.append(int(found[1]))
    return exact or similar


def _describe(pid: int, stopped: bool) -> str:
    command = " ".join(_read(f"/proc/{pid}/cmdline").replace("\0", " ").split())
    told = "this process" if pid == os.getpid() else f"process {pid}"
    if command:
        short = command if len(command) <= _COMMAND_LIMIT else f"{command[:_COMMAND_LIMIT]}..."
        told += f" ({short})"
    return f"{told}, which is stopped (kill -CONT {pid} lets it go on)" if stopped else told


def _state(pid: int) -> str:
    # The state follows the program's name, which may hold blanks and brackets itself.
    return _read(f"/proc/{pid}/stat").rpartition(")")[2].strip()[:1]


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
