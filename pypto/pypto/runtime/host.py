"""The edge of this package: what is read from the process when something must be built."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from pathlib import Path

from pypto.backend import RuntimeKind
from pypto.runtime.cpu_level import host_level
from pypto.runtime.errors import ToolchainUnavailable
from pypto.runtime.kernel_compiler import KernelCompiler
from pypto.runtime.log import RuntimeLog
from pypto.runtime.sdk import Sdk, SdkError, default_sdk_root
from pypto.runtime.storage import CompilerFactory
from pypto.runtime.tool_commands import DeclaredTools, MachineTools, Tools
from pypto_toolchains.declared_environment import environment_of_tools
from pypto_toolchains.identity import described_toolchain
from pypto_toolchains.sdk import (
    ISA_ROOT_VARIABLE,
    RUNTIME_ROOT_VARIABLE,
    SdkUnknown,
    selected_root,
)
from pypto_toolchains.toolchain_description import DescriptionError, read_description

ISA_INCLUDE_DIRECTORY = "include"

BUILD_DIRECTORY_VARIABLE = "PYPTO_PROG_BUILD_DIR"

_DEFAULT_BUILD_DIRECTORY = "build_output"


def build_parent(environ: Mapping[str, str], cwd: str | Path) -> Path:
    """The directory below which new output directories are made; it may not exist."""
    return Path(cwd, environ.get(BUILD_DIRECTORY_VARIABLE) or _DEFAULT_BUILD_DIRECTORY)


def environment() -> Mapping[str, str]:
    """The process's environment as it is now, for code below this edge."""
    return dict(os.environ)


@functools.cache
def process_log() -> RuntimeLog:
    """The runtime's log of this process: like `logging` itself, there is one."""
    return RuntimeLog(environment)


def configure_log(level: str | None, *, sync_pypto: bool = False) -> None:
    """Write the runtime's records from ``level`` on to standard error.

    The levels are debug, info, timing, warn, error and null, which writes nothing. ``None`` leaves
    it to ``PYPTO_RUNTIME_LOG`` again. With ``sync_pypto`` the same holds for all of pypto. Raises
    ValueError for another level.
    """
    process_log().configure(level, sync_pypto=sync_pypto)


def log_level() -> str | None:
    """The level in force: the configured one, else the environment's, else None.

    Raises ValueError where ``PYPTO_RUNTIME_LOG`` decides and is no level.
    """
    return process_log().level()


@functools.cache
def installed_sdk() -> Sdk:
    """The SDK of the imported package; read once, installed files do not change in a process."""
    return Sdk.load(default_sdk_root())


def selected_sdk(environ: Mapping[str, str]) -> Sdk:
    """The SDK that builds read: the installed one, unless PYPTO_RUNTIME_ROOT names another.

    Raises SdkError, which says what to do.
    """
    root = _selected_root(environ, RUNTIME_ROOT_VARIABLE)
    if root is None:
        return installed_sdk()
    try:
        return Sdk.load(root)
    except SdkError as error:
        raise SdkError(f"{error}; or correct or unset {RUNTIME_ROOT_VARIABLE}") from error


def selected_isa_root(environ: Mapping[str, str]) -> Path | None:
    """The checkout whose headers PTO_ISA_ROOT puts in place of the SDK's. Raises SdkError."""
    return _selected_root(environ, ISA_ROOT_VARIABLE)


def _selected_root(environ: Mapping[str, str], variable: str) -> Path | None:
    try:
        root = selected_root(environ, variable)
    except SdkUnknown as error:
        raise SdkError(str(error)) from error
    return None if root is None else Path(root)


def ensure_pto_isa_root() -> Path:
    """The directory whose instruction set kernels are compiled with; it exists.

    That is what ``PTO_ISA_ROOT`` selects, or the SDK. Raises SdkError, which says what to do.
    """
    environ = environment_of_tools(environment())
    root = selected_isa_root(environ) or selected_sdk(environ).root
    if not (root / ISA_INCLUDE_DIRECTORY).is_dir():
        raise SdkError(
            f"{root} has no {ISA_INCLUDE_DIRECTORY}/ with the headers of the instruction set; "
            f"correct or unset {ISA_ROOT_VARIABLE}"
        )
    return root


def pto_isa_include_dir() -> Path:
    """The directory of the instruction set's headers, for ``#include "pto/pto-inst.hpp"``."""
    return ensure_pto_isa_root() / ISA_INCLUDE_DIRECTORY


def incore_include_dirs(platform: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Where the headers for kernels of a platform are, as absolute paths."""
    sdk = selected_sdk(environ)
    recipe = sdk.target(platform).incore
    if recipe is None:
        return ()
    isa_root = selected_isa_root(environ)
    roots = [sdk.root] if isa_root is None else [isa_root, sdk.root]
    return tuple(f"{root}/{item}" for root in roots for item in recipe.include_dirs)


def host_compilers(
    *,
    environ: Mapping[str, str] | None = None,
    build_dir: Path | None = None,
    cpu_level: str | None = None,
) -> CompilerFactory:
    """Compilers of the installed SDK for one CPU level, this machine's unless another is given.

    The environment is that of the moment a compiler is made, unless given here. It selects the
    tools as it selects the identity policy: a hermetic toolchain's, or those of the machine.
    """

    def make(platform: str, runtime: RuntimeKind) -> KernelCompiler:
        world = environment_of_tools(dict(os.environ if environ is None else environ))
        sdk = selected_sdk(world)
        return KernelCompiler(
            platform,
            sdk=sdk,
            runtime_name=runtime.value,
            cpu_level=cpu_level or host_level(),
            environ=world,
            tools=_tools(sdk, world),
            build_dir=build_dir,
            isa_root=selected_isa_root(world),
        )

    return make


def _tools(sdk: Sdk, environ: Mapping[str, str]) -> Tools:
    described = described_toolchain(environ)
    if described is None:
        return MachineTools(sdk, environ)
    try:
        return DeclaredTools(sdk, read_description(str(Path(described).absolute())))
    except DescriptionError as error:
        raise ToolchainUnavailable(str(error)) from error
