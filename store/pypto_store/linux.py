"""System calls that the os module lacks, each with what to do where it is missing.

Imported only when something is published.
"""

from __future__ import annotations

import ctypes
import errno
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
_SYNC_FILE_RANGE_WRITE = 2

_libc = ctypes.CDLL(None, use_errno=True)


def _function(name: str, *arguments: type) -> Callable[..., int] | None:
    function = getattr(_libc, name, None)
    if function is None:
        return None
    function.argtypes = arguments
    function.restype = ctypes.c_int
    return function  # type: ignore[no-any-return]


_renameat2 = _function(
    "renameat2", ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint
)
_sync_file_range = _function(
    "sync_file_range", ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint
)


def rename_new(source: str, target: str) -> None:
    """Rename `source` to `target`, which must not exist (FileExistsError).

    Where the kernel or the file system cannot check that in the same step (NFS, for one), it is
    checked just before; the caller's lock excludes everyone who keeps to the protocol, and a
    directory never replaces a non-empty one.
    """
    if _renameat2 is not None:
        status = _renameat2(
            _AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), _RENAME_NOREPLACE
        )
        if status == 0:
            return
        code = ctypes.get_errno()
        if code not in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
            raise OSError(code, os.strerror(code), source, None, target)
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), source, None, target)
    try:
        os.rename(source, target)
    except OSError as error:
        if error.errno == errno.ENOTEMPTY:
            raise FileExistsError(
                errno.EEXIST, os.strerror(errno.EEXIST), source, None, target
            ) from None
        raise


def start_writeback(descriptor: int) -> None:
    """Ask the kernel to begin writing a file's pages; only a later fsync makes them durable."""
    if _sync_file_range is not None:
        _sync_file_range(descriptor, 0, 0, _SYNC_FILE_RANGE_WRITE)
