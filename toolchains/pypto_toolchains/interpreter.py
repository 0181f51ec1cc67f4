"""The identity of the running Python interpreter."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES

from pypto_toolchains.disk import SYSTEM_DISK, Disk
from pypto_toolchains.elf import MalformedElf, NotElf


class InterpreterUnknown(Exception):
    """The interpreter cannot be identified; the text says why."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python interpreter as it describes itself.

    `version` is its full text, with the build's date and compiler, `release` its number alone.
    `executable` is the path it was started by, empty where it is embedded in another program.
    `library` finds the directories of its own library, which takes a moment and is seldom wanted.
    """

    version: str
    release: str
    abi: str
    executable: str
    library: Callable[[], tuple[str, ...]]

    @classmethod
    def running(cls) -> Interpreter:
        """The one that runs this."""
        abi = f"{sys.implementation.cache_tag} {EXTENSION_SUFFIXES[0]}"
        return cls(sys.version, platform.python_version(), abi, sys.executable, _library)


def _library() -> tuple[str, ...]:
    import sysconfig

    # A virtual environment has none of its own.
    base = {"platbase": sysconfig.get_config_var("installed_platbase")}
    places = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib", vars=base))
    return tuple(dict.fromkeys(places))


def interpreter_facts(
    interpreter: Interpreter, disk: Disk = SYSTEM_DISK
) -> tuple[tuple[str, str], ...]:
    """Version, ABI, resolved executable path, and Build-ID (or content) of an interpreter.

    Raises InterpreterUnknown if there is no readable native executable behind its path.
    """
    if not interpreter.executable:
        raise InterpreterUnknown("sys.executable is empty: the interpreter is embedded")
    executable = disk.resolved(interpreter.executable)
    try:
        identity = disk.identity(executable)
    except (OSError, NotElf, MalformedElf) as error:
        raise InterpreterUnknown(f"cannot identify {executable}: {error}") from error
    return (
        ("python.version", interpreter.version),
        ("python.abi", interpreter.abi),
        ("python.executable", executable),
        ("python.native", identity),
    )


def portable_interpreter_facts(interpreter: Interpreter) -> tuple[tuple[str, str], ...]:
    """Release and ABI: what is the same of an interpreter on every machine that has it."""
    return (("python.release", interpreter.release), ("python.abi", interpreter.abi))
