"""What an identity of the toolchain is asked for, and how its parts become one digest.

The policies (see `policies`) differ in what they take for evidence. Here is what they share: the
request, the namespace, and the record that every identity is the digest of.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pypto_store.digest import Digest
from pypto_store.records import RecordBuilder
from pypto_toolchains.disk import SYSTEM_DISK, Disk
from pypto_toolchains.environment import EnvironmentRegistry
from pypto_toolchains.evidence import Evidence, Unavailable
from pypto_toolchains.installation import InstalledProduct
from pypto_toolchains.packages import FileHasher, hash_files
from pypto_toolchains.records import ProbeRecord, ProbeRecords
from pypto_toolchains.sdk import SelectedSdk

POLICY_VARIABLE = "PYPTO_CACHE_IDENTITY"
EPOCH_VARIABLE = "PYPTO_CACHE_EPOCH"
TOOLCHAIN_VARIABLE = "PYPTO_TOOLCHAIN"

POLICY_NAMES = ("build", "content", "hermetic")

COMPONENTS = ("pypto", "runtime", "pto_isa", "ptoas", "device_toolchain")
"""What every identity is made of, in the order in which it is joined."""


@dataclass(frozen=True, slots=True)
class IdentityNamespace:
    """Under which rules identities are made, and a user's own generation of them."""

    policy: str
    epoch: str | None


def identity_namespace(environ: Mapping[str, str]) -> IdentityNamespace:
    """The namespace the environment asks for.

    Raises ValueError for an unknown policy, and where the hermetic policy and its toolchain
    description are not given together. An empty epoch equals an unset one.
    """
    policy = environ.get(POLICY_VARIABLE, "build")
    if policy not in POLICY_NAMES:
        raise ValueError(f"{POLICY_VARIABLE}={policy!r} is none of {', '.join(POLICY_NAMES)}")
    described_toolchain(environ)
    return IdentityNamespace(policy, environ.get(EPOCH_VARIABLE) or None)


def described_toolchain(environ: Mapping[str, str]) -> str | None:
    """The description of the toolchain that is used instead of the machine's tools, or None.

    Raises ValueError where the hermetic policy and the description are not given together. Another
    policy's name may be anything: it selects no tools.
    """
    policy = environ.get(POLICY_VARIABLE, "build")
    described = environ.get(TOOLCHAIN_VARIABLE)
    if policy == "hermetic":
        if not described:
            raise ValueError(
                f"{POLICY_VARIABLE}=hermetic needs {TOOLCHAIN_VARIABLE}, the toolchain's "
                f"identity.json; set it, or unset {POLICY_VARIABLE}"
            )
        return described
    if described:
        raise ValueError(
            f"{TOOLCHAIN_VARIABLE} is set but {POLICY_VARIABLE} is {policy!r}; "
            f"set it to hermetic, or unset {TOOLCHAIN_VARIABLE}"
        )
    return None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What was read of the world: the variables, the process's directory, and where tools run.

    Both directories are absolute. Whatever tools resolve, they resolve in `project_root`.
    """

    environ: Mapping[str, str]
    cwd: str
    project_root: str


@dataclass(frozen=True, slots=True)
class TargetTools:
    """What a build for `platform` starts: compilers as the SDK spells them, each once.

    `device` says that kernels are made by the device toolkit, and not by one of the compilers.
    `invocations` are the kinds of compiles: a compiler, and the options that the SDK gives it.
    """

    platform: str
    compilers: tuple[str, ...]
    device: bool
    invocations: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def options_of(self, compiler: str) -> tuple[str, ...]:
        """The options of all compiles by one of the compilers."""
        return tuple(
            option for used, options in self.invocations if used == compiler for option in options
        )


@dataclass(frozen=True, slots=True)
class IdentityRequest:
    """Everything a policy may look at.

    What `capture` asks of the file system goes through `disk`. `hasher` is the quickest one for
    many files at once, which `validate` may need.
    """

    namespace: IdentityNamespace
    target: TargetTools
    product: InstalledProduct
    sdk: SelectedSdk
    surroundings: Surroundings
    registry: EnvironmentRegistry
    records: ProbeRecords
    disk: Disk = SYSTEM_DISK
    hasher: FileHasher = hash_files


@dataclass(frozen=True, slots=True)
class ToolchainIdentity:
    """One digest over all that takes part, and the components it is made of.

    `settings` are the choices and variables that take part beside them, None where one is not set.
    `records` are what probes said, for the caller to keep once it may write (see ProbeRecords).
    `recallable` says that all it rests on was asked of the request's disk and can be asked again.
    """

    digest: Digest
    components: tuple[Evidence, ...]
    settings: tuple[tuple[str, str | None], ...]
    records: tuple[ProbeRecord, ...] = ()
    recallable: bool = True


class IdentityPolicy(Protocol):
    """One set of rules for what the toolchain is known by. Policies hold no state."""

    def capture(self, request: IdentityRequest) -> ToolchainIdentity | Unavailable:
        """The identity, or the first thing that is missing. Starts no process in the common
        case; raises nothing for what it finds."""
        ...

    def validate(self, request: IdentityRequest) -> str | None:
        """Why what was identified is not what is there, or None; asked before building only.

        This may read every byte. The text names the component and says what to do.
        """
        ...


def joined(
    namespace: IdentityNamespace,
    outcomes: Sequence[Evidence | Unavailable],
    settings: Sequence[tuple[str, str | None]],
    *,
    records: Sequence[ProbeRecord] = (),
    recallable: bool = True,
) -> ToolchainIdentity | Unavailable:
    """The identity made of one outcome for each of COMPONENTS, in that order, and of settings.

    Unavailable if one of them is; ValueError for other components, which no input can cause.
    """
    if tuple(outcome.component for outcome in outcomes) != COMPONENTS:
        raise ValueError(f"an identity has the components {', '.join(COMPONENTS)}")
    components = []
    for outcome in outcomes:
        if isinstance(outcome, Unavailable):
            return outcome
        components.append(outcome)
    record = RecordBuilder("pypto.environment/v1")
    record.text("policy", namespace.policy)
    record.sequence("epoch", _bytes(namespace.epoch))
    for component in components:
        record.digest(component.component, component.digest)
    for name, value in settings:
        record.sequence(name, _bytes(value))
    told = (("policy", namespace.policy), ("epoch", namespace.epoch), *settings)
    return ToolchainIdentity(
        record.finish(), tuple(components), told, tuple(records), recallable=recallable
    )


def _bytes(value: str | None) -> tuple[bytes, ...]:
    """A variable or path as the system has it, which need not be text; empty for an absent one."""
    return () if value is None else (os.fsencode(value),)
