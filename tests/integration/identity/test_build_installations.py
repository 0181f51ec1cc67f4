"""What counts is what was imported, however it came to be on the path."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from mutations import House, other_build_id
from pypto_toolchains.elf import native_identity
from pypto_toolchains.packages import PackageRoot, package_digest

PACKAGES = ("pypto", "pypto_store", "pypto_toolchains")

# Runs in the installation that is tried, and tells what it took for evidence.
REPORT = """
import json, os, sys
import pypto
from pypto.jit.surroundings import read_surroundings
from pypto.jit.toolchain import Toolchain
root = os.path.join(sys.argv[1], "root")
found = Toolchain().identity(read_surroundings().question("a2a3sim", root))
facts = [dict(c.facts) for c in getattr(found, "components", ()) if c.component == "pypto"]
print(json.dumps({
    "facts": facts[0] if facts else {},
    "reason": "" if facts else str(found),
    "package": os.path.dirname(pypto.__file__),
}))
"""


@dataclass(frozen=True)
class Environment:
    """A virtual environment, which has nothing but what a test installs."""

    top: Path

    @classmethod
    def make(cls, top: Path) -> Environment:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(top)], check=True)
        return cls(top)

    @property
    def python(self) -> str:
        return str(self.top / "bin" / "python")

    @property
    def site(self) -> Path:
        (found,) = self.top.glob("lib/python3*/site-packages")
        return found

    def install(self, wheel: Path) -> None:
        """Install a wheel as users do, from nowhere but its file."""
        subprocess.run(
            [
                sys.executable, "-m", "pip", "--python", self.python, "install", "--quiet",
                "--no-deps", "--no-index", "--no-cache-dir", "--disable-pip-version-check",
                "--no-compile", str(wheel),
            ],
            check=True,
        )  # fmt: skip

    def report(self, *import_path: Path) -> dict[str, object]:
        """What a process of this environment takes for evidence."""
        dropped = ("PYTHONPATH", "PYTHONSAFEPATH", "PYTHONHOME")
        environ = {name: value for name, value in os.environ.items() if name not in dropped}
        if import_path:
            environ["PYTHONPATH"] = os.pathsep.join(map(str, import_path))
        told = subprocess.run(
            [self.python, "-c", REPORT, str(self.top)],
            check=True, capture_output=True, text=True, env=environ, cwd=self.top,
        )  # fmt: skip
        found: dict[str, object] = json.loads(told.stdout)
        return found

    def evidence(self, *import_path: Path) -> dict[str, str]:
        """The facts of the product as such a process has them."""
        told = self.report(*import_path)
        facts = told["facts"]
        assert isinstance(facts, dict)
        assert facts, told["reason"]
        return facts


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment.make(tmp_path / "venv")


def wheel(house: House, files: dict[str, bytes]) -> Path:
    """A wheel of the product with these files."""
    info = "pypto-0.1.0.dist-info"
    files = {
        **files,
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: pypto\nVersion: 0.1.0\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(data)}\n")
    files[f"{info}/RECORD"] = "".join([*rows, f"{info}/RECORD,,\n"]).encode()
    path = house.top / "pypto-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100755 if name.endswith("ptoas") else 0o100644) << 16
            archive.writestr(entry, data)
    return path


def regular_wheel(house: House) -> Path:
    paths = [path for path in sorted(house.site.rglob("*")) if path.is_file()]
    return wheel(house, {str(path.relative_to(house.site)): path.read_bytes() for path in paths})


def editable_wheel(house: House) -> Path:
    """It holds no code, but a file that leads to the sources."""
    return wheel(house, {"pypto.pth": f"{house.site}\n".encode()})


def expected(site: Path, native: Path | None = None) -> dict[str, str]:
    """The facts of what lies in a directory."""
    digests = {
        f"package.{name}": package_digest(PackageRoot(name, str(site / name))) for name in PACKAGES
    }
    return {**digests, "native": native_identity(str(native or site / "pypto" / "_native.so"))}


def imported(facts: dict[str, str]) -> dict[str, str]:
    """The facts that tell what was imported."""
    return {name: value for name, value in facts.items() if not name.startswith("python.")}


@pytest.mark.conforms("cache.85")
def test_an_installed_wheel(house: House, environment: Environment) -> None:
    environment.install(regular_wheel(house))
    before = imported(environment.evidence())
    assert before == expected(house.site) == expected(environment.site)
    # What it was installed as is not what it is.
    with (environment.site / "pypto" / "__init__.py").open("a") as source:
        source.write("\n")
    other_build_id(environment.site / "pypto" / "_native.so")
    after = imported(environment.evidence())
    assert after == expected(environment.site)
    assert {name for name in after if after[name] != before[name]} == {"package.pypto", "native"}


@pytest.mark.conforms("cache.85")
def test_distribution_metadata_is_never_used(house: House, environment: Environment) -> None:
    environment.install(regular_wheel(house))
    before = environment.evidence()
    (info,) = environment.site.glob("pypto-*.dist-info")
    for path in info.iterdir():
        path.write_text("Metadata-Version: 2.1\nName: pypto\nVersion: 99\n")
    assert environment.evidence() == before
    shutil.rmtree(info)
    assert environment.evidence() == before


@pytest.mark.conforms("cache.85")
def test_an_editable_install(house: House, environment: Environment) -> None:
    environment.install(editable_wheel(house))
    assert not (environment.site / "pypto").exists()
    assert imported(environment.evidence()) == expected(house.site)
    with (house.site / "pypto_store" / "key.py").open("a") as source:
        source.write("\n")
    other_build_id(house.native)
    assert imported(environment.evidence()) == expected(house.site)


@pytest.mark.conforms("cache.85")
def test_the_import_path_wins_over_an_install(house: House, environment: Environment) -> None:
    environment.install(regular_wheel(house))
    with (house.site / "pypto" / "__init__.py").open("a") as source:
        source.write("\n")
    other_build_id(house.native)
    assert imported(environment.evidence(house.site)) == expected(house.site)
    assert expected(house.site) != expected(environment.site)
    assert imported(environment.evidence()) == expected(environment.site)


@pytest.mark.conforms("cache.85")
@pytest.mark.parametrize("way", ["link", "finder"])
def test_other_sources_with_the_extension_of_an_editable_install(
    house: House, environment: Environment, way: str
) -> None:
    """Sources that were not built themselves, and run with what was built elsewhere."""
    environment.install(editable_wheel(house))
    sources = house.top / "sources"
    shutil.copytree(house.site, sources)
    with (sources / "pypto" / "__init__.py").open("a") as source:
        source.write("\n")
    own = sources / "pypto" / "_native.so"
    own.unlink()
    if way == "link":
        own.symlink_to(house.native)
    else:
        (environment.site / "pairing.py").write_text(FINDER.format(native=str(house.native)))
        (environment.site / "pairing.pth").write_text("import pairing\n")
    facts = imported(environment.evidence(sources))
    assert facts == expected(sources, native=house.native)
    assert facts["package.pypto"] != expected(house.site)["package.pypto"]
    other_build_id(house.native)
    assert imported(environment.evidence(sources)) == expected(sources, native=house.native)


# As editable installs of compiled modules have it.
FINDER = """
import sys
from importlib.util import spec_from_file_location


class Paired:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "pypto._native":
            return spec_from_file_location(name, {native!r})


sys.meta_path.insert(0, Paired)
"""


@pytest.mark.conforms("cache.85")
def test_an_install_without_an_extension_has_no_identity(
    house: House, environment: Environment
) -> None:
    house.native.unlink()
    environment.install(regular_wheel(house))
    assert str(environment.report()["reason"]).startswith("pypto: the native extension is not")


@pytest.mark.conforms("cache.84")
def test_each_environment_runs_an_interpreter_of_its_own_path(
    house: House, environment: Environment, tmp_path: Path
) -> None:
    """Links lead to one interpreter, which is what it is wherever it is linked to."""
    other = Environment.make(tmp_path / "other")
    assert environment.evidence(house.site) == other.evidence(house.site)
    assert environment.evidence(house.site)["python.executable"] == os.path.realpath(sys.executable)
