"""Which part of a file differs, and how that is told."""

from __future__ import annotations

import os
import struct
import subprocess

import pytest
from pypto.jit.verify_difference import place_of_difference, sections

SOURCE = 'int answer() { return 42; }\nconst char *name = "%s";\n'
OPTIONS = ("-shared", "-fPIC", "-nostdlib", "-Wl,--build-id=sha1")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Compiles a small library from a text, with options."""
    directory = tmp_path_factory.mktemp("libraries")

    def compiled(name: str = "one", *options: str) -> bytes:
        source = directory / "source.cc"
        source.write_text(SOURCE % name)
        subprocess.run(
            ["g++", *OPTIONS, *options, "-o", "library.so", source.name],
            cwd=directory,
            check=True,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
        )
        return (directory / "library.so").read_bytes()

    return compiled


def test_other_code_is_told_by_its_section_and_the_build_id_follows(library):
    told = place_of_difference(library(), library("one", "-O2"))
    assert told.startswith("first section .")
    assert told.endswith(".note.gnu.build-id")
    assert ".text" in told


def test_another_constant_is_no_other_code(library):
    told = place_of_difference(library(), library("two"))
    assert told.startswith("first section .rodata from byte 0 of 4; then .note.gnu.build-id")


def test_another_build_id_alone_is_told_as_that(library):
    same_length = library("one", "-Wl,--build-id=0x" + "12" * 20)
    told = place_of_difference(library(), same_length)
    assert told.startswith("only section .note.gnu.build-id from byte ")


def test_another_compiler_is_named(library):
    one = library()
    at = one.index(b"GCC: (")
    other = one[:at] + b"XCC: (" + one[at + 6 :]
    told = place_of_difference(one, other)
    assert told.startswith("only section .comment (GCC: (")
    assert " -> XCC: (" in told


def test_a_section_that_one_side_lacks_is_told(library):
    told = place_of_difference(library(), library("one", "-Wl,-s"))
    assert ".symtab" in told


def test_libraries_that_differ_outside_of_sections_are_told_by_a_byte(library):
    one = library()
    other = one[:7] + b"\3" + one[8:]  # the ABI in the header
    assert place_of_difference(one, other) == f"from byte 7 of {len(one)} (rebuilt: {len(one)})"


def test_text_is_told_by_its_line():
    assert place_of_difference(b"a\nb\nc\n", b"a\nx\nc\n") == "from line 2: 'b' -> 'x'"
    assert place_of_difference(b"a\n", b"a\nb\n").startswith("1 -> 2 lines")
    long = place_of_difference(b"a" * 500, b"b" * 500)
    assert len(long) < 200


@pytest.mark.parametrize(("one", "other"), [(b"a\n", b"a"), (b"", b"\0"), (b"\xff\0", b"\xff\1")])
def test_whatever_it_is_something_is_told(one, other):
    assert place_of_difference(one, other)


def test_sections_come_in_the_order_of_their_place_with_their_bytes(library):
    data = library()
    found = sections(data)
    assert found is not None
    assert [section.offset for section in found] == sorted(section.offset for section in found)
    named = {section.name: section for section in found}
    assert named[".rodata"].content == b"one\0"
    assert named[".note.gnu.build-id"].size == len(named[".note.gnu.build-id"].content)


def test_what_is_no_library_or_a_damaged_one_has_no_sections(library):
    data = library()
    table_at = struct.unpack_from("<Q", data, 40)[0]
    for broken in (
        b"",
        b"\x7fELF\x02\x01",
        b"#!/bin/sh\n" * 20,
        data[:64],
        data[:-1],
        data[:40] + struct.pack("<Q", len(data)) + data[48:],
        data[:40] + struct.pack("<Q", 2**64 - 1) + data[48:],
        data[:60] + struct.pack("<HH", 65535, 65534) + data[64:],
        data[:62] + struct.pack("<H", 60000) + data[64:],
        data[: table_at + 64 + 24] + struct.pack("<Q", 2**63) + data[table_at + 64 + 32 :],
    ):
        assert sections(broken) is None
        place_of_difference(data, broken)
