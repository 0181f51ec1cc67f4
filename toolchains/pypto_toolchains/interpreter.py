"""The identity of the running Python interpreter."""

from __future__ import annotations

import sys
from importlib.machinery import EXTENSION_SUFFIXES

from pypto_toolchains.disk import SYSTEM_DISK, Disk
from pypto_toolchains.elf import MalformedElf, NotElf


class InterpreterUnknown(Exception):
    """The running interpreter cannot be identified; the text says why."""


def interpreter_place() -> tuple[str, str, str]:
    """What `interpreter_facts` starts from: version, ABI, and the path as it was started by."""
    return (sys.version, _abi(), sys.executable)


def _abi() -> str:
    return f"{sys.implementation.cache_tag} {EXTENSION_SUFFIXES[0]}"


def interpreter_facts(disk: Disk = SYSTEM_DISK) -> tuple[tuple[str, str], ...]:
    """Version, ABI, resolved executable path, and Build-ID (or content) of this interpreter.

    Raises InterpreterUnknown if there is no readable native executable behind ``sys.executable``.
    """
    if not sys.executable:
        raise InterpreterUnknown("sys.executable is empty: the interpreter is embedded")
    executable = disk.resolved(sys.executable)
    try:
        identity = disk.identity(executable)
    except (OSError, NotElf, MalformedElf) as error:
        raise InterpreterUnknown(f"cannot identify {executable}: {error}") from error
    return (
        ("python.version", sys.version),
        ("python.abi", _abi()),
        ("python.executable", executable),
        ("python.native", identity),
    )
