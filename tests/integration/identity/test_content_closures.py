"""What is followed of the dynamic loader is what it does: on real tools and on contrived chains."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from pypto_toolchains import closures, loader_search
from pypto_toolchains.closures import Closure
from pypto_toolchains.disk import SYSTEM_DISK, WatchedDisk, unchanged
from pypto_toolchains.loader_search import ClosureUnknown, LibrarySearch

pytestmark = pytest.mark.conforms("cache.98")


def mapped(program: Path, environ: Mapping[str, str]) -> list[Path]:
    """What the loader maps to run a program, by its own word, without links."""
    done = subprocess.run(
        [program],
        env={**environ, "LD_TRACE_LOADED_OBJECTS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.findall(r"^\s*(?:\S+ => )?(/.+) \(0x[0-9a-f]+\)$", done.stdout, re.MULTILINE)
    return sorted({Path(path).resolve() for path in found})


def followed(program: Path, library_path: str | None = None) -> list[Path]:
    """The same as it is followed here."""
    closure = Closure(str(program), LibrarySearch(library_path, SYSTEM_DISK))
    return sorted({Path(path).resolve() for path in closure.files} - {program.resolve()})


def a_tool(name: str) -> Path | None:
    """A program on this machine's PATH, or what the compiler runs."""
    found = shutil.which(name)
    if found is None:
        said = subprocess.run(
            ["g++", f"-print-prog-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        found = said if os.path.isabs(said) else None
    return None if found is None else Path(found)


@pytest.mark.parametrize(
    "name", "g++ cc1plus as ld collect2 lto1 sh env ls tar git perl objdump openssl xz".split()
)
def test_real_tools(name: str) -> None:
    path = a_tool(name)
    if path is None or path.read_bytes()[:4] != b"\x7fELF":
        pytest.skip(f"{name} is no native program here")
    assert followed(path) == mapped(path, {})


def test_this_interpreter() -> None:
    assert followed(Path(sys.executable)) == mapped(Path(sys.executable), {})


class Chains:
    """Programs and libraries made to find each other in every way there is."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.environ: dict[str, str] = {}
        self._number = 0

    def library(self, path: str, *needs: str, soname: str | None = None, **search: str) -> Path:
        """A library that needs others by name; `search` has its ``rpath`` or ``runpath``."""
        self._number += 1
        place = self.top / path
        named = (f"-Wl,-soname,{soname or place.name}",)
        self._link(place, needs, search, "-shared", "-fPIC", *named)
        return place

    def program(self, path: str, *needs: str, **search: str) -> Path:
        """A program that needs libraries by name."""
        place = self.top / path
        self._link(place, needs, search)
        return place

    def _link(
        self, place: Path, needs: tuple[str, ...], search: Mapping[str, str], *options: str
    ) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        stubs = self.top / "stubs"
        stubs.mkdir(exist_ok=True)
        for need in needs:
            stub = stubs / need.replace("/", "%")
            if not stub.exists():
                self._run("-shared", "-fPIC", f"-Wl,-soname,{need}", "-o", str(stub), "-x", "c",
                          os.devnull)  # fmt: skip
        kinds = {"rpath": "--disable-new-dtags", "runpath": "--enable-new-dtags"}
        paths = [f"-Wl,{kinds[kind]},-rpath,{value}" for kind, value in search.items()]
        source = f"int unique_{self._number}; int main(void) {{ return 0; }}\n"
        self._run(
            *options, *paths, "-Wl,--no-as-needed,--allow-shlib-undefined", "-o", str(place),
            "-x", "c", "-", "-x", "none", *(str(stubs / need.replace("/", "%")) for need in needs),
            text=source,
        )  # fmt: skip

    def _run(self, *options: str, text: str = "") -> None:
        subprocess.run(["g++", *options], input=text, text=True, check=True)

    def agree(self, program: Path, *names: str) -> list[str]:
        """What is followed is what happens; the places of the libraries with these names."""
        found = followed(program, self.environ.get("LD_LIBRARY_PATH"))
        assert found == mapped(program, self.environ)
        ours = [path for path in found if path.is_relative_to(self.top)]
        return [str(path.relative_to(self.top)) for path in ours if path.name in names]


@pytest.fixture
def chains(tmp_path: Path) -> Chains:
    return Chains(tmp_path.resolve())


def test_rpath_comes_before_the_environment_and_runpath_after_it(chains: Chains) -> None:
    chains.library("env/libx.so")
    chains.library("own/libx.so")
    top = chains.top
    chains.environ["LD_LIBRARY_PATH"] = f"{top}/env"
    by_rpath = chains.program("by_rpath", "libx.so", rpath=f"{top}/own")
    by_runpath = chains.program("by_runpath", "libx.so", runpath=f"{top}/own")
    assert chains.agree(by_rpath, "libx.so") == ["own/libx.so"]
    assert chains.agree(by_runpath, "libx.so") == ["env/libx.so"]


def test_rpath_is_inherited_and_runpath_is_not(chains: Chains) -> None:
    top = chains.top
    chains.library("deep/libleaf.so")
    chains.library("near/libmiddle.so", "libleaf.so")
    inherits = chains.program("inherits", "libmiddle.so", rpath=f"{top}/near:{top}/deep")
    assert chains.agree(inherits, "libleaf.so") == ["deep/libleaf.so"]
    alone = chains.program("alone", "libmiddle.so", runpath=f"{top}/near:{top}/deep")
    with pytest.raises(
        ClosureUnknown, match=r"libmiddle\.so needs libleaf\.so, which is not found"
    ):
        followed(alone)


def test_a_runpath_hides_the_rpath_of_whoever_loads(chains: Chains) -> None:
    top = chains.top
    chains.library("program/libleaf.so")
    chains.library("own/libleaf.so")
    chains.library("near/libmiddle.so", "libleaf.so", runpath=f"{top}/own")
    program = chains.program("program/run", "libmiddle.so", rpath=f"{top}/near:{top}/program")
    assert chains.agree(program, "libleaf.so") == ["own/libleaf.so"]


def test_the_first_loaded_of_a_name_serves_all(chains: Chains) -> None:
    """Breadth first: the program's own choice comes before that of its libraries."""
    top = chains.top
    chains.library("one/libshared.so")
    chains.library("two/libshared.so")
    chains.library("one/libfirst.so", "libshared.so", runpath=f"{top}/two")
    program = chains.program("run", "libfirst.so", "libshared.so", runpath=f"{top}/one")
    assert chains.agree(program, "libshared.so") == ["one/libshared.so"]


def test_a_library_is_known_by_its_soname_too(chains: Chains) -> None:
    top = chains.top
    chains.library("one/libfile.so", soname="libname.so")
    chains.library("two/libname.so")
    program = chains.program("run", "libfile.so", "libname.so", runpath=f"{top}/one:{top}/two")
    assert chains.agree(program, "libfile.so", "libname.so") == ["one/libfile.so"]


def test_origin_of_a_program_is_where_its_file_lies(chains: Chains) -> None:
    chains.library("real/lib/libx.so")
    chains.library("linked/lib/libx.so")
    program = chains.program("real/bin/run", "libx.so", runpath="$ORIGIN/../lib")
    (chains.top / "linked" / "bin").mkdir()
    link = chains.top / "linked" / "bin" / "run"
    link.symlink_to(program)
    assert chains.agree(program, "libx.so") == ["real/lib/libx.so"]
    assert chains.agree(link, "libx.so") == ["real/lib/libx.so"]


def test_origin_of_a_library_is_where_it_was_found(chains: Chains) -> None:
    top = chains.top
    chains.library("real/libmiddle.so", "libx.so", runpath="${ORIGIN}/more")
    chains.library("real/more/libx.so")
    chains.library("linked/more/libx.so")
    (top / "linked" / "libmiddle.so").symlink_to(top / "real" / "libmiddle.so")
    program = chains.program("run", "libmiddle.so", runpath=f"{top}/linked")
    assert chains.agree(program, "libx.so") == ["linked/more/libx.so"]


def test_a_need_may_be_a_path(chains: Chains) -> None:
    chains.library("place/libx.so")
    program = chains.program("run", f"{chains.top}/place/libx.so")
    assert chains.agree(program, "libx.so") == ["place/libx.so"]


def test_a_file_for_another_machine_is_passed_over(chains: Chains) -> None:
    top = chains.top
    foreign = chains.library("one/libx.so")
    chains.library("two/libx.so")
    program = chains.program("run", "libx.so", runpath=f"{top}/one:{top}/two")
    header = bytearray(foreign.read_bytes())
    header[18:20] = (8).to_bytes(2, "little")  # MIPS
    foreign.write_bytes(header)
    assert chains.agree(program, "libx.so") == ["two/libx.so"]


def test_lib_stands_for_every_directory_it_may_stand_for(chains: Chains) -> None:
    for library in ("lib64", "lib", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"):
        chains.library(f"own/{library}/libx.so")
    program = chains.program("own/bin/run", "libx.so", runpath="$ORIGIN/../$LIB")
    found = followed(program)
    assert set(mapped(program, {})) <= set(found)


def test_builds_for_some_processors_all_count(chains: Chains) -> None:
    top = chains.top
    chains.library("own/libx.so")
    chains.library("own/glibc-hwcaps/x86-64-v2/libx.so")
    chains.library("own/glibc-hwcaps/x86-64-v4/libx.so")
    chains.library("own/tls/libx.so")
    program = chains.program("run", "libx.so", runpath=f"{top}/own")
    found = [str(path.relative_to(top)) for path in followed(program) if path.name == "libx.so"]
    assert found == [
        "own/glibc-hwcaps/x86-64-v2/libx.so",
        "own/glibc-hwcaps/x86-64-v4/libx.so",
        "own/libx.so",
        "own/tls/libx.so",
    ]
    assert set(mapped(program, {})) <= set(followed(program))


@pytest.mark.parametrize("kind", ["rpath", "runpath"])
@pytest.mark.parametrize("entry", ["lib", "", "$PLATFORM/lib", "/x/$ORIGINAL"])
def test_what_depends_on_more_than_files_is_not_followed(
    chains: Chains, kind: str, entry: str
) -> None:
    program = chains.program("run", "libx.so", **{kind: f"/nowhere:{entry}:/nowhere"})
    with pytest.raises(ClosureUnknown, match=re.escape(f"{program} looks for libraries in")):
        followed(program)


def test_damage_and_absence_are_named(chains: Chains) -> None:
    top = chains.top
    library = chains.library("own/libx.so")
    program = chains.program("run", "libx.so", runpath=f"{top}/own")
    library.write_bytes(library.read_bytes()[:100])
    with pytest.raises(ClosureUnknown, match=re.escape(str(library))):
        followed(program)
    library.unlink()
    with pytest.raises(ClosureUnknown, match=r"run needs libx\.so, which is not found"):
        followed(program)
    with pytest.raises(ClosureUnknown, match="nothing"):
        followed(top / "nothing")
    other = top / "script"
    other.write_text("#!/bin/sh\n")
    with pytest.raises(ClosureUnknown, match="script"):
        followed(other)


def test_libraries_for_every_tool_are_not_followed(
    chains: Chains, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = chains.program("run")
    monkeypatch.setattr(closures, "PRELOAD_PATH", str(program))
    with pytest.raises(ClosureUnknown, match="loads libraries into every tool"):
        followed(program)


def test_another_loader_is_not_followed(chains: Chains, monkeypatch: pytest.MonkeyPatch) -> None:
    program = chains.program("run")
    loader = SYSTEM_DISK.resolved(str(program))
    content = program.read_bytes()
    named = re.search(rb"/lib[0-9a-z]*/ld-linux[-a-z0-9_]*\.so\.[0-9]\0", content)
    assert named is not None
    program.write_bytes(content.replace(b"ld-linux", b"ld-other", 1))
    with pytest.raises(ClosureUnknown, match="not glibc's loader"):
        followed(Path(loader))


def test_an_unreadable_cache_is_a_reason(
    chains: Chains, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = chains.program("run")
    cache = tmp_path / "cache"
    monkeypatch.setattr(loader_search, "CACHE_PATH", str(cache))
    cache.write_bytes(b"ld.so-2.0")
    with pytest.raises(ClosureUnknown, match=f"{cache}: it is in no known format"):
        followed(program)
    # Without one, libraries are looked for in the built-in directories.
    cache.unlink()
    assert set(mapped(program, {})) <= set(followed(program))


def test_every_step_can_be_watched(chains: Chains) -> None:
    """A library that appears where one was looked for shows, and so does every other change."""
    top = chains.top
    chains.library("late/libx.so")
    program = chains.program("run", "libx.so", runpath=f"{top}/early:{top}/late")
    disk = WatchedDisk(SYSTEM_DISK)
    Closure(str(program), LibrarySearch(None, disk))
    assert unchanged(disk.observations)
    (top / "early").mkdir()
    assert unchanged(disk.observations)
    shutil.copy(top / "late" / "libx.so", top / "early")
    assert not unchanged(disk.observations)


def test_a_library_loaded_by_a_program_inherits_from_it(chains: Chains) -> None:
    top = chains.top
    chains.library("own/libleaf.so")
    plugin = chains.library("plugins/plugin.so", "libleaf.so")
    program = chains.program("run", rpath=f"{top}/own")
    closure = Closure(str(program), LibrarySearch(None, SYSTEM_DISK))
    before = closure.files
    closure.add(str(plugin))
    assert closure.files == (*before, str(plugin), f"{top}/own/libleaf.so")


def test_the_loader_is_asked_whether_it_agrees(chains: Chains) -> None:
    top = chains.top
    chains.library("own/libx.so")
    chains.library("other/libx.so")
    program = chains.program("run", "libx.so", runpath=f"{top}/own")
    closure = Closure(str(program), LibrarySearch(None, SYSTEM_DISK))
    assert closure.unforeseen({}) is None
    other = {"LD_LIBRARY_PATH": f"{top}/other"}
    assert closure.unforeseen(other) == f"{top}/other/libx.so"
    (top / "own" / "libx.so").unlink()
    with pytest.raises(ClosureUnknown, match=r"libx\.so"):
        closure.unforeseen({})
