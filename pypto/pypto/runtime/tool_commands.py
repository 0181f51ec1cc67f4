"""Which commands the SDK's tools are, and in which environment they run.

There are two ways to have tools. Those of the machine are found where the environment says and get
that environment, as whoever set it expects. Those of a hermetic toolchain are where its description
says and get nothing of the environment: they could not give everybody the same bytes otherwise.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pypto.runtime.errors import ToolchainUnavailable
from pypto.runtime.sdk import NATIVE_DIALECT, Dialect, Sdk
from pypto_toolchains.environment import EnvironmentRegistry
from pypto_toolchains.search import find_executable
from pypto_toolchains.toolchain_description import ToolchainDescription

_TEMPORARY_FILES = ("TMPDIR",)
# What a tool keeps between its runs would be an input that nobody declared.
_ALL_FILES = ("TMPDIR", "HOME", "XDG_CACHE_HOME")


@dataclass(frozen=True, slots=True)
class Command:
    """A tool: how its command lines begin, which options they take, and where it runs.

    ``scratch_variables`` name the directory that all it writes goes to, beside ``environ``.
    ``names`` are directories of the tool and what stands for them in what it makes.
    """

    argv: tuple[str, ...]
    dialect: Dialect
    environ: Mapping[str, str]
    scratch_variables: tuple[str, ...]
    names: tuple[tuple[str, str], ...] = ()


class Tools(Protocol):
    """The SDK's tools by name."""

    def command(self, name: str) -> Command:
        """The command; ToolchainUnavailable, which says what to do, if there is none."""
        ...

    def context(self, names: Iterable[str]) -> Mapping[str, str]:
        """What of the named tools decides the bytes that they write. Raises as `command`."""
        ...


class MachineTools:
    """The tools that ``environ`` has, found as a child in the SDK's root would find them."""

    def __init__(self, sdk: Sdk, environ: Mapping[str, str]) -> None:
        self._sdk = sdk
        self._environ = dict(environ)

    def command(self, name: str) -> Command:
        """As Tools has it."""
        dialect = self._sdk.dialects[NATIVE_DIALECT]
        return Command((str(self._path(name)),), dialect, self._environ, _TEMPORARY_FILES)

    def context(self, names: Iterable[str]) -> Mapping[str, str]:
        """As Tools has it."""
        context = {}
        for name in names:
            path = self._path(name)
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            context[f"tool.{name}"] = f"{path.resolve()} sha256:{digest}"
        for variable in EnvironmentRegistry.load().semantic:
            if variable in self._environ:
                context[f"environment.{variable}"] = self._environ[variable]
        return context

    def _path(self, name: str) -> Path:
        spelling = self._sdk.tools[name]
        found = find_executable(spelling, self._environ.get("PATH"), str(self._sdk.root))
        if found is not None:
            return Path(found)
        raise ToolchainUnavailable(
            f"the C++ compiler {spelling!r} was not found"
            + ("" if "/" in spelling else " on PATH")
            + f"; install it (on Debian: apt install {Path(spelling).name})"
        )


class DeclaredTools:
    """The tools of a hermetic toolchain."""

    def __init__(self, sdk: Sdk, description: ToolchainDescription) -> None:
        self._sdk = sdk
        self._description = description

    def command(self, name: str) -> Command:
        """As Tools has it."""
        description = self._description
        tool = description.tools.get(name)
        if tool is None:
            raise ToolchainUnavailable(
                f"{description.path} declares no tool {name!r}, only "
                f"{', '.join(description.tools)}; use a toolchain that has it"
            )
        dialect = self._sdk.dialects.get(tool.dialect)
        if dialect is None:
            raise ToolchainUnavailable(
                f"{description.path} declares {name!r} of the dialect {tool.dialect!r}, which the "
                f"SDK at {self._sdk.root} does not know; use the toolchain of this version of pypto"
            )
        executable = Path(description.directory, tool.argv[0])
        if not (executable.is_file() and os.access(executable, os.X_OK)):
            raise ToolchainUnavailable(
                f"{executable}, the {name!r} of {description.path}, is no executable file; "
                f"install the toolchain again"
            )
        # A driver looks for its parts beside itself, and for some of them in PATH.
        environ = {"PATH": str(executable.parent)}
        names = (
            (description.directory, "toolchain"),
            # As which a tool sees itself when it was started through a link.
            (str(executable.resolve().parent), str(Path("toolchain", tool.argv[0]).parent)),
        )
        return Command((str(executable), *tool.argv[1:]), dialect, environ, _ALL_FILES, names)

    def context(self, names: Iterable[str]) -> Mapping[str, str]:
        """As Tools has it: what is declared is taken to be there."""
        context = {}
        content = self._description.components["device_toolchain"].digest
        for name in names:
            self.command(name)
            tool = self._description.tools[name]
            context[f"tool.{name}"] = f"{tool.dialect} {tool.argv!r} sha256:{content}"
        return context
