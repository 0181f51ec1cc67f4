"""The native outputs carry a Build-ID and nothing of where or when they were built."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

pytestmark = pytest.mark.skipif(
    "PYPTO_TEST_NATIVE" not in os.environ, reason="Bazel's outputs are not here"
)
NATIVE, PTOAS = "PYPTO_TEST_NATIVE", "PYPTO_TEST_PTOAS"


@pytest.mark.parametrize("variable", [NATIVE, PTOAS])
def test_there_is_a_build_id(variable: str) -> None:
    with Path(os.environ[variable]).open("rb") as stream:
        section = ELFFile(stream).get_section_by_name(".note.gnu.build-id")
        notes = [note["n_desc"] for note in section.iter_notes()]
    assert re.fullmatch(r"[0-9a-f]{40}", notes[0])


@pytest.mark.parametrize("variable", [NATIVE, PTOAS])
def test_no_directory_of_the_build_is_inside(variable: str) -> None:
    content = Path(os.environ[variable]).read_bytes()
    for part in (b"/execroot/", b"/sandbox/", b"/external/", b"bazel-out/", b"/.cache/"):
        assert part not in content, part


def test_the_module_exports_its_entry_and_nothing_of_ours() -> None:
    with Path(os.environ[NATIVE]).open("rb") as stream:
        symbols = ELFFile(stream).get_section_by_name(".dynsym")
        defined = {
            symbol.name
            for symbol in symbols.iter_symbols()
            if symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["bind"] == "STB_GLOBAL"
        }
    assert {name for name in defined if "pypto" in name or name.startswith("PyInit")} == {
        "PyInit__native"
    }


def test_the_revision_is_the_digest_of_every_other_file() -> None:
    root = Path(os.environ["PYPTO_TEST_SDK"])
    names = sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file())

    def digest(chosen: list[str]) -> str:
        whole = hashlib.sha256()
        for name in chosen:
            whole.update(
                f"{name}\0{hashlib.sha256((root / name).read_bytes()).hexdigest()}\n".encode()
            )
        return whole.hexdigest()

    names.remove("sdk.json")
    assert json.loads((root / "sdk.json").read_text())["revision"] == digest(names)
    pinned = [name for name in names if name.startswith("include/pto/")]
    assert pinned
    assert (root / "pto_isa.pin").read_text() == digest(pinned) + "\n"
