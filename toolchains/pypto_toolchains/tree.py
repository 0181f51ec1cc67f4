"""One digest over every file below a directory, for directories of which anything may be read.

It is the SHA-256 of, for every entry but directories, sorted by the bytes of the relative path:

    relative path NUL state LF

where the state is the SHA-256 of a file's content in hex, or a word for what has none: `dangling`
(a link to nothing), `loop` (a link to a directory that it lies in), `special` (a pipe, a socket, a
device). Links are followed, as whoever reads the files follows them. Times, owners and modes are
no part of it. The native extension computes the same (native/files/tree_digest.cc).
"""

from __future__ import annotations

import errno
import hashlib
import os

from pypto_toolchains.packages import FileHasher

ABSENT = ""
"""Of what is no directory."""

_ENDLESS = (errno.ELOOP, errno.ENOENT)


def tree_digest(root: str, skipped: tuple[str, ...], hasher: FileHasher) -> str:
    """The digest of the directory `root` in hex; ABSENT if there is none.

    Directories of a name in `skipped` are left out. Raises OSError for what cannot be read.
    """
    files: list[bytes] = []
    states: dict[bytes, bytes] = {}
    top = os.fsencode(root)
    try:
        _collect(top, b"", tuple(map(os.fsencode, skipped)), (), files, states)
    except (FileNotFoundError, NotADirectoryError):
        if not os.path.isdir(root):
            return ABSENT
        raise
    paths = [os.fsdecode(top + b"/" + name) for name in files]
    for name, digest in zip(files, hasher(paths), strict=True):
        states[name] = digest.hex().encode("ascii")
    content = hashlib.sha256()
    for name in sorted(states):
        content.update(name + b"\0" + states[name] + b"\n")
    return content.hexdigest()


def _collect(
    directory: bytes,
    prefix: bytes,
    skipped: tuple[bytes, ...],
    above: tuple[tuple[int, int], ...],
    files: list[bytes],
    states: dict[bytes, bytes],
) -> None:
    status = os.stat(directory)
    here = (*above, (status.st_dev, status.st_ino))
    if here[-1] in above:
        states[prefix.rstrip(b"/")] = b"loop"
        return
    with os.scandir(directory) as entries:
        for entry in entries:
            name = prefix + entry.name
            if entry.is_dir():
                if entry.name not in skipped:
                    _collect(entry.path, name + b"/", skipped, here, files, states)
            elif entry.is_file():
                files.append(name)
            elif _is_dangling(entry.path):
                states[name] = b"dangling"
            else:
                states[name] = b"special"


def _is_dangling(path: bytes) -> bool:
    try:
        os.stat(path)
    except OSError as error:
        if error.errno in _ENDLESS:
            return True
        raise
    return False
