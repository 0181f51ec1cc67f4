"""The `build` identity policy: five components, each with evidence or a reason to do without.

This trusts the identifiers that builds publish (Build-IDs, revisions) and what the effective
tools are, as found by following the steps that will start them. It reads no system header and
no library a tool loads.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pypto_store.digest import Digest
from pypto_store.records import RecordBuilder
from pypto_toolchains.disk import SYSTEM_DISK, Disk
from pypto_toolchains.elf import MalformedElf, NotElf
from pypto_toolchains.environment import EnvironmentRegistry
from pypto_toolchains.evidence import Evidence, Unavailable
from pypto_toolchains.gcc import capture_gcc, has_relative_entry
from pypto_toolchains.interpreter import InterpreterUnknown, interpreter_facts
from pypto_toolchains.packages import PackageRoot, SourceHashes, package_digests
from pypto_toolchains.ptoas import capture_ptoas
from pypto_toolchains.records import ProbeRecords
from pypto_toolchains.sdk import SdkUnknown, is_revision, isa_pin, pin_path

POLICY_VARIABLE = "PYPTO_CACHE_IDENTITY"
EPOCH_VARIABLE = "PYPTO_CACHE_EPOCH"
TOOLCHAIN_VARIABLE = "PYPTO_TOOLCHAIN"

_POLICIES = ("build", "content", "hermetic")


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
    if policy not in _POLICIES:
        raise ValueError(f"{POLICY_VARIABLE}={policy!r} is none of {', '.join(_POLICIES)}")
    described = environ.get(TOOLCHAIN_VARIABLE)
    if policy == "hermetic" and not described:
        raise ValueError(
            f"{POLICY_VARIABLE}=hermetic needs {TOOLCHAIN_VARIABLE}, the toolchain's description"
        )
    if described and policy != "hermetic":
        raise ValueError(
            f"{TOOLCHAIN_VARIABLE} is set but {POLICY_VARIABLE} is {policy!r}; "
            f"set it to hermetic, or unset {TOOLCHAIN_VARIABLE}"
        )
    return IdentityNamespace(policy, environ.get(EPOCH_VARIABLE) or None)


@dataclass(frozen=True, slots=True)
class Installation:
    """What is imported and installed, as found by the caller. All paths are absolute.

    `packages` are the imported roots, `runtime_part` the (package, subdirectory) of theirs that
    dispatches, `native` the extension actually imported, `sdk_root` the SDK with its recorded
    revision.
    """

    packages: tuple[PackageRoot, ...]
    runtime_part: tuple[str, str]
    native: str
    sdk_root: str
    sdk_revision: str

    def digests(self, hashes: SourceHashes) -> dict[str, str]:
        """The digests of the packages and of the runtime part, by name. OSError."""
        return package_digests(self.packages, (self.runtime_part,), hashes)


@dataclass(frozen=True, slots=True)
class ToolchainIdentity:
    """One digest over all that takes part, and the components it is made of.

    `settings` are the choices and variables that take part beside them, None where one is not set.
    `record` is what a probe said, for the caller to keep once it may write (see ProbeRecords).
    """

    digest: Digest
    components: tuple[Evidence, ...]
    settings: tuple[tuple[str, str | None], ...]
    record: tuple[str, bytes] | None


class InstallationIdentity:
    """The parts of the identity that cannot change while the process lives.

    Installed files are immutable within a process, so this is captured once and kept. `hashes`,
    begun for the packages, is waited for when a part that needs it is first asked for: by then
    it had the time that the other parts took.
    """

    def __init__(
        self, installation: Installation, hashes: SourceHashes, disk: Disk = SYSTEM_DISK
    ) -> None:
        self.installation = installation
        self.sources: Mapping[str, str] = {}
        """The digests of the packages and of the runtime part, once `parts` has found them."""
        self._hashes = hashes
        self._disk = disk
        self._parts: tuple[Evidence, Evidence] | Unavailable | None = None
        self.pto_isa = _pto_isa(installation, disk)

    def parts(self) -> tuple[Evidence, Evidence] | Unavailable:
        """The `pypto` and `runtime` components."""
        if self._parts is None:
            self._parts = self._captured()
        return self._parts

    def _captured(self) -> tuple[Evidence, Evidence] | Unavailable:
        installation = self.installation
        try:
            interpreter = interpreter_facts(self._disk)
            native = self._disk.identity(installation.native)
            self.sources = installation.digests(self._hashes)
        except InterpreterUnknown as error:
            return Unavailable("pypto", str(error))
        except (OSError, NotElf, MalformedElf) as error:
            return Unavailable("pypto", f"cannot identify the imported package: {error}")
        revision = installation.sdk_revision
        if not is_revision(revision):
            return Unavailable("runtime", f"{installation.sdk_root} records no build revision")
        sources = dict(self.sources)
        runtime = sources.pop("/".join(installation.runtime_part))
        packages = tuple((f"package.{name}", digest) for name, digest in sources.items())
        return (
            Evidence.of("pypto", (*packages, ("native", native), *interpreter)),
            Evidence.of(
                "runtime", (("sdk.revision", revision), ("native", native), ("sources", runtime))
            ),
        )


def capture_build_identity(
    installed: InstallationIdentity,
    *,
    compiler: str,
    namespace: IdentityNamespace,
    registry: EnvironmentRegistry,
    environ: Mapping[str, str],
    project_root: str,
    cwd: str,
    records: ProbeRecords,
    disk: Disk = SYSTEM_DISK,
) -> ToolchainIdentity | Unavailable:
    """The identity of a build by `compiler` run in `project_root`, or the first thing missing.

    `cwd` is the directory of the process; it takes part only where a loader setting depends on it.
    """
    if namespace.policy != "build":
        return Unavailable(
            "toolchain", f"the {namespace.policy!r} identity policy is not available yet"
        )
    bundled = Path(installed.installation.sdk_root, "bin", "ptoas")
    ptoas = capture_ptoas(environ, bundled, Path(project_root), disk)
    device = capture_gcc(compiler, environ, project_root, records, disk)
    parts = installed.parts()
    if isinstance(parts, Unavailable):
        return parts
    components: list[Evidence] = list(parts)
    for outcome in (installed.pto_isa, ptoas, device.outcome):
        if isinstance(outcome, Unavailable):
            return outcome
        components.append(outcome)
    loader_path = environ.get("LD_LIBRARY_PATH")
    relative = loader_path is not None and has_relative_entry(loader_path)
    directory = cwd if relative else None
    variables = tuple((name, environ.get(name)) for name in registry.semantic)
    record = RecordBuilder("pypto.environment/v1")
    record.text("policy", namespace.policy)
    record.sequence("epoch", _bytes(namespace.epoch))
    for component in components:
        record.digest(component.component, component.digest)
    for name, value in variables:
        record.sequence(name, _bytes(value))
    record.sequence("cwd", _bytes(directory))
    settings = (
        ("policy", namespace.policy),
        ("epoch", namespace.epoch),
        *variables,
        ("cwd", directory),
    )
    return ToolchainIdentity(record.finish(), tuple(components), settings, device.record)


def _bytes(value: str | None) -> tuple[bytes, ...]:
    """A variable or path as the system has it, which need not be text; empty for an absent one."""
    return () if value is None else (os.fsencode(value),)


def _pto_isa(installation: Installation, disk: Disk) -> Evidence | Unavailable:
    try:
        pin = isa_pin(installation.sdk_root)
        disk.sha256(pin_path(installation.sdk_root))  # for whoever watches what this rests on
        return Evidence.of("pto_isa", (("pin", pin),))
    except (SdkUnknown, OSError) as error:
        return Unavailable("pto_isa", str(error))
