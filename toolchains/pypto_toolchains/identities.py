"""The identities that the requests of one process need, each worked out once.

An identity is remembered under everything it depends on but files: those stay as they are while
the process lives. Another process recalls it from a record (see `recall`) by asking again what it
rests on. What could not be identified is remembered by nobody: whoever mends it need not restart.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pypto_store.digest import Digest
from pypto_toolchains.disk import Disk, Observation, SystemDisk, WatchedDisk
from pypto_toolchains.environment import EnvironmentRegistry, variables_of_tools
from pypto_toolchains.evidence import Unavailable
from pypto_toolchains.identity import (
    TOOLCHAIN_VARIABLE,
    IdentityNamespace,
    IdentityRequest,
    Surroundings,
    TargetTools,
    ToolchainIdentity,
)
from pypto_toolchains.installation import Installation, InstalledProduct
from pypto_toolchains.packages import FileHasher, SourceHashes
from pypto_toolchains.policies import POLICIES
from pypto_toolchains.recall import circumstances, decode, encode
from pypto_toolchains.records import ProbeRecord, ProbeRecords
from pypto_toolchains.sdk import SelectedSdk
from pypto_toolchains.search import has_relative_entry

# A server that changes its directory or its variables for every request must not remember all of
# them.
_MOST_KNOWN = 1024

# Lists whose relative entries make the working directory matter.
_SEARCH_LISTS = ("LD_LIBRARY_PATH",)
# Questions whose answers take longest, asked once where an identity came of it.
_TREES = ("tree", "modules")

SdkReader = Callable[[str, Mapping[str, str], Disk], tuple[SelectedSdk, TargetTools] | Unavailable]
"""Which SDK the environment selects and what it starts for a platform token, asking a disk."""


@dataclass(frozen=True, slots=True)
class Asked:
    """For what an identity is wanted: a platform token, the namespace, and what was read of the
    world. `root` is the absolute path of the store that keeps what is known of tools."""

    platform: str
    namespace: IdentityNamespace
    environ: Mapping[str, str]
    cwd: str
    root: str


@dataclass(frozen=True, slots=True)
class Means:
    """How a process looks at files: in plain Python, or with the native extension's help.

    `recheck` says whether the file system gives every answer again.
    """

    hasher: FileHasher
    recheck: Callable[[Sequence[Observation]], bool]


class Identities:
    """See the module. Calls must not overlap.

    `hashes` was begun for the installation's packages.
    """

    def __init__(
        self,
        installation: Installation,
        hashes: SourceHashes,
        read_sdk: SdkReader,
        means: Means,
    ) -> None:
        self._installation = installation
        self._hashes = hashes
        self._read_sdk = read_sdk
        self._means = means
        # Directories of thousands of files, which stay as they are while the process lives.
        self._trees: dict[tuple[str, str], str] = {}
        self._system = SystemDisk(means.hasher)
        self._disk = WatchedDisk(self._system)
        self._product = InstalledProduct(installation, hashes, self._disk)
        self._variables = variables_of_tools()
        self._known: dict[tuple[object, ...], ToolchainIdentity] = {}
        self._validated: set[tuple[object, ...]] = set()
        # What to keep of the identities that this process worked out itself, by their digests.
        self._fresh: dict[Digest, ProbeRecord] = {}
        self._remembered: set[tuple[str, str]] = set()

    def identity(self, asked: Asked) -> ToolchainIdentity | Unavailable:
        """The identity of the builds that were asked about, or what is missing for one."""
        memo = self._memo(asked)
        known = self._known.get(_here(memo, asked))
        if known is not None:
            return known
        if len(self._known) >= _MOST_KNOWN:
            # Before another is found, which whoever asked may still want to be kept.
            self._forget()
        found: ToolchainIdentity | Unavailable | None = self._recalled(memo, asked.root)
        if found is None:
            found = self._captured(memo, asked)
        if isinstance(found, ToolchainIdentity):
            self._known[_here(memo, asked)] = found
        return found

    def changed(self, asked: Asked) -> str | None:
        """Why what is installed is not what was identified, or None: for misses, before building.

        It may read every byte, once. What was found wrong is looked at again the next time. What
        a user has in hand is held against its identity every time: a checkout, which is edited,
        and a described toolchain, which is installed anew.
        """
        memo = _here(self._memo(asked), asked)
        described = bool(asked.environ.get(TOOLCHAIN_VARIABLE))
        if memo in self._validated and not described:
            return None
        request = self._request(asked, self._system)
        if isinstance(request, Unavailable):
            return str(request)
        policy = POLICIES[asked.namespace.policy]()
        if memo not in self._validated:
            reason = policy.validate(request)
            if reason is not None:
                return reason
            if request.sdk.recallable:
                self._validated.add(memo)
        if described or not request.sdk.recallable:
            return _moved(self._known.get(memo), policy.capture(request))
        return None

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

    def _forget(self) -> None:
        for everything in (self._known, self._validated, self._fresh, self._remembered):
            everything.clear()

    def _memo(self, asked: Asked) -> tuple[object, ...]:
        """All that an identity depends on but files and what is imported.

        The working directory is left out where it is only a reason to look again.
        """
        environ = asked.environ
        relative = any(
            name in environ and has_relative_entry(environ[name]) for name in _SEARCH_LISTS
        ) or not os.path.isabs(environ.get(TOOLCHAIN_VARIABLE, "/"))
        return (
            asked.platform,
            asked.namespace.policy,
            asked.namespace.epoch,
            asked.cwd if relative else None,
            tuple([environ.get(name) for name in self._variables]),
        )

    def _circumstances(self, memo: tuple[object, ...]) -> str:
        """The name under which an identity is recalled: all it depends on but files."""
        one = self._installation
        packages = tuple([(package.name, package.directory) for package in one.packages])
        runs = one.interpreter
        return circumstances(
            (memo, packages, one.native, one.sdk_root, runs.version, runs.abi, runs.executable)
        )

    def _recalled(self, memo: tuple[object, ...], root: str) -> ToolchainIdentity | None:
        """The identity that another process worked out, if all it rests on is as it was."""
        recalled = decode(ProbeRecords(f"{root}/tools").load(self._circumstances(memo)))
        if recalled is None:
            return None
        asked = [
            (kind, path, answer)
            for kind, path, answer in recalled.observations
            if self._trees.get((kind, path)) != answer
        ]
        if not self._means.recheck(asked):
            return None
        try:
            sources = self._installation.digests(self._hashes)
        except OSError:
            return None
        if sources != recalled.sources:
            return None
        self._keep_trees(recalled.observations)
        return recalled.identity

    def _captured(self, memo: tuple[object, ...], asked: Asked) -> ToolchainIdentity | Unavailable:
        disk = WatchedDisk(self._system, self._trees)
        request = self._request(asked, disk)
        if isinstance(request, Unavailable):
            return request
        identity = POLICIES[asked.namespace.policy]().capture(request)
        if isinstance(identity, ToolchainIdentity) and identity.recallable:
            observations = (*self._disk.observations, *disk.observations)
            record = encode(identity, self._product.digests, observations)
            self._fresh[identity.digest] = (self._circumstances(memo), record)
            self._keep_trees(observations)
        return identity

    def _keep_trees(self, observations: Iterable[Observation]) -> None:
        self._trees.update(
            ((kind, path), answer) for kind, path, answer in observations if kind in _TREES
        )

    def _request(self, asked: Asked, disk: Disk) -> IdentityRequest | Unavailable:
        read = self._read_sdk(asked.platform, asked.environ, disk)
        if isinstance(read, Unavailable):
            return read
        sdk, target = read
        return IdentityRequest(
            namespace=asked.namespace,
            target=target,
            product=self._product,
            sdk=sdk,
            surroundings=Surroundings(asked.environ, asked.cwd, sdk.root),
            registry=EnvironmentRegistry.load(),
            records=ProbeRecords(f"{asked.root}/tools"),
            disk=disk,
            hasher=self._means.hasher,
        )


def _here(memo: tuple[object, ...], asked: Asked) -> tuple[object, ...]:
    """The memo, with what lets this process look again: where it is, and whose packages a Python
    program finds."""
    return (*memo, asked.cwd, asked.environ.get("HOME"))


def _moved(known: ToolchainIdentity | None, now: ToolchainIdentity | Unavailable) -> str | None:
    """Why an identity is not the known one any more, or None."""
    if isinstance(now, Unavailable):
        return str(now)
    if known is None or known.digest == now.digest:
        return None
    pairs = zip(known.components, now.components, strict=True)
    changed = next((new.component for old, new in pairs if old != new), "toolchain")
    return f"{changed}: it changed since the process identified it; restart the process"
