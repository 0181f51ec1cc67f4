"""Tables of mutations: what may happen to an installation, and what its identity must do then.

A table is a list of `Mutation`s; a test checks each of them in a `House` of its own::

    TABLE = [
        Mutation("a source is edited", "pypto", edit_a_source, Outcome.CHANGES),
        Mutation("PATH gets an unused directory", "", lengthen_path, Outcome.KEEPS),
        Mutation("the assembler is a script", "ptoas", script, Outcome.BYPASSES, "launcher"),
    ]

    @pytest.mark.parametrize("mutation", TABLE, ids=str)
    def test_build_identity(house, mutation):
        check(house, mutation, "build")
"""

from __future__ import annotations

import enum
import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pypto
import pypto_store
import pypto_toolchains
from pypto.jit.toolchain import RUNTIME_PART, answers_hold, described_sdk, file_hasher
from pypto.runtime.host import selected_sdk
from pypto.runtime.sdk import SdkError, default_sdk_root
from pypto_toolchains.disk import Disk
from pypto_toolchains.elf import read_build_id
from pypto_toolchains.evidence import Unavailable
from pypto_toolchains.identities import Asked, Identities, Means
from pypto_toolchains.identity import TargetTools, ToolchainIdentity, identity_namespace
from pypto_toolchains.installation import Installation
from pypto_toolchains.interpreter import Interpreter
from pypto_toolchains.packages import PackageRoot, hash_sources
from pypto_toolchains.sdk import RUNTIME_ROOT_VARIABLE, SelectedSdk, actual_revision

PACKAGES = (pypto, pypto_store, pypto_toolchains)

# Made by builds, or copied apart.
_NO_SOURCES = shutil.ignore_patterns("__pycache__", "_sdk", "_native.so", "BUILD.bazel")


class Outcome(enum.Enum):
    """What an identity does when something happened to the installation."""

    CHANGES = "another key"
    KEEPS = "the same key"
    BYPASSES = "no key: the request goes on without persistence"
    CAUGHT = "the same key, so that hits go on; but a miss publishes nothing"


@dataclass(frozen=True, slots=True)
class Mutation:
    """One thing that may happen to a house.

    `component` is what must have changed with CHANGES (one of COMPONENTS, or "settings"), and what
    is named with BYPASSES and CAUGHT, where `reason` is a part of the text that users see.
    """

    name: str
    component: str
    apply: Callable[[House], object]
    expect: Outcome
    reason: str = ""

    def __str__(self) -> str:
        return self.name.replace(" ", "_")


class House:
    """A complete installation in a directory of its own, every part of which can be changed.

    It has copies of the real packages, the real extension and the real SDK, and finds the tools of
    this machine behind an empty directory of its own, `bin`. Whoever changes an attribute changes
    what the next process finds; processes share the store at `root`.
    """

    def __init__(self, top: Path) -> None:
        self.top = top
        self.site = top / "site"
        for module in PACKAGES:
            source = Path(str(module.__file__)).parent
            shutil.copytree(source, self.site / source.name, ignore=_NO_SOURCES)
        self.package = self.site / "pypto"
        self.native = self.package / "_native.so"
        shutil.copyfile(str(pypto._native.__file__), self.native)
        self.sdk = self.package / "_sdk"
        shutil.copytree(default_sdk_root(), self.sdk)
        make_writable(self.site)
        self.bin = top / "bin"
        self.bin.mkdir()
        self.root = top / "root"
        self.cwd = top / "cwd"
        self.cwd.mkdir()
        self.interpreter = Interpreter.running()
        self.platform = "a2a3sim"
        self.environ = {"PATH": f"{self.bin}:{os.environ.get('PATH', os.defpath)}"}
        self.worked_out = 0
        """How many identities were not recalled."""

    def process(self) -> Process:
        """A new process of this installation, which knows nothing yet."""
        return Process(self)

    def capture(self, policy: str = "build") -> ToolchainIdentity | Unavailable:
        """The identity as the next process finds it, which keeps below `root` what it learned."""
        process = self.process()
        found = process.identity(policy)
        if isinstance(found, ToolchainIdentity):
            process.identities.remember(found, str(self.root))
        return found

    def known(self, policy: str = "build") -> ToolchainIdentity:
        """The identity as the next process finds it. There must be one."""
        found = self.capture(policy)
        assert isinstance(found, ToolchainIdentity), found
        return found

    def facts(self, component: str, policy: str = "build") -> dict[str, str]:
        """The facts of one component."""
        return dict(
            next(c for c in self.known(policy).components if c.component == component).facts
        )

    def build_sdk(self, edit: Callable[[dict[str, object]], object] = lambda _: None) -> None:
        """Record the files of the SDK as a build does, with `edit`ed metadata."""
        path = self.sdk / "sdk.json"
        metadata = json.loads(path.read_text())
        edit(metadata)
        metadata["revision"] = actual_revision(self.sdk)
        path.write_text(json.dumps(metadata))

    def tool(self, name: str, content: str | Path) -> Path:
        """Put a tool first on PATH: a copy of a file, or a script with this text."""
        path = self.bin / name
        path.unlink(missing_ok=True)
        if isinstance(content, Path):
            shutil.copyfile(content, path)
        else:
            path.write_text(content)
        path.chmod(0o755)
        return path


class Process:
    """One process of a house. What it finds stays for its life, as for a real one's."""

    def __init__(self, house: House) -> None:
        self.house = house
        names = [Path(str(module.__file__)).parent.name for module in PACKAGES]
        installation = Installation(
            packages=tuple(PackageRoot(name, str(house.site / name)) for name in names),
            runtime_part=RUNTIME_PART,
            native=str(house.native),
            sdk_root=str(house.sdk),
            interpreter=house.interpreter,
        )
        hashes = hash_sources([package.directory for package in installation.packages])
        means = Means(file_hasher(), answers_hold)
        self.identities = Identities(installation, hashes, self._read_sdk, means)

    def identity(self, policy: str = "build") -> ToolchainIdentity | Unavailable:
        """The identity of a request with the house's environment as it is now."""
        return self.identities.identity(self._asked(policy))

    def changed(self, policy: str = "build") -> str | None:
        """Why a miss would publish nothing."""
        return self.identities.changed(self._asked(policy))

    def _asked(self, policy: str) -> Asked:
        house = self.house
        environ = {**house.environ, "PYPTO_CACHE_IDENTITY": policy}
        if policy != "hermetic":
            environ.pop("PYPTO_TOOLCHAIN", None)
        namespace = identity_namespace(environ)
        return Asked(house.platform, namespace, environ, str(house.cwd), str(house.root))

    def _read_sdk(
        self, platform: str, environ: Mapping[str, str], disk: Disk
    ) -> tuple[SelectedSdk, TargetTools] | Unavailable:
        self.house.worked_out += 1
        try:
            selected = bool(environ.get(RUNTIME_ROOT_VARIABLE))
            root = selected_sdk(environ).root if selected else self.house.sdk
            return described_sdk(root, platform, environ, disk)
        except (OSError, SdkError) as error:
            return Unavailable("runtime", str(error))


def check(house: House, mutation: Mutation, policy: str = "build") -> None:
    """The identity before and after a mutation differ as it says.

    Seen by a process that may recall it and by one that works everything out: both must agree.
    """
    before = house.known(policy)
    told = house.worked_out
    assert recalled(house.known(policy)) == recalled(before)
    assert house.worked_out == told + (0 if before.recallable else 1)
    assert house.process().changed(policy) is None
    mutation.apply(house)
    after = house.capture(policy)
    house.root = house.top / "empty"
    fresh = house.capture(policy)
    changed = house.process().changed(policy)
    if isinstance(fresh, Unavailable):
        assert mutation.expect is Outcome.BYPASSES, fresh
        assert after == fresh
        assert fresh.component == mutation.component, fresh
        assert mutation.reason in fresh.reason, fresh
        return
    assert isinstance(after, ToolchainIdentity), (after, fresh)
    assert recalled(after) == recalled(fresh)
    assert mutation.expect is not Outcome.BYPASSES, "it has an identity still"
    if mutation.expect is Outcome.CHANGES:
        assert mutation.component in differences(before, fresh)
    else:
        assert not differences(before, fresh)
        assert fresh.digest == before.digest
    if mutation.expect is Outcome.CAUGHT:
        assert changed is not None
        assert changed.startswith(f"{mutation.component}: ")
        assert mutation.reason in changed, changed
    else:
        assert changed is None


def recalled(identity: ToolchainIdentity) -> tuple[object, ...]:
    """What of an identity does not depend on how it was found."""
    return (identity.digest, identity.components, identity.settings)


def differences(one: ToolchainIdentity, other: ToolchainIdentity) -> set[str]:
    """The components that differ, and "settings" where those do."""
    pairs = zip(one.components, other.components, strict=True)
    found = {a.component for a, b in pairs if a.digest != b.digest}
    if one.settings != other.settings:
        found.add("settings")
    assert bool(found) == (one.digest != other.digest)
    return found


def append(path: str) -> Callable[[House], object]:
    """Add a line to a file below the packages."""

    def edit(house: House) -> None:
        with (house.site / path).open("a") as file:
            file.write("\n")

    return edit


def make_writable(top: Path) -> None:
    """Let tests change what was copied from a read-only place."""
    for directory, _, files in os.walk(top):
        Path(directory).chmod(0o755)
        for name in files:
            path = Path(directory, name)
            path.chmod(0o755 if os.access(path, os.X_OK) else 0o644)


def other_build_id(path: Path) -> None:
    """Give an ELF file another Build-ID, as another build of it has."""
    found = read_build_id(str(path))
    assert found is not None, f"{path} has no Build-ID"
    content = path.read_bytes()
    assert content.count(found) == 1
    path.write_bytes(content.replace(found, bytes([found[0] ^ 1]) + found[1:]))


def this_python() -> Path:
    """The file of the running interpreter, without links."""
    return Path(os.path.realpath(sys.executable))
