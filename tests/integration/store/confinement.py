"""Runs a command where a directory is mounted read-only, or as another user.

    confinement.py mount DIRECTORY -- COMMAND...
    confinement.py user UID -- COMMAND...

The user keeps one right of ours, to read and search everything, because the interpreter may lie
below a home directory; it may write nowhere that UID may not. Exits with 77 and a reason where
the kernel refuses, having run nothing.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from pathlib import Path

REFUSED = 77

_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000
_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
# statvfs flags that a less privileged namespace must keep; statvfs numbers them as mount does.
_KEPT = os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC | os.ST_NOATIME | os.ST_NODIRATIME
_PR_SET_SECUREBITS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE = 28, 47, 2
# Changing the user changes no rights, nor does access(2) leave them out.
_SECBIT_NO_SETUID_FIXUP = 1 << 2
_CAP_DAC_READ_SEARCH = 2
_CAPABILITY_VERSION = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


def _mount(source: str | None, target: str, flags: int) -> None:
    where = None if source is None else os.fsencode(source)
    _call("mount", where, os.fsencode(target), None, ctypes.c_ulong(flags), None)


def _enter_mount_namespace() -> None:
    try:
        _call("unshare", _CLONE_NEWNS)
    except PermissionError:
        uid, gid = os.getuid(), os.getgid()
        _call("unshare", _CLONE_NEWUSER | _CLONE_NEWNS)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    _mount(None, "/", _MS_REC | _MS_PRIVATE)


def mount_read_only(directory: str) -> None:
    """Make `directory` read-only for this process and what it starts."""
    _enter_mount_namespace()
    _mount(directory, directory, _MS_BIND)
    kept = os.statvfs(directory).f_flag & _KEPT
    _mount(None, directory, _MS_BIND | _MS_REMOUNT | _MS_RDONLY | kept)
    os.chdir(os.getcwd())  # if that lies below, it is still the directory under the mount
    try:
        os.mkdir(f"{directory}/writable")
    except OSError as error:
        if error.errno != errno.EROFS:
            raise
    else:
        os.rmdir(f"{directory}/writable")
        raise OSError(errno.EINVAL, "the mount can be written to")


def become(uid: int) -> None:
    """Be another user who may read and search everything but write only what is theirs."""
    _call("prctl", _PR_SET_SECUREBITS, _SECBIT_NO_SETUID_FIXUP, 0, 0, 0)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    right = 1 << _CAP_DAC_READ_SEARCH
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    # Effective, permitted and inheritable, of the lower and the upper 32 rights.
    _call("capset", header, (ctypes.c_uint32 * 6)(right, right, right, 0, 0, 0))
    _call("prctl", _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, _CAP_DAC_READ_SEARCH, 0, 0)


def main(arguments: list[str]) -> None:
    """Confine this process and become the command."""
    how, what, separator, *command = arguments
    if separator != "--" or how not in {"mount", "user"}:
        raise SystemExit(__doc__)
    try:
        if how == "mount":
            mount_read_only(os.path.abspath(what))
        else:
            become(int(what))
    except OSError as error:
        sys.stderr.write(f"confinement refused: {error}\n")
        raise SystemExit(REFUSED) from None
    os.execv(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
