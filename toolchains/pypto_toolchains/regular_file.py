"""Opening a file that somebody else may have put something else in the place of."""

from __future__ import annotations

import errno
import os
import stat


def open_regular(path: str) -> int:
    """A descriptor for reading the regular file at `path`, links followed.

    Raises OSError, for anything else too: a pipe would be waited for until someone writes into it,
    and a device need have no end.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        _check(os.fstat(fd).st_mode, path)
    except OSError:
        os.close(fd)
        raise
    return fd


def _check(mode: int, path: str) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "no regular file", path)
