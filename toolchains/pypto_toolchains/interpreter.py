"""The identity of the running Python interpreter."""

from __future__ import annotations

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES

from pypto_toolchains.elf import MalformedElf, NotElf, native_identity


class InterpreterUnknown(Exception):
    """The running interpreter cannot be identified; the text says why."""


def interpreter_facts() -> tuple[tuple[str, str], ...]:
    """Version, ABI, resolved executable path, and Build-ID (or content) of this interpreter.

    Raises InterpreterUnknown if there is no readable native executable behind ``sys.executable``.
    """
    if not sys.executable:
        raise InterpreterUnknown("sys.executable is empty: the interpreter is embedded")
    executable = os.path.realpath(sys.executable)
    try:
        identity = native_identity(executable)
    except (OSError, NotElf, MalformedElf) as error:
        raise InterpreterUnknown(f"cannot identify {executable}: {error}") from error
    return (
        ("python.version", sys.version),
        ("python.abi", f"{sys.implementation.cache_tag} {EXTENSION_SUFFIXES[0]}"),
        ("python.executable", executable),
        ("python.native", identity),
    )
