"""The identity of what compiles here: what is imported and installed, read once for a process."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from pypto.backend import DEFAULT_RUNTIME, target_of
from pypto.runtime.host import selected_isa_root, selected_sdk
from pypto.runtime.sdk import Sdk, SdkError, default_sdk_root
from pypto_toolchains.checkout import Checkout
from pypto_toolchains.disk import Disk, Observation, unchanged
from pypto_toolchains.evidence import Unavailable
from pypto_toolchains.identities import Asked, Identities, Means
from pypto_toolchains.identity import TargetTools, ToolchainIdentity
from pypto_toolchains.installation import Installation
from pypto_toolchains.interpreter import Interpreter
from pypto_toolchains.packages import (
    SKIPPED_DIRECTORIES,
    SUFFIXES,
    FileHasher,
    PackageRoot,
    SourceHashes,
    hash_files,
    hash_sources,
)
from pypto_toolchains.sdk import METADATA_NAME, SelectedSdk

try:
    from pypto import _native
except ImportError as error:
    _native = None  # type: ignore[assignment]
    _not_importable = str(error)

RUNTIME_PART = ("pypto", "runtime")


def file_hasher() -> FileHasher:
    """The native hasher of the imported extension, or the plain one without it."""
    if _native is None:
        return hash_files
    return _native_hasher


def _native_hasher(paths: list[str]) -> list[bytes]:
    # As bytes: a path need not be text.
    return _native.sha256_files([os.fsencode(path) for path in paths])


class Toolchain:
    """Identities for the requests of one process, which may come from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sources: SourceHashes | None = None
        self._identities: Identities | None = None
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        # A thread of the parent may have held it, and that thread is not in this child.
        self._lock = threading.Lock()

    def identity(self, asked: Asked) -> ToolchainIdentity | Unavailable:
        """The identity of the builds that are asked about, or what is missing for one."""
        with self._lock:
            identities = self._begun()
            if isinstance(identities, Unavailable):
                return identities
            return identities.identity(asked)

    def changed(self, asked: Asked) -> str | None:
        """Why what is installed is not what was identified, or None: for misses, before building.

        It may read every byte.
        """
        with self._lock:
            identities = self._begun()
            if isinstance(identities, Unavailable):
                return str(identities)
            return identities.changed(asked)

    def begin(self) -> None:
        """Begin what takes longest, for a request that will want an identity."""
        with self._lock:
            self._begin()

    def remember(self, identity: ToolchainIdentity, root: str) -> None:
        """Keep below `root`, once, what had to be found out about tools."""
        with self._lock:
            if self._identities is not None:
                self._identities.remember(identity, root)

    def _begin(self) -> SourceHashes:
        if self._sources is None:
            self._sources = _begin_hashing(_packages())
        return self._sources

    def _begun(self) -> Identities | Unavailable:
        if self._identities is None:
            if _native is None:
                return Unavailable(
                    "pypto",
                    f"the native extension is not importable: {_not_importable}; "
                    "build it with bazelw, or reinstall pypto",
                )
            self._identities = Identities(
                _installation(), self._begin(), read_sdk, Means(file_hasher(), answers_hold)
            )
        return self._identities


def read_sdk(
    platform: str, environ: Mapping[str, str], disk: Disk
) -> tuple[SelectedSdk, TargetTools] | Unavailable:
    """The SDK that builds of this process read, and what it starts for a platform token."""
    try:
        sdk = selected_sdk(environ)
        found = described_sdk(sdk.root, platform, environ, disk)
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
    return found


def described_sdk(
    root: Path, platform: str, environ: Mapping[str, str], disk: Disk
) -> tuple[SelectedSdk, TargetTools]:
    """What the SDK at `root` says of itself, and what replaces its headers. OSError, SdkError."""
    disk.sha256(str(root / METADATA_NAME))  # for whoever watches what an identity rests on
    sdk = Sdk.load(root)
    target = sdk.target(platform)
    incore = target.incore
    headers = () if incore is None else incore.include_dirs
    sources = [file for one in target.orchestration.values() for file in one.helper_sources]
    beside_sources = {os.path.dirname(file) for file in sources}
    searched = tuple(sorted({*headers, *beside_sources}))
    isa_root = selected_isa_root(environ)
    selected = SelectedSdk(
        str(sdk.root),
        sdk.revision,
        source=None if sdk.revision else Checkout(str(sdk.root), METADATA_NAME, searched),
        # Without a compiler for kernels here, nothing reads the headers.
        isa=None
        if isa_root is None or incore is None
        else Checkout(str(isa_root), incore.forced_header, headers),
    )
    orchestration = target.orchestration.get(DEFAULT_RUNTIME)
    uses = [] if orchestration is None else [(orchestration.tool, orchestration.flags)]
    if incore is not None:
        uses.extend((incore.tool, (*incore.flags, *core)) for core in incore.core_flags.values())
    invocations = tuple([(sdk.tools[tool], options) for tool, options in uses])
    tools = TargetTools(
        target_of(platform).token,
        tuple(sorted({compiler for compiler, _ in invocations})),
        device=incore is None,
        invocations=invocations,
    )
    return selected, tools


def _installation() -> Installation:
    return Installation(
        packages=_packages(),
        runtime_part=RUNTIME_PART,
        native=os.path.abspath(_native.__file__),
        sdk_root=str(default_sdk_root()),
        interpreter=Interpreter.running(),
    )


def answers_hold(observations: Sequence[Observation]) -> bool:
    """Whether the file system gives every answer again."""
    if _native is None:
        return unchanged(observations)
    try:
        if _native.observations_hold(observations):
            return True
    except UnicodeEncodeError:
        return False  # a record that nobody here wrote: there is no such path
    # The native one declines files of an uncommon form.
    return unchanged(observations)


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
    encoded = [os.fsencode(directory) for directory in directories]
    return _native.hash_sources(encoded, SUFFIXES, SKIPPED_DIRECTORIES).wait
