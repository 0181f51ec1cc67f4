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
from pypto.runtime.sdk import Sdk, default_sdk_root
from pypto.runtime.storage import CompilerFactory
from pypto.runtime.tool_commands import DeclaredTools, MachineTools, Tools
from pypto_toolchains.declared_environment import environment_of_tools
from pypto_toolchains.identity import described_toolchain
from pypto_toolchains.toolchain_description import DescriptionError, read_description

BUILD_DIRECTORY_VARIABLE = "PYPTO_PROG_BUILD_DIR"

_DEFAULT_BUILD_DIRECTORY = "build_output"


def build_parent(environ: Mapping[str, str], cwd: str | Path) -> Path:
    """The directory below which new output directories are made; it may not exist."""
    return Path(cwd, environ.get(BUILD_DIRECTORY_VARIABLE) or _DEFAULT_BUILD_DIRECTORY)


@functools.cache
def installed_sdk() -> Sdk:
    """The SDK of the imported package; read once, installed files do not change in a process."""
    return Sdk.load(default_sdk_root())


def incore_include_dirs(platform: str) -> tuple[str, ...]:
    """Where the installed SDK has the headers for kernels of a platform, as absolute paths."""
    sdk = installed_sdk()
    recipe = sdk.target(platform).incore
    return () if recipe is None else tuple(f"{sdk.root}/{item}" for item in recipe.include_dirs)


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
        sdk = installed_sdk()
        world = environment_of_tools(dict(os.environ if environ is None else environ))
        return KernelCompiler(
            platform,
            sdk=sdk,
            runtime_name=runtime.value,
            cpu_level=cpu_level or host_level(),
            environ=world,
            tools=_tools(sdk, world),
            build_dir=build_dir,
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
