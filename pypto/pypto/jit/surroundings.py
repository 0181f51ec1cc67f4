"""The world around a request, read once when the request is captured and passed on from there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from pypto_toolchains.declared_environment import environment_of_tools
from pypto_toolchains.identities import Asked
from pypto_toolchains.identity import TOOLCHAIN_VARIABLE, identity_namespace


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What was read of the world when a request was captured."""

    environ: Mapping[str, str]
    cwd: str

    @property
    def tools(self) -> Mapping[str, str]:
        """The environment that tools are found, identified and run in; ValueError as there."""
        return environment_of_tools(self.environ)

    def question(self, platform: str, root: str) -> Asked:
        """What is asked of a `Toolchain` for a build beside a root; ValueError as `tools`."""
        return Asked(platform, identity_namespace(self.environ), self.tools, self.cwd, root)


def read_surroundings() -> Surroundings:
    """The process's environment and working directory as they are now.

    The description of a toolchain is named by its absolute path: compilers are made later.
    """
    try:
        cwd = os.getcwd()
    except FileNotFoundError as error:
        told = "the working directory was removed; change to one that exists"
        raise FileNotFoundError(error.errno, told) from error
    environ = dict(os.environ)
    if described := environ.get(TOOLCHAIN_VARIABLE):
        environ[TOOLCHAIN_VARIABLE] = os.path.join(cwd, described)
    return Surroundings(environ, cwd)
