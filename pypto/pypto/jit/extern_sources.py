"""The C++ side of a kernel's source: the files of its extern kernels, read at every request.

They may be edited between two calls, and no cheap look tells: so a kernel that uses any is resolved
anew each time, and its live objects are found by what the files hold.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from pypto.backend import RuntimeKind
from pypto.ir.external import ExternalKernel
from pypto_store.digest import Digest
from pypto_store.records import RecordBuilder
from pypto_toolchains.process import ToolError

if TYPE_CHECKING:
    from pypto.language.extern_package import ExternPackage
    from pypto.runtime.kernel_compiler import KernelCompiler
    from pypto.runtime.storage import CompilerFactory


@dataclass(frozen=True, slots=True)
class ExternSources:
    """The files of a kernel's extern kernels at one moment, in the order of its functions."""

    packages: Mapping[ExternalKernel, ExternPackage]

    @property
    def problem(self) -> str | None:
        """Why an artifact cannot have all that its build reads, or None."""
        found = (package.problem for package in self.packages.values())
        return next((problem for problem in found if problem is not None), None)

    def joined(self, source: Digest) -> Digest:
        """The digest of the whole source, `source` being that of the Python side."""
        if not self.packages:
            return source
        record = RecordBuilder("pypto.source-with-externs/v1").digest("python", source)
        record.sequence("externs", [package.digest for package in self.packages.values()])
        return record.finish()

    def in_users_terms(self, compilers: CompilerFactory) -> CompilerFactory:
        """Compilers whose errors name the files of the user, not their copies."""
        origins = {
            file.path: file.origin for package in self.packages.values() for file in package.files
        }
        if not origins:
            return compilers

        def make(platform: str, runtime: RuntimeKind) -> KernelCompiler:
            return cast("KernelCompiler", _InUsersTerms(compilers(platform, runtime), origins))

        return make


NO_EXTERNS = ExternSources(MappingProxyType({}))


def read_externs(
    kernels: tuple[ExternalKernel, ...], platform: str, environ: Mapping[str, str]
) -> ExternSources:
    """The files of `kernels` as they are now, for a build for `platform`.

    `environ` selects the headers that every kernel may include, which are no files of theirs.
    """
    if not kernels:
        return NO_EXTERNS
    from pypto.language.extern_package import read_package
    from pypto.runtime.host import incore_include_dirs

    provided = incore_include_dirs(platform, environ)
    return ExternSources(
        MappingProxyType({kernel: read_package(kernel, provided) for kernel in kernels})
    )


class _InUsersTerms:
    """A compiler whose errors name where a copied file came from; all else is the compiler's."""

    def __init__(self, compiler: KernelCompiler, origins: Mapping[str, str]) -> None:
        self._compiler = compiler
        self._origins = origins

    def compile_incore(self, source: os.PathLike[str], *args: Any, **kwargs: Any) -> bytes:
        try:
            return self._compiler.compile_incore(source, *args, **kwargs)  # type: ignore[arg-type]
        except ToolError as error:
            # Of `<artifact>/kernels/<core>/<name>.cpp`.
            artifact = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(source))))
            error.args = (self._translated(str(error), artifact),)
            error.stderr = self._translated(error.stderr, artifact)
            raise

    def _translated(self, text: str, artifact: str) -> str:
        def origin(found: re.Match[str]) -> str:
            path = os.path.relpath(found.group(), artifact)
            return self._origins.get(path, found.group())

        return re.sub(re.escape(artifact) + r"/(?:[^:\n]*/)?extern/[^:\n]+", origin, text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._compiler, name)
