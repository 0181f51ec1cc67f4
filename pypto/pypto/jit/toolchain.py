"""The identity of what compiles here, remembered for as long as it cannot have changed."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property

from pypto.backend import target_of
from pypto.runtime.host import installed_sdk
from pypto.runtime.sdk import Sdk, SdkError, default_sdk_root
from pypto_store.digest import Digest
from pypto_toolchains.disk import SYSTEM_DISK, Disk, Observation, WatchedDisk, unchanged
from pypto_toolchains.environment import EnvironmentRegistry, variables_of_tools
from pypto_toolchains.evidence import Unavailable
from pypto_toolchains.gcc import has_relative_entry
from pypto_toolchains.identity import (
    IdentityNamespace,
    Installation,
    InstallationIdentity,
    ToolchainIdentity,
    capture_build_identity,
)
from pypto_toolchains.interpreter import interpreter_place
from pypto_toolchains.packages import (
    SKIPPED_DIRECTORIES,
    SUFFIXES,
    FileHasher,
    PackageRoot,
    SourceHashes,
    hash_files,
    hash_sources,
    package_digests,
)
from pypto_toolchains.recall import circumstances, decode, encode
from pypto_toolchains.records import ProbeRecords
from pypto_toolchains.sdk import METADATA_NAME, actual_revision

try:
    from pypto import _native
except ImportError as error:
    _native = None  # type: ignore[assignment]
    _not_importable = str(error)

# Lists whose relative entries make the working directory matter.
_SEARCH_LISTS = ("LD_LIBRARY_PATH",)
_RUNTIME_PART = ("pypto", "runtime")


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
        self._sources: SourceHashes | None = None
        self._installed: InstallationIdentity | Unavailable | None = None
        self._disk = WatchedDisk(SYSTEM_DISK)
        self._known: dict[tuple[object, ...], ToolchainIdentity | Unavailable] = {}
        # What to keep of the identities that this process worked out itself, by their digests.
        self._fresh: dict[Digest, tuple[str, bytes]] = {}
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
        """The identity of a build for `platform`; what is known of tools is read below `root`."""
        with self._lock:
            self._begin()
            relative = any(
                name in environ and has_relative_entry(environ[name]) for name in _SEARCH_LISTS
            )
            memo = (
                platform,
                namespace.policy,
                namespace.epoch,
                cwd if relative else None,
                tuple([environ.get(name) for name in self._variables]),
            )
            known = self._known.get(memo)
            if known is None:
                known = self._recalled(memo, root)
                if known is None:
                    known = self._capture(memo, platform, namespace, environ, cwd, root)
                self._known[memo] = known
            return known

    def begin(self) -> None:
        """Begin what takes longest, for a request that will want an identity."""
        with self._lock:
            self._begin()

    def _begin(self) -> None:
        if self._sources is None:
            self._sources = _begin_hashing(_packages())

    def remember(self, identity: ToolchainIdentity, root: str) -> None:
        """Keep below `root`, once, what had to be found out about tools.

        The next process then starts no tool, and finds its identity by looking again at what this
        one rests on.
        """
        for record in (identity.record, self._fresh.get(identity.digest)):
            if record is not None and (root, record[0]) not in self._remembered:
                self._remembered.add((root, record[0]))
                ProbeRecords(f"{root}/tools").save(*record)

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

    @cached_property
    def _variables(self) -> tuple[str, ...]:
        return variables_of_tools()

    def _recalled(self, memo: tuple[object, ...], root: str) -> ToolchainIdentity | None:
        """The identity that another process worked out, if all it rests on is as it was."""
        assert self._sources is not None
        recalled = decode(ProbeRecords(f"{root}/tools").load(_circumstances(memo)))
        if recalled is None or not _recheck(recalled.observations):
            return None
        try:
            sources = package_digests(_packages(), (_RUNTIME_PART,), self._sources)
        except OSError:
            return None
        return recalled.identity if sources == recalled.sources else None

    def _capture(
        self,
        memo: tuple[object, ...],
        platform: str,
        namespace: IdentityNamespace,
        environ: Mapping[str, str],
        cwd: str,
        root: str,
    ) -> ToolchainIdentity | Unavailable:
        if not installed_target_is_host(platform):
            token = target_of(platform).token
            return Unavailable("device_toolchain", f"platform {token!r} needs a device toolkit")
        if self._installed is None:
            assert self._sources is not None
            self._installed = _installed(self._sources, self._disk)
        if isinstance(self._installed, Unavailable):
            return self._installed
        sdk = installed_sdk()
        recipe = sdk.target(platform).incore
        assert recipe is not None
        disk = WatchedDisk(SYSTEM_DISK)
        identity = capture_build_identity(
            self._installed,
            compiler=sdk.tools[recipe.tool],
            namespace=namespace,
            registry=EnvironmentRegistry.load(),
            environ=environ,
            project_root=str(sdk.root),
            cwd=cwd,
            records=ProbeRecords(f"{root}/tools"),
            disk=disk,
        )
        if isinstance(identity, ToolchainIdentity):
            observations = (*self._disk.observations, *disk.observations)
            record = encode(identity, self._installed.sources, observations)
            self._fresh[identity.digest] = (_circumstances(memo), record)
        return identity


def installed_target_is_host(platform: str) -> bool:
    """Whether binaries for `platform` are made by host tools and run in this process."""
    try:
        target = installed_sdk().target(platform)
    except SdkError:
        return True  # what is missing is said where it is missed
    return target.host and target.incore is not None


def _circumstances(memo: tuple[object, ...]) -> str:
    """The name under which an identity is recalled: all it depends on but files."""
    packages = tuple((package.name, package.directory) for package in _packages())
    native = None if _native is None else os.path.abspath(_native.__file__)
    return circumstances((memo, packages, native, str(default_sdk_root()), interpreter_place()))


def _recheck(observations: Sequence[Observation]) -> bool:
    """Whether the file system gives every answer again."""
    if _native is None:
        return unchanged(observations)
    # The native one declines files of an uncommon form.
    return _native.observations_hold(observations) or unchanged(observations)


def _installed(hashes: SourceHashes, disk: Disk) -> InstallationIdentity | Unavailable:
    try:
        sdk = installed_sdk()
        disk.sha256(str(sdk.root / METADATA_NAME))
        # It may have been read long ago. Other processes must not recall its revision by the
        # digest of another one's file.
        if Sdk.load(sdk.root) != sdk:
            return Unavailable(
                "runtime", f"the SDK at {sdk.root} was replaced; restart the process"
            )
    except OSError as error:
        return Unavailable("runtime", f"the SDK cannot be read: {error}")
    except SdkError as error:
        return Unavailable("runtime", str(error))
    if _native is None:
        return Unavailable("pypto", f"the native extension is not importable: {_not_importable}")
    return InstallationIdentity(
        Installation(
            packages=_packages(),
            runtime_part=_RUNTIME_PART,
            native=os.path.abspath(_native.__file__),
            sdk_root=str(sdk.root),
            sdk_revision=sdk.revision,
        ),
        hashes,
        disk,
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
