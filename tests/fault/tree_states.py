"""Which states of a directory have been seen, and what a command imports: both spare repetition.

What follows an interrupted command depends on what it left behind and on nothing else. Most system
calls only read, so most interruptions leave what another one has left already.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import os
import re
import shutil
import stat
import sys
from collections.abc import Callable
from pathlib import Path

# What is drawn for every run, or tells the time: staging and trash, quarantine, output files and
# scratch directories, and the notes about them.
_DRAWN = re.compile(
    rb"(?<![0-9a-f])(?:[0-9a-f]{24}|[0-9a-f]{16}|[0-9a-f]{8})(?![0-9a-f])"
    rb"|(?<=pypto-import-)[a-z0-9_]{8}"
    rb"|\d{8}T\d{6}Z|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"
)

# A digest of what a file holds is enough to compare it.
State = tuple[tuple[bytes, int, bytes, bytes], ...]


def sha256(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def state_of(place: Path) -> State:
    """Every path with its mode, its content, and the first path that is the same file."""
    found = []
    first: dict[int, bytes] = {}
    for parent, directories, files in os.walk(os.fsencode(place)):
        for name in [*directories, *files]:
            path = os.path.join(parent, name)
            status = os.lstat(path)
            shown = _DRAWN.sub(b"?", os.path.relpath(path, os.fsencode(place)))
            content, same = b"", b""
            if stat.S_ISREG(status.st_mode):
                content = Path(os.fsdecode(path)).read_bytes()
                # Only notes, which are short, tell what was drawn.
                content = sha256(_DRAWN.sub(b"?", content) if len(content) < 65536 else content)
                first[status.st_ino] = min(shown, first.get(status.st_ino, shown))
                same = b"%d" % status.st_ino
            elif stat.S_ISLNK(status.st_mode):
                content = os.readlink(path)
            found.append((shown, status.st_mode, content, same))
    return tuple(
        sorted(
            (shown, mode, content, first[int(same)] if same else b"")
            for shown, mode, content, same in found
        )
    )


class Ground:
    """A directory for one command after another, each of which finds it as the template is.

    What is judged of it after a command may change it; equal states have equal sequels, and one of
    them is enough.
    """

    def __init__(self, template: Path, base: Path) -> None:
        self._template, self._base = template, base
        self._seen: set[State] = set()
        self._is_as_before = False
        self.restore()
        self._untouched = state_of(base)

    def is_new(self) -> bool:
        """Whether a command has left a state that none had left before."""
        state = state_of(self._base)
        new = state not in self._seen
        self._seen.add(state)
        self._is_as_before = state == self._untouched and not new
        return new

    def restore(self) -> None:
        """For the next command; at no cost if the last one changed nothing, and was not new."""
        if not self._is_as_before:
            shutil.rmtree(self._base, ignore_errors=True)
            shutil.copytree(self._template, self._base, copy_function=os.link)
        self._is_as_before = False

    def __str__(self) -> str:
        return f"{len(self._seen)} states"


def import_as(action: Callable[[], object]) -> None:
    """Import here what `action` imports, so that children have it; it is done in a child."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            before = set(sys.modules)
            action()
            os.write(write, "\n".join(sorted(set(sys.modules) - before)).encode())
        finally:
            os._exit(0)
    os.close(write)
    with open(read, encoding="utf-8") as report:
        names = report.read().split()
    os.waitpid(pid, 0)
    for name in names:
        importlib.import_module(name)
    # Children find nothing to collect, and leave these pages to the parent.
    gc.collect()
    gc.freeze()
