"""The compilers' part of an identity by content: what changes it, keeps it and takes it away."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from mutations import Mutation, Outcome, check
from pypto_toolchains import content_policy
from workshop import DEVICE, Edit, Workshop, append, instrumented, new, variable

CHANGES, KEEPS, BYPASSES, _ = Outcome


def a_patched_compiler(shop: Workshop) -> None:
    append(shop.toolchain.own(shop.toolchain.install / "cc1plus"))


def touched(shop: Workshop) -> None:
    for directory, _, names in os.walk(shop.toolchain.top):
        for name in names:
            # Large programs are links to the machine's own, which are not ours to touch.
            os.utime(Path(directory, name), (1, 1), follow_symlinks=False)
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
