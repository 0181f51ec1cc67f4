"""The identity of what compiles here, remembered for as long as it cannot have changed."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping

from pypto.backend import target_of
from pypto.runtime.host import installed_sdk
from pypto.runtime.sdk import SdkError
from pypto_toolchains.environment import EnvironmentRegistry, VariableClass
from pypto_toolchains.evidence import Unavailable
from pypto_toolchains.gcc import has_relative_entry
from pypto_toolchains.identity import (
    IdentityNamespace,
    Installation,
    InstallationIdentity,
    ToolchainIdentity,
    capture_build_identity,
)
from pypto_toolchains.packages import (
    SKIPPED_DIRECTORIES,
    SUFFIXES,
    FileHasher,
    PackageRoot,
    SourceHashes,
    hash_files,
    hash_sources,
)
from pypto_toolchains.records import ProbeRecords
from pypto_toolchains.sdk import actual_revision

try:
    from pypto import _native
except ImportError as error:
    _native = None  # type: ignore[assignment]
    _not_importable = str(error)

# Lists whose relative entries make the working directory matter.
_SEARCH_LISTS = ("LD_LIBRARY_PATH",)


def file_hasher() -> FileHasher:
    """The native hasher of the imported extension, or the plain one without it."""
    if _native is None:
        return hash_files
    hasher: FileHasher = _native.sha256_files
    return hasher


class Toolchain:
    """Identities for the requests of one process.

    Installed files are immutable within a process, so what depends on them alone is captured
    once. The rest is captured again whenever a variable that tools or their discovery read has
    another value, or the working directory where that matters.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._registry: EnvironmentRegistry | None = None
        self._sources: SourceHashes | None = None
        self._installed: InstallationIdentity | Unavailable | None = None
        self._known: dict[tuple[object, ...], ToolchainIdentity | Unavailable] = {}
        self._patched: str | bool | None = False
        self._remembered: set[tuple[str, str]] = set()
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        # A thread of the parent may have held it, and that thread is not in this child.
        self._lock = threading.Lock()

    def identity(
        self,
        platform: str,
        namespace: IdentityNamespace,
        environ: Mapping[str, str],
        cwd: str,
        root: str,
    ) -> ToolchainIdentity | Unavailable:
        """The identity of a build for `platform`; probe records are read below `root`."""
        target = target_of(platform)
        with self._lock:
            if self._sources is None:
                # What takes longest goes on beside all the rest.
                self._sources = _begin_hashing(_packages())
            if not installed_target_is_host(platform):
                return Unavailable(
                    "device_toolchain", f"platform {target.token!r} needs a device toolkit"
                )
            registry = self._registered()
            relative = any(
                name in environ and has_relative_entry(environ[name]) for name in _SEARCH_LISTS
            )
            memo = (
                platform,
                namespace,
                cwd if relative else None,
                tuple(
                    environ.get(name)
                    for name, kind in registry.classes.items()
                    if kind in (VariableClass.SEMANTIC, VariableClass.TOOL_RESOLUTION)
                ),
            )
            known = self._known.get(memo)
            if known is None:
                known = self._capture(platform, namespace, registry, environ, cwd, root)
                self._known[memo] = known
            return known

    def remember(self, identity: ToolchainIdentity, root: str) -> None:
        """Keep what a probe said below `root`, once, so that the next process starts none."""
        if identity.record is None:
            return
        place = (root, identity.record[0])
        if place not in self._remembered:
            self._remembered.add(place)
            ProbeRecords(f"{root}/tools").save(*identity.record)

    def patched(self) -> str | None:
        """Why the SDK is not what it says it is, or None. Reads all of it, once: for misses."""
        with self._lock:
            if self._patched is False:
                sdk = installed_sdk()
                try:
                    actual = actual_revision(sdk.root, file_hasher())
                except OSError as error:
                    self._patched = f"runtime: the SDK cannot be read: {error}"
                else:
                    self._patched = (
                        None
                        if actual == sdk.revision
                        else f"runtime: the SDK at {sdk.root} was changed after it was built"
                    )
            assert not isinstance(self._patched, bool)
            return self._patched

    def _registered(self) -> EnvironmentRegistry:
        if self._registry is None:
            self._registry = EnvironmentRegistry.load()
        return self._registry

    def _capture(
        self,
        platform: str,
        namespace: IdentityNamespace,
        registry: EnvironmentRegistry,
        environ: Mapping[str, str],
        cwd: str,
        root: str,
    ) -> ToolchainIdentity | Unavailable:
        if self._installed is None:
            assert self._sources is not None
            self._installed = _installed(self._sources)
        if isinstance(self._installed, Unavailable):
            return self._installed
        sdk = installed_sdk()
        recipe = sdk.target(platform).incore
        assert recipe is not None
        return capture_build_identity(
            self._installed,
            compiler=sdk.tools[recipe.tool],
            namespace=namespace,
            registry=registry,
            environ=environ,
            project_root=str(sdk.root),
            cwd=cwd,
            records=ProbeRecords(f"{root}/tools"),
        )


def installed_target_is_host(platform: str) -> bool:
    """Whether binaries for `platform` are made by host tools and run in this process."""
    try:
        target = installed_sdk().target(platform)
    except SdkError:
        return True  # what is missing is said where it is missed
    return target.host and target.incore is not None


def _installed(hashes: SourceHashes) -> InstallationIdentity | Unavailable:
    try:
        sdk = installed_sdk()
    except SdkError as error:
        return Unavailable("runtime", str(error))
    if _native is None:
        return Unavailable("pypto", f"the native extension is not importable: {_not_importable}")
    return InstallationIdentity(
        Installation(
            packages=_packages(),
            runtime_part=("pypto", "runtime"),
            native=os.path.abspath(_native.__file__),
            sdk_root=str(sdk.root),
            sdk_revision=sdk.revision,
        ),
        hashes,
    )


def _packages() -> tuple[PackageRoot, ...]:
    """What was really imported, however it came to be on the path; all are loaded by now."""
    return tuple(
        PackageRoot(name, os.path.dirname(os.path.abspath(str(sys.modules[name].__file__))))
        for name in ("pypto", "pypto_store", "pypto_toolchains")
    )


def _begin_hashing(packages: tuple[PackageRoot, ...]) -> SourceHashes:
    """Start on the sources of the packages, in the background where the extension is there."""
    directories = [package.directory for package in packages]
    if _native is None:
        return hash_sources(directories)
    return _native.hash_sources(directories, SUFFIXES, SKIPPED_DIRECTORIES).wait
