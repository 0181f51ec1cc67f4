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
from pypto_toolchains.identity import (
    IdentityNamespace,
    IdentityRequest,
    Surroundings,
    TargetTools,
    ToolchainIdentity,
)
from pypto_toolchains.installation import Installation, InstalledProduct
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
from pypto_toolchains.policies import POLICIES
from pypto_toolchains.recall import circumstances, decode, encode
from pypto_toolchains.records import ProbeRecord, ProbeRecords
from pypto_toolchains.sdk import METADATA_NAME, SelectedSdk
from pypto_toolchains.search import has_relative_entry

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
    another value, or the working directory. What could not be identified is tried again at the
    next request: whoever mends it need not restart.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sources: SourceHashes | None = None
        self._product: InstalledProduct | None = None
        self._disk = WatchedDisk(SYSTEM_DISK)
        self._known: dict[tuple[object, ...], ToolchainIdentity] = {}
        # What to keep of the identities that this process worked out itself, by their digests.
        self._fresh: dict[Digest, ProbeRecord] = {}
        self._validated: dict[tuple[object, ...], str | None] = {}
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
            memo = self._memo(platform, namespace, environ, cwd)
            known = self._known.get((*memo, cwd))
            if known is not None:
                return known
            found: ToolchainIdentity | Unavailable | None = self._recalled(memo, root)
            if found is None:
                found = self._capture(memo, platform, namespace, environ, cwd, root)
            if isinstance(found, ToolchainIdentity):
                self._known[*memo, cwd] = found
            return found

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
        fresh = self._fresh.get(identity.digest)
        for record in (*identity.records, *(() if fresh is None else (fresh,))):
            if (root, record[0]) not in self._remembered:
                self._remembered.add((root, record[0]))
                ProbeRecords(f"{root}/tools").save(*record)

    def changed(
        self,
        platform: str,
        namespace: IdentityNamespace,
        environ: Mapping[str, str],
        cwd: str,
        root: str,
    ) -> str | None:
        """Why what is installed is not what was identified, or None: for misses, before building.

        The arguments are those of `identity`. It may read every byte, once.
        """
        with self._lock:
            self._begin()
            memo = (*self._memo(platform, namespace, environ, cwd), cwd)
            if memo not in self._validated:
                request = self._request(platform, namespace, environ, cwd, root, SYSTEM_DISK)
                if isinstance(request, Unavailable):
                    return str(request)
                self._validated[memo] = POLICIES[namespace.policy]().validate(request)
            return self._validated[memo]

    @cached_property
    def _variables(self) -> tuple[str, ...]:
        return variables_of_tools()

    def _memo(
        self, platform: str, namespace: IdentityNamespace, environ: Mapping[str, str], cwd: str
    ) -> tuple[object, ...]:
        """All that an identity depends on but files and what is imported."""
        relative = any(
            name in environ and has_relative_entry(environ[name]) for name in _SEARCH_LISTS
        )
        return (
            platform,
            namespace.policy,
            namespace.epoch,
            cwd if relative else None,
            tuple([environ.get(name) for name in self._variables]),
        )

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
        disk = WatchedDisk(SYSTEM_DISK)
        request = self._request(platform, namespace, environ, cwd, root, disk)
        if isinstance(request, Unavailable):
            return request
        identity = POLICIES[namespace.policy]().capture(request)
        if isinstance(identity, ToolchainIdentity) and identity.recallable:
            observations = (*self._disk.observations, *disk.observations)
            record = encode(identity, request.product.digests, observations)
            self._fresh[identity.digest] = (_circumstances(memo), record)
        return identity

    def _request(
        self,
        platform: str,
        namespace: IdentityNamespace,
        environ: Mapping[str, str],
        cwd: str,
        root: str,
        disk: Disk,
    ) -> IdentityRequest | Unavailable:
        if _native is None:
            told = f"the native extension is not importable: {_not_importable}"
            return Unavailable("pypto", f"{told}; build it with bazelw, or reinstall pypto")
        try:
            sdk = installed_sdk()
            disk.sha256(str(sdk.root / METADATA_NAME))
            # It may have been read long ago. Other processes must not recall its revision by the
            # digest of another one's file.
            if Sdk.load(sdk.root) != sdk:
                told = f"the SDK at {sdk.root} was replaced; restart the process"
                return Unavailable("runtime", told)
            target = _target_tools(sdk, platform)
        except OSError as error:
            return Unavailable("runtime", f"the SDK cannot be read: {error}")
        except SdkError as error:
            return Unavailable("runtime", str(error))
        if self._product is None:
            assert self._sources is not None
            self._product = _product(self._sources, self._disk)
        return IdentityRequest(
            namespace=namespace,
            target=target,
            product=self._product,
            sdk=SelectedSdk(str(sdk.root), sdk.revision),
            surroundings=Surroundings(environ, cwd, str(sdk.root)),
            registry=EnvironmentRegistry.load(),
            records=ProbeRecords(f"{root}/tools"),
            disk=disk,
            hasher=file_hasher(),
        )


def _target_tools(sdk: Sdk, platform: str) -> TargetTools:
    """What builds for a platform start. SdkError."""
    target = sdk.target(platform)
    names = [recipe.tool for recipe in target.orchestration.values()]
    if target.incore is not None:
        names.append(target.incore.tool)
    compilers = tuple(sorted({sdk.tools[name] for name in names}))
    return TargetTools(target_of(platform).token, compilers, device=target.incore is None)


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


def _product(hashes: SourceHashes, disk: Disk) -> InstalledProduct:
    installation = Installation(
        packages=_packages(),
        runtime_part=_RUNTIME_PART,
        native=os.path.abspath(_native.__file__),
    )
    return InstalledProduct(installation, hashes, disk)


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
