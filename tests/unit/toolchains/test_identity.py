from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pypto_toolchains.environment import EnvironmentRegistry
from pypto_toolchains.evidence import Evidence, Unavailable
from pypto_toolchains.identity import (
    COMPONENTS,
    IdentityNamespace,
    IdentityRequest,
    Surroundings,
    TargetTools,
    ToolchainIdentity,
    identity_namespace,
    joined,
)
from pypto_toolchains.installation import Installation, InstalledProduct
from pypto_toolchains.interpreter import Interpreter
from pypto_toolchains.packages import PackageRoot, hash_sources, package_digest
from pypto_toolchains.policies import POLICIES
from pypto_toolchains.records import ProbeRecords
from pypto_toolchains.sdk import SelectedSdk, actual_revision

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

REGISTRY = EnvironmentRegistry.load()


class House:
    """An installation in a directory of its own, every part of which can be changed."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.package = top / "product"
        self.runtime = self.package / "runtime"
        self.runtime.mkdir(parents=True)
        (self.package / "__init__.py").write_text("A = 1\n")
        (self.runtime / "__init__.py").write_text("B = 1\n")
        self.sdk = top / "sdk"
        (self.sdk / "bin").mkdir(parents=True)
        (self.sdk / "pto_isa.pin").write_text("isa-1\n")
        (self.sdk / "sdk.json").write_text("{}")
        found = [shutil.which(name) for name in ("as", "ld")]
        assert all(found)
        self.executables = [Path(str(path)) for path in found]
        self.native = top / "_native.so"
        shutil.copy(self.executables[0], self.native)
        shutil.copy(self.executables[1], self.sdk / "bin" / "ptoas")
        self.revision = "0" * 64
        self.environ = {"PATH": os.environ.get("PATH", "/usr/bin:/bin")}
        self.cwd = "/"

    def capture(self) -> ToolchainIdentity | Unavailable:
        installation = Installation(
            (PackageRoot("product", str(self.package)),),
            ("product", "runtime"),
            str(self.native),
            str(self.sdk),
            Interpreter.running(),
        )
        namespace = identity_namespace(self.environ)
        request = IdentityRequest(
            namespace=namespace,
            target=TargetTools("a2a3sim", ("g++",), device=False),
            product=InstalledProduct(installation, hash_sources([str(self.package)])),
            sdk=SelectedSdk(str(self.sdk), self.revision),
            surroundings=Surroundings(self.environ, self.cwd, str(self.sdk)),
            registry=REGISTRY,
            records=ProbeRecords(str(self.top / "tools")),
        )
        return POLICIES[namespace.policy]().capture(request)

    def digest(self) -> str:
        identity = self.capture()
        assert isinstance(identity, ToolchainIdentity), identity
        for record in identity.records:
            ProbeRecords(str(self.top / "tools")).save(*record)
        return identity.digest.hex

    def reason(self) -> str:
        identity = self.capture()
        assert isinstance(identity, Unavailable)
        return str(identity)


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def _swap_native(house: House) -> None:
    shutil.copy(house.executables[1], house.native)


def _swap_ptoas(house: House) -> None:
    shutil.copy(house.executables[0], house.sdk / "bin" / "ptoas")


CHANGES: dict[str, Callable[[House], object]] = {
    "a Python source": lambda h: (h.package / "__init__.py").write_text("A = 2\n"),
    "a new source": lambda h: (h.package / "more.py").write_text(""),
    "a template": lambda h: (h.package / "text.tmpl").write_text(""),
    "the runtime's source": lambda h: (h.runtime / "__init__.py").write_text("B = 2\n"),
    "the extension": _swap_native,
    "the assembler": _swap_ptoas,
    "the instruction set": lambda h: (h.sdk / "pto_isa.pin").write_text("isa-2\n"),
    "the SDK's revision": lambda h: setattr(h, "revision", "1" * 64),
    "the epoch": lambda h: h.environ.update(PYPTO_CACHE_EPOCH="2"),
    "an include path": lambda h: h.environ.update(CPATH="/usr/include/x"),
    "the linker's format": lambda h: h.environ.update(GNUTARGET="binary"),
    "a loader path": lambda h: h.environ.update(LD_LIBRARY_PATH="/opt/lib"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_takes_part_counts(house: House, change: str) -> None:
    before = house.digest()
    CHANGES[change](house)
    assert house.digest() != before


def test_what_takes_no_part_does_not_count(house: House) -> None:
    before = house.digest()
    os.utime(house.package / "__init__.py", (1, 1))
    (house.package / "__pycache__").mkdir()
    (house.package / "__pycache__" / "x.py").write_text("")
    (house.package / "notes.txt").write_text("")
    house.environ["PATH"] += ":/nowhere"
    house.environ["LANG"] = "C"
    house.environ["PYPTO_CACHE_EPOCH"] = ""
    house.cwd = "/tmp"
    assert house.digest() == before


@pytest.mark.parametrize("path", ["lib", ":/opt/lib", "/opt/lib:", "/a;;/b", "/a;b"])
def test_a_relative_loader_path_brings_the_directory_in(house: House, path: str) -> None:
    house.environ["LD_LIBRARY_PATH"] = path
    before = house.digest()
    house.cwd = "/tmp"
    assert house.digest() != before


def test_an_absolute_loader_path_does_not(house: House) -> None:
    house.environ["LD_LIBRARY_PATH"] = "/opt/lib:/usr/lib"
    before = house.digest()
    house.cwd = "/tmp"
    assert house.digest() == before


def _launcher(house: House) -> None:
    (house.sdk / "bin" / "ptoas").write_text("#!/bin/sh\n")


MISSING: dict[str, tuple[Callable[[House], object], str]] = {
    "no extension": (lambda h: h.native.unlink(), "pypto"),
    "a script for an extension": (lambda h: h.native.write_text("x"), "pypto"),
    "no pin": (lambda h: (h.sdk / "pto_isa.pin").unlink(), "pto_isa"),
    "an empty pin": (lambda h: (h.sdk / "pto_isa.pin").write_text("\n"), "pto_isa"),
    "no revision": (lambda h: setattr(h, "revision", ""), "runtime"),
    "a launcher": (_launcher, "ptoas"),
    "no compiler": (lambda h: h.environ.update(PATH="/nowhere"), "device_toolchain"),
}


@pytest.mark.parametrize("what", MISSING)
def test_missing_evidence_is_a_reason_and_never_a_key(house: House, what: str) -> None:
    change, culprit = MISSING[what]
    change(house)
    assert culprit in house.reason()


def test_what_is_no_text_counts_too(house: House) -> None:
    # Paths and variables are bytes to the system; os.environ shows others as surrogates.
    found = shutil.which("g++")
    assert found is not None
    digests = [house.digest()]
    for name in ("one\udcfe", "two\udcff"):
        tools = house.top / name
        tools.mkdir()
        (tools / "g++").symlink_to(os.path.realpath(found))
        house.environ["PATH"] = f"{tools}:{os.environ['PATH']}"
        digests.append(house.digest())
        for variable in ("LD_LIBRARY_PATH", "CPATH", "PYPTO_CACHE_EPOCH"):
            house.environ[variable] = str(tools)
            digests.append(house.digest())
    house.environ["LD_LIBRARY_PATH"] = "relative"
    for name in ("one\udcfe", "two\udcff"):
        house.cwd = str(house.top / name)
        digests.append(house.digest())
    assert len(set(digests)) == len(digests)


def test_namespaces_are_checked() -> None:
    assert identity_namespace({}).policy == "build"
    assert identity_namespace({"PYPTO_CACHE_EPOCH": ""}).epoch is None
    for environ in (
        {"PYPTO_CACHE_IDENTITY": "other"},
        {"PYPTO_CACHE_IDENTITY": ""},
        {"PYPTO_CACHE_IDENTITY": "hermetic"},
        {"PYPTO_TOOLCHAIN": "/x"},
    ):
        with pytest.raises(ValueError, match="PYPTO_"):
            identity_namespace(environ)


EVIDENCE = [Evidence.of(name, (("fact", "1"),)) for name in COMPONENTS]


@pytest.mark.conforms("cache.97")
def test_policies_and_epochs_are_apart_even_where_all_else_is_alike() -> None:
    spaces = [(policy, epoch) for policy in POLICIES for epoch in (None, "1", "2")]
    made = [joined(IdentityNamespace(*space), EVIDENCE, (("cwd", None),)) for space in spaces]
    digests = {identity.digest for identity in made if isinstance(identity, ToolchainIdentity)}
    assert len(digests) == len(spaces)


@pytest.mark.conforms("cache.97")
@pytest.mark.parametrize("missing", COMPONENTS)
def test_an_identity_has_every_component(missing: str) -> None:
    build = IdentityNamespace("build", None)
    unknown = Unavailable(missing, "why")
    outcomes = [unknown if item.component == missing else item for item in EVIDENCE]
    assert joined(build, outcomes, ()) == unknown
    fewer = [item for item in EVIDENCE if item.component != missing]
    for others in (fewer, [*fewer, EVIDENCE[0]], EVIDENCE[::-1]):
        with pytest.raises(ValueError, match="pypto, runtime"):
            joined(build, others, ())


def test_every_part_of_an_identity_counts() -> None:
    build = IdentityNamespace("build", None)
    made = [joined(build, EVIDENCE, settings) for settings in (
        (), (("A", None),), (("A", ""),), (("A", "1"),), (("B", "1"),), (("A", "1"), ("B", None)),
    )]  # fmt: skip
    for place, item in enumerate(EVIDENCE):
        other = Evidence.of(item.component, (("fact", "2"),))
        made.append(joined(build, [*EVIDENCE[:place], other, *EVIDENCE[place + 1 :]], ()))
    digests = {identity.digest for identity in made if isinstance(identity, ToolchainIdentity)}
    assert len(digests) == len(made)


def test_a_package_is_known_by_names_and_contents(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "sub").mkdir(parents=True)
        (tmp_path / name / "sub" / "a.py").write_text("x")
    one, two = (package_digest(PackageRoot("p", str(tmp_path / n))) for n in ("one", "two"))
    assert one == two
    (tmp_path / "two" / "sub" / "a.py").rename(tmp_path / "two" / "sub" / "b.py")
    assert package_digest(PackageRoot("p", str(tmp_path / "two"))) != one


def test_the_revision_of_an_sdk_covers_every_file(tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "a.hpp").write_text("1")
    before = actual_revision(tmp_path)
    (tmp_path / "sdk.json").write_text("{}")
    assert actual_revision(tmp_path) == before
    (tmp_path / "include" / "a.hpp").write_text("2")
    assert actual_revision(tmp_path) != before
