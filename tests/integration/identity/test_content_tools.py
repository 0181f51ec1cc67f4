"""The compilers' part of an identity by content: every byte that a compile may read or run."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from mutations import House, Mutation, Outcome, check
from private_toolchain import PrivateToolchain, move_in
from pypto_toolchains import content_policy

CHANGES, KEEPS, BYPASSES, _ = Outcome

Edit = Callable[["Workshop"], object]

DEVICE = "device_toolchain"


class Workshop:
    """A house with a toolchain of its own, and a directory that the loader searches first."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.toolchain = PrivateToolchain(house.top / "toolchain")
        move_in(house, self.toolchain)
        for name in ("collect2", "liblto_plugin.so"):
            self.toolchain.own(self.toolchain.install / name)
        self.loader = house.top / "loader"
        self.loader.mkdir()
        # The compiler needs it, and finds it there.
        self.library = Path(shutil.copy(library("libzstd.so.1"), self.loader))
        house.environ["LD_LIBRARY_PATH"] = str(self.loader)


def library(name: str) -> str:
    """Where this machine's compiler finds a library that it needs."""
    compiler = subprocess.run(
        ["g++", "-print-prog-name=cc1plus"], capture_output=True, text=True, check=True
    ).stdout.strip()
    told = subprocess.run(["ldd", compiler], capture_output=True, text=True, check=True).stdout
    return next(line.split()[2] for line in told.splitlines() if line.split()[0] == name)


@pytest.fixture
def workshop(house: House, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """A workshop, whose Python has a small library."""
    small = house.top / "library"
    small.mkdir()
    (small / "json.py").write_text("loads = None\n")
    monkeypatch.setattr(content_policy.sysconfig, "get_path", lambda *_, **__: str(small))
    return Workshop(house)


def append(path: Path, text: bytes = b"\n") -> None:
    """Other content, which a native file does not show: its Build-ID stays."""
    with path.open("ab") as file:
        file.write(text)


def variable(name: str, value: str) -> Edit:
    """Set a variable."""
    return lambda shop: shop.house.environ.update({name: value})


def new(path: Path, text: str = "\n") -> None:
    """A new file, with the directories above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def instrumented(path: Path, sanitizer: str) -> None:
    """A shared library built for a sanitizer, in the place of another file."""
    path.unlink(missing_ok=True)
    subprocess.run(
        ["g++", "-shared", "-fPIC", f"-fsanitize={sanitizer}", "-x", "c++", "-o", str(path), "-"],
        input="int twice(int value) { return value + value; }\nint table[3];\n"
        "int entry(int place) { return table[place]; }\n",
        text=True,
        check=True,
    )


# What the `build` policy trusts, because nothing that is published tells it: the contrast.
UNSEEN_BY_BUILD: dict[str, Edit] = {
    "a header is edited": lambda s: append(s.toolchain.include / "stdint.h"),
    "a header of the compiler is edited": lambda s: append(s.toolchain.own_include / "stddef.h"),
    "a header appears": lambda s: new(s.toolchain.include / "more.h"),
    "a header appears before another": lambda s: new(
        s.toolchain.top / "usr/local/include/stdint.h"
    ),
    "a directory of headers appears": lambda s: new(s.toolchain.install / "include-fixed/limits.h"),
    "a header is gone": lambda s: (s.toolchain.include / "stdc-predef.h").unlink(),
    "a startup file is edited": lambda s: append(s.toolchain.libraries / "crti.o"),
    "a startup file of the compiler is edited": lambda s: append(
        s.toolchain.install / "crtbeginS.o"
    ),
    "a startup file appears before another": lambda s: shutil.copy(
        s.toolchain.libraries / "crtn.o", s.toolchain.install
    ),
    "the driver is patched": lambda s: append(s.toolchain.driver),
    "a helper is patched": lambda s: append(s.toolchain.install / "collect2"),
    "the plugin is patched": lambda s: append(s.toolchain.install / "liblto_plugin.so"),
    "a library is patched": lambda s: append(s.library),
    "a library appears before another": lambda s: shutil.copy(library("libz.so.1"), s.loader),
    "a library for some processors appears": lambda s: shutil.copytree(
        s.loader, s.loader / "glibc-hwcaps" / "x86-64-v2"
    ),
    "a library is gone": lambda s: s.library.unlink(),
}


@pytest.mark.conforms("cache.98")
@pytest.mark.parametrize("name", UNSEEN_BY_BUILD)
def test_what_a_compile_reads(workshop: Workshop, name: str) -> None:
    edit = UNSEEN_BY_BUILD[name]
    before = workshop.house.known("build").digest
    check(workshop.house, Mutation(name, DEVICE, lambda _: edit(workshop), CHANGES), "content")
    assert workshop.house.known("build").digest == before


def a_patched_compiler(shop: Workshop) -> None:
    append(shop.toolchain.own(shop.toolchain.install / "cc1plus"))


def touched(shop: Workshop) -> None:
    for directory, _, names in os.walk(shop.toolchain.top):
        for name in names:
            os.utime(Path(directory, name), (1, 1))
    os.utime(shop.library, (1, 1))


def copied(shop: Workshop) -> None:
    """Equal files, but not the same ones."""
    for path in (shop.toolchain.include / "stdint.h", shop.library, shop.toolchain.driver):
        content, mode = path.read_bytes(), path.stat().st_mode
        path.unlink()
        path.write_bytes(content)
        path.chmod(mode)


def unused_directory(shop: Workshop) -> None:
    shop.house.environ["PATH"] += f":{shop.house.cwd}"


def script(shop: Workshop, name: str) -> None:
    shop.house.tool(name, f'#!/bin/sh\nexec {shutil.which(name)} "$@"\n')


def assembler_in_a_script(shop: Workshop) -> None:
    new(shop.house.top / "assembler" / "ptoas", "#!/bin/sh\nexec ptoas\n")
    (shop.house.top / "assembler" / "ptoas").chmod(0o755)
    shop.house.environ["PTOAS_ROOT"] = str(shop.house.top / "assembler")


# (name, component, what happens, outcome, a part of the reason)
TABLE: list[tuple[str, str, Edit, Outcome, str]] = [
    ("the compiler is patched", DEVICE, a_patched_compiler, CHANGES, ""),
    ("every file is touched", "", touched, KEEPS, ""),
    ("files are copied", "", copied, KEEPS, ""),
    ("a library that links do not read is edited", "",
     lambda s: append(s.toolchain.libraries / "libc.so"), KEEPS, ""),
    ("a file lies beside the headers", "",
     lambda s: new(s.toolchain.top / "usr/share/doc/README"), KEEPS, ""),
    ("a library that nobody needs lies beside another", "",
     lambda s: shutil.copy(s.library, s.loader / "libother.so"), KEEPS, ""),
    ("PATH gets an unused directory", "", unused_directory, KEEPS, ""),
    ("the time to write is given", "settings", variable("SOURCE_DATE_EPOCH", "1"), CHANGES, ""),
    ("a library is no library", DEVICE, lambda s: s.library.write_text("text"), BYPASSES, "ELF"),
    ("a library is a directory", DEVICE,
     lambda s: (s.library.unlink(), s.library.mkdir()), BYPASSES, "the loader would fail on"),
    ("startup files are missing", DEVICE,
     lambda s: [(s.toolchain.libraries / name).unlink() for name in ("crti.o", "crtn.o")],
     BYPASSES, "cannot find crti.o"),
    ("a helper is a script", DEVICE, lambda s: script(s, "as"), BYPASSES, "script"),
    ("the compiler is a script", DEVICE, lambda s: script(s, "g++"), BYPASSES, "script"),
    ("the assembler is a script", "ptoas", assembler_in_a_script, BYPASSES, "ptoas"),
    ("a library is built for a sanitizer", DEVICE,
     lambda s: instrumented(s.library, "address"), BYPASSES, "built for a sanitizer"),
    ("the extension is built for a sanitizer", "pypto",
     lambda s: instrumented(s.house.native, "undefined"), BYPASSES, "built for a sanitizer"),
    ("LD_LIBRARY_PATH gets a relative directory", "toolchain",
     variable("LD_LIBRARY_PATH", "lib:/lib"), BYPASSES, "'lib'"),
    ("LD_LIBRARY_PATH gets an empty directory", "toolchain",
     variable("LD_LIBRARY_PATH", "/lib:"), BYPASSES, "LD_LIBRARY_PATH"),
    ("LD_LIBRARY_PATH depends on who is loaded", "toolchain",
     variable("LD_LIBRARY_PATH", "/$ORIGIN/lib"), BYPASSES, "ORIGIN"),
]  # fmt: skip


@pytest.mark.conforms("cache.99")
@pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row[0]).replace(" ", "_"))
def test_other_things_that_happen(
    workshop: Workshop, row: tuple[str, str, Edit, Outcome, str]
) -> None:
    name, component, edit, outcome, reason = row
    mutation = Mutation(name, component, lambda _: edit(workshop), outcome, reason)
    check(workshop.house, mutation, "content")


@pytest.mark.conforms("cache.99")
def test_variables_that_bring_in_what_is_not_followed(workshop: Workshop) -> None:
    house = workshop.house
    before = house.known("content")
    for name in content_policy.UNMODELLED_VARIABLES:
        house.environ[name] = "/nowhere"
        found = house.capture("content")
        assert str(found).startswith(f"toolchain: {name} "), found
        assert "unset it" in str(found)
        del house.environ[name]
    assert house.known("content").digest == before.digest


@pytest.mark.conforms("cache.99")
@pytest.mark.parametrize("sanitizer", ["address", "thread", "undefined", "leak"])
def test_every_sanitizer_is_recognised(workshop: Workshop, sanitizer: str) -> None:
    instrumented(workshop.house.native, sanitizer)
    found = workshop.house.capture("content")
    assert str(found).startswith("pypto: ")
    assert "was built for a sanitizer" in str(found)
