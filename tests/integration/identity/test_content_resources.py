"""What compilers read beside a source, as they say themselves, against what they open."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from compilers import build_program, debian_compilers
from mutations import House
from private_toolchain import PrivateToolchain
from pypto_toolchains.compiler_resources import Resources, ResourcesUnknown, resources_of
from pypto_toolchains.content_policy import UNMODELLED_VARIABLES
from pypto_toolchains.disk import SYSTEM_DISK
from pypto_toolchains.environment import EnvironmentRegistry, VariableClass
from pypto_toolchains.gcc import Gcc, identify_gcc
from pypto_toolchains.records import ProbeRecords

pytestmark = pytest.mark.conforms("cache.98")

SHARED = ("-shared", "-fPIC")


class Bench:
    """A toolchain that can be asked, with a place for records."""

    def __init__(self, top: Path) -> None:
        self.toolchain = PrivateToolchain(top / "toolchain")
        self.toolchain.add_own_headers()
        self.toolchain.add_c_library()
        self.environ = {"PATH": f"{self.toolchain.bin}:{os.environ['PATH']}"}
        self.options = (*SHARED, f"--sysroot={self.toolchain.top}")
        self.records = ProbeRecords(str(top / "records"))
        self.asked = 0

    def resources(self, *options: str) -> Resources:
        """What compiles read, as the next process finds it."""
        place = str(self.toolchain.top)
        compiler = identify_gcc("g++", self.options, self.environ, place, self.records)
        assert isinstance(compiler, Gcc), compiler
        given = (*self.options, *options)
        found, record = resources_of(
            compiler, given, (), self.environ, place, self.records, SYSTEM_DISK
        )
        if record is not None:
            self.asked += 1
            self.records.save(*record)
        return found


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def names(paths: Sequence[str]) -> set[str]:
    return {os.path.basename(path) for path in paths}


def test_a_link_without_libraries_reads_objects_alone(bench: Bench) -> None:
    found = bench.resources("-nodefaultlibs")
    assert names(found.link) == {"crti.o", "crtbeginS.o", "crtendS.o", "crtn.o"}


def test_a_link_with_libraries_reads_what_its_scripts_name(bench: Bench) -> None:
    found = bench.resources()
    assert names(found.link) >= {
        *("libstdc++.so", "libm.so", "libm.so.6", "libgcc_s.so", "libgcc_s.so.1", "libgcc.a"),
        *("libc.so", "libc.so.6", "libc_nonshared.a"),
    }
    script = bench.toolchain.libraries / "libc.so"
    assert script.read_bytes()[:4] != b"\x7fELF"
    assert any(os.path.samefile(path, script) for path in found.link)
    inside = [path for path in found.link if path.startswith(str(bench.toolchain.top))]
    assert found.link == tuple(inside)


def test_it_is_what_the_linker_opens(bench: Bench, tmp_path: Path) -> None:
    """By the word of the linker's own map of a real library."""
    source = tmp_path / "source.cc"
    source.write_text("int twice(int value) { return value + value; }\n")
    listing = tmp_path / "map"
    subprocess.run(
        ["g++", *bench.options, f"-Wl,-Map={listing}", source, "-o", tmp_path / "out.so"],
        env=bench.environ,
        check=True,
    )
    loaded = re.findall(r"^LOAD (/.+)$", listing.read_text(), re.MULTILINE)
    expected = {path for path in loaded if not path.startswith("/tmp/cc")}
    assert expected <= set(bench.resources().link)


def test_directories_are_searched_where_the_compiler_says(bench: Bench, tmp_path: Path) -> None:
    """Each header that a real source includes lies below one of them."""
    source = tmp_path / "source.cc"
    source.write_text("#include <stddef.h>\n#include <limits.h>\n")
    for name in ("limits.h", "stdc-predef.h"):
        shutil.copy(f"/usr/include/{name}", bench.toolchain.include)
    (bench.toolchain.include / "limits.h").write_text("#pragma once\n")
    told = subprocess.run(
        ["g++", *bench.options, "-M", source],
        env=bench.environ, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    read = told.replace("\\\n", " ").split()[2:]
    found = [os.path.realpath(path) for path in bench.resources().include]
    assert len(read) >= 3
    for path in map(os.path.realpath, read):
        assert any(path.startswith(f"{directory}/") for directory in found), path


def test_an_answer_is_asked_for_once(bench: Bench) -> None:
    first = bench.resources("-nodefaultlibs")
    assert bench.resources("-nodefaultlibs") == first
    assert bench.asked == 1
    assert bench.resources() != first
    assert bench.asked == 2


@pytest.mark.parametrize("name", ["crti.o", "libm.so", "libm.a", "libstdc++.a"])
def test_what_appears_in_front_is_noticed(bench: Bench, name: str) -> None:
    before = bench.resources()
    place = bench.toolchain.install / name
    if not place.exists():
        stands_for = next(path for path in before.link if Path(path).stem == Path(name).stem)
        shutil.copy(stands_for, place)
    after = bench.resources()
    assert (bench.asked == 2) == (name != "libstdc++.a"), "the shared one is taken before it"
    if name in ("crti.o", "libm.so"):
        assert str(place.resolve()) in map(os.path.realpath, after.link)


def test_what_disappears_is_noticed(bench: Bench) -> None:
    bench.resources("-nodefaultlibs")
    (bench.toolchain.libraries / "crti.o").unlink()
    with pytest.raises(ResourcesUnknown, match=r"cannot find crti\.o"):
        bench.resources("-nodefaultlibs")


def test_links_are_seen_where_the_compiler_hides_them(bench: Bench, tmp_path: Path) -> None:
    """It names the directories that it finds without links."""
    own = bench.toolchain.own_include
    for name in ("one", "two"):
        shutil.copytree(own, tmp_path / name)
    shutil.rmtree(own)
    own.symlink_to(tmp_path / "one")
    found = bench.resources("-nodefaultlibs")
    assert str(tmp_path / "one") in [os.path.realpath(path) for path in found.include]
    own.unlink()
    own.symlink_to(tmp_path / "two")
    again = bench.resources("-nodefaultlibs")
    assert bench.asked == 1
    assert str(tmp_path / "two") in [os.path.realpath(path) for path in again.include]


@pytest.mark.parametrize("damage", [b"", b"{}", b"x\n{}"])
def test_a_damaged_record_is_asked_for_again(bench: Bench, damage: bytes) -> None:
    first = bench.resources("-nodefaultlibs")
    assert bench.records.directory is not None
    for path in Path(bench.records.directory).iterdir():
        path.write_bytes(damage)
    assert bench.resources("-nodefaultlibs") == first
    assert bench.asked == 2


def test_a_linker_that_does_not_say_what_it_opens_is_not_believed(bench: Bench) -> None:
    other = shutil.which("ld.gold") or shutil.which("ld.lld")
    if other is None:
        pytest.skip("this machine has no linker but one")
    (bench.toolchain.bin / "ld").unlink()
    (bench.toolchain.bin / "ld").symlink_to(other)
    with pytest.raises(ResourcesUnknown, match="does not say that it uses the script"):
        bench.resources("-nodefaultlibs")


@pytest.mark.parametrize("name", ["aarch64_gcc", "other_gcc"])
def test_compilers_of_other_versions_and_for_other_machines(house: House, name: str) -> None:
    driver = debian_compilers()[name]
    house.build_sdk(lambda metadata: metadata["tools"].update(host_cxx=str(driver)))
    facts = house.facts("device_toolchain", "content")
    own = Path(facts["cc1plus.path"]).parent.resolve()
    trees = {name.removeprefix("tree.") for name in facts if name.startswith("tree.")}
    links = {name.removeprefix("link.") for name in facts if name.startswith("link.")}
    assert str(own / "include") in trees
    assert str(own / "crtbeginS.o") in {os.path.realpath(path) for path in links}
    assert f"elf.{own}/cc1plus" in facts


@pytest.mark.conforms("cache.99")
@pytest.mark.parametrize("name", ["clang", "ccache"])
def test_other_compilers_and_wrappers_are_not_followed(house: House, name: str) -> None:
    driver = debian_compilers()[name]
    house.build_sdk(lambda metadata: metadata["tools"].update(host_cxx=str(driver)))
    found = house.capture("content")
    assert str(found).startswith(f"device_toolchain: {driver} ")


def test_every_variable_that_is_refused_makes_requests_look_again() -> None:
    """Otherwise one that is set later would not be seen."""
    registry = EnvironmentRegistry.load()
    looked_at = (VariableClass.SEMANTIC, VariableClass.TOOL_RESOLUTION)
    for name in UNMODELLED_VARIABLES:
        assert registry.classes[name] in looked_at, name


def test_the_device_toolkit_is_known_by_what_it_reports(house: House) -> None:
    """The compilers beside it, for this machine and for the device's, are known by content."""
    toolkit = house.top / "cann"
    info = toolkit / f"{os.uname().machine}-linux" / "ascend_toolkit_install.info"
    info.parent.mkdir(parents=True)
    info.write_text("package_name=Ascend-cann-toolkit\nversion=8.0.RC3\n")
    programs = toolkit / "compiler" / "ccec_compiler" / "bin"
    for name in ("ccec", "ld.lld"):
        build_program(programs / name, "return 0;", "-Wl,--build-id=sha1")
    house.environ["ASCEND_HOME_PATH"] = str(toolkit)
    cross = debian_compilers()["aarch64_gcc"]
    house.environ["PATH"] = f"{cross.parent}:{house.environ['PATH']}"
    house.platform = "a2a3"
    facts = house.facts("device_toolchain", "content")
    assert any(name.startswith("aarch64-linux-gnu-g++.include.") for name in facts)
    assert any(os.path.basename(name) == "cc1plus" for name in facts if name.startswith("elf."))
    assert any("8.0.RC3" in value for value in facts.values())
    before = house.known("content").digest
    with (programs / "ccec").open("ab") as file:
        file.write(b"\n")
    assert house.known("content").digest == before, "its Build-ID stands for it"
    info.write_text("package_name=Ascend-cann-toolkit\nversion=8.0.1\n")
    assert house.known("content").digest != before
