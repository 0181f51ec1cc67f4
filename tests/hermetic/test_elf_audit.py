"""Every library and program that is built here says little about its birth and asks for little.

Each kind has a list of what it may need; whatever is beyond that is a finding. The audit itself is
tried on libraries that were made to have one fault each.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pypto
import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection
from elftools.elf.sections import SymbolTableSection

PACKAGE = Path(str(pypto.__file__)).parent

SYSTEM = frozenset(
    {
        "ld-linux-aarch64.so.1",
        "ld-linux-x86-64.so.2",
        "libc.so.6",
        "libgcc_s.so.1",
        "libm.so.6",
        "libstdc++.so.6",
    }
)
# What the linker's start files refer to, weakly, in every library.
START_FILES = frozenset(
    {
        "_ITM_deregisterTMCloneTable",
        "_ITM_registerTMCloneTable",
        "__cxa_finalize",
        "__gmon_start__",
    }
)
# What a compiler may call on its own accord, without libraries that are named.
FREESTANDING = frozenset({"memcmp", "memcpy", "memmove", "memset"})


@dataclass(frozen=True, slots=True)
class Kind:
    """What files of one kind may have.

    needed: libraries. undefined: symbols that some library of the process must have, beside those
    that name the version of a needed library; `python` adds the interpreter's interface. tls:
    variables of threads. unique: beginnings of symbols that may be unique in a process. paths:
    beginnings of absolute paths that are meant.
    """

    needed: frozenset[str] = frozenset()
    undefined: frozenset[str] = START_FILES
    python: bool = False
    tls: bool = False
    unique: tuple[str, ...] = ()
    paths: tuple[bytes, ...] = ()


# Constants inside of the standard library's own inline functions, and variants' tables of calls.
OF_THE_STANDARD_LIBRARY = ("_ZZNSt", "_ZNSt8__detail9__variant")
EXTENSION = Kind(
    SYSTEM, python=True, tls=True, unique=OF_THE_STANDARD_LIBRARY, paths=(b"/proc/", b"/dev/")
)
PROGRAM = Kind(SYSTEM, unique=OF_THE_STANDARD_LIBRARY, paths=(b"/lib64/ld-", b"/lib/ld-"))
# Loaded into a process beside others of its kind, and unloaded: nothing global, nothing shared.
GENERATED = Kind(undefined=START_FILES | FREESTANDING)

ABSOLUTE = re.compile(rb"(?<=[\0\x01-\x1f\"'= (])/[A-Za-z0-9_.+-]+(?:/[A-Za-z0-9_.+-]+)+")
OF_A_HOST = re.compile(
    rb"/(?:home|root|tmp|usr|var|opt|work|execroot|sandbox|external)/|bazel-out/|/\.cache/"
)


def audit(data: bytes, kind: Kind) -> list[str]:
    """What is wrong with a file of a kind; nothing if it is as it should be."""
    return list(_findings(ELFFile(io.BytesIO(data)), data, kind))


def _findings(elf: ELFFile, data: bytes, kind: Kind) -> Iterator[str]:
    dynamic = elf.get_section_by_name(".dynamic")
    assert isinstance(dynamic, DynamicSection)
    tags = list(dynamic.iter_tags())
    for tag in tags:
        if tag.entry.d_tag == "DT_NEEDED" and tag.needed not in kind.needed:
            yield f"needs {tag.needed}"
        if tag.entry.d_tag in ("DT_RPATH", "DT_RUNPATH"):
            yield f"searches {getattr(tag, 'rpath', None) or getattr(tag, 'runpath', None)}"
        if tag.entry.d_tag == "DT_TEXTREL" or (
            tag.entry.d_tag == "DT_FLAGS" and tag.entry.d_val & 0x4
        ):
            yield "relocates its text"
    yield from _segments(elf)
    yield from _symbols(elf, kind)
    note = elf.get_section_by_name(".note.gnu.build-id")
    if note is None or len(next(note.iter_notes())["n_desc"]) != 40:
        yield "has no Build-ID of SHA-1"
    for found in {*ABSOLUTE.findall(data), *(m.group() for m in OF_A_HOST.finditer(data))}:
        if not found.startswith(kind.paths or (b"\0",)):
            yield f"names {found.decode()}"


def _segments(elf: ELFFile) -> Iterator[str]:
    stacks = [segment for segment in elf.iter_segments() if segment["p_type"] == "PT_GNU_STACK"]
    if not stacks or any(segment["p_flags"] & 1 for segment in stacks):
        yield "has an executable stack"
    for segment in elf.iter_segments():
        if segment["p_type"] == "PT_LOAD" and segment["p_flags"] & 3 == 3:
            yield "has a segment to write and to execute"


def _symbols(elf: ELFFile, kind: Kind) -> Iterator[str]:
    versioned = _versioned(elf)
    for section in elf.iter_sections():
        if not isinstance(section, SymbolTableSection):
            continue
        for number, symbol in enumerate(section.iter_symbols()):
            name = symbol.name
            unique = symbol["st_info"]["bind"] == "STB_LOOS"  # what GNU calls so
            if unique and not name.startswith(kind.unique or ("\0",)):
                yield f"has the unique symbol {name}"
            if symbol["st_info"]["type"] == "STT_TLS" and not kind.tls:
                yield f"has the thread's variable {name}"
            if section.name != ".dynsym" or symbol["st_shndx"] != "SHN_UNDEF" or not name:
                continue
            of_python = kind.python and name.startswith(("Py", "_Py"))
            if number not in versioned and name not in kind.undefined and not of_python:
                yield f"wants {name}"


def _versioned(elf: ELFFile) -> frozenset[int]:
    """Numbers of the symbols that some version of a needed library is asked for."""
    versions = elf.get_section_by_name(".gnu.version")
    needs = elf.get_section_by_name(".gnu.version_r")
    if versions is None or needs is None:
        return frozenset()
    assert isinstance(needs, GNUVerNeedSection)
    known = {item["vna_other"] for _, items in needs.iter_versions() for item in items}
    return frozenset(
        number
        for number in range(versions.num_symbols())
        if versions.get_symbol(number)["ndx"] in known
    )


# -- what is built here


def test_the_extension() -> None:
    assert audit((PACKAGE / "_native.so").read_bytes(), EXTENSION) == []


def test_the_assembler() -> None:
    assert audit((PACKAGE / "_sdk" / "bin" / "ptoas").read_bytes(), PROGRAM) == []


def test_no_other_library_or_program_is_in_the_package() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"
    }
    assert found == {"_native.so", "_sdk/bin/ptoas"}


def test_kernels_and_orchestrations_of_both_targets(built: Any) -> None:
    libraries = {name: data for name, data in built.files.items() if data[:4] == b"\x7fELF"}
    samples = {sample for sample, _, _ in libraries}
    assert {"from_cpp@a5sim", "mixed@a2a3sim", "matmul@a5sim", "vector@a2a3sim"} <= samples
    assert {state for _, state, _ in libraries} == {"ready"}
    for name, data in libraries.items():
        assert audit(data, GENERATED) == [], name


# -- that the audit finds what it looks for

SOUND = """
extern "C" int entry(int x) { return x + 1; }
"""
FLAGS = ("-shared", "-fPIC", "-nodefaultlibs", "-Wl,--build-id=sha1")


@pytest.fixture
def library(tmp_path: Path) -> Any:
    """Compiles a library from a text."""

    def compiled(text: str = SOUND, *options: str, flags: tuple[str, ...] = FLAGS) -> bytes:
        (tmp_path / "source.cc").write_text(text)
        subprocess.run(
            ["g++", *flags, "source.cc", "-o", "library.so", *options],
            cwd=tmp_path,
            check=True,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
        )
        return (tmp_path / "library.so").read_bytes()

    return compiled


def test_a_sound_library_has_no_finding(library: Any) -> None:
    assert audit(library(), GENERATED) == []


@pytest.mark.parametrize(
    ("text", "options", "finding"),
    [
        (SOUND, ("-Wl,--no-as-needed", "-lm"), "needs libm.so.6"),
        (SOUND, ("-Wl,-rpath,/opt/lib", "-Wl,--disable-new-dtags"), "searches /opt/lib"),
        (SOUND, ("-Wl,-rpath,$ORIGIN", "-Wl,--enable-new-dtags"), "searches $ORIGIN"),
        (SOUND, ("-Wl,-z,execstack",), "has an executable stack"),
        (SOUND, ("-Wl,-N",), "has a segment to write and to execute"),
        (SOUND, ("-Wl,--build-id=none",), "has no Build-ID of SHA-1"),
        (SOUND, ("-Wl,--build-id=md5",), "has no Build-ID of SHA-1"),
        (
            'extern "C" void helper(); extern "C" void entry() { helper(); }',
            (),
            "wants helper",
        ),
        (
            "inline int& count() { static int n; return n; }\n"
            'extern "C" int entry() { return ++count(); }',
            ("-fgnu-unique",),
            "has the unique symbol _ZZ5countvE1n",
        ),
        (
            'thread_local int n; extern "C" int entry() { return ++n; }',
            ("-ftls-model=initial-exec",),
            "has the thread's variable n",
        ),
        (
            'extern "C" const char* entry() { return "/home/somebody/kernel.cpp"; }',
            (),
            "names /home/somebody/kernel.cpp",
        ),
        (
            'extern "C" const char* entry() { return "in x/bazel-out/k8"; }',
            (),
            "names bazel-out/",
        ),
    ],
)
def test_each_fault_is_found(
    library: Any, text: str, options: tuple[str, ...], finding: str
) -> None:
    assert finding in audit(library(text, *options), GENERATED)


def test_text_that_is_relocated_is_found(library: Any) -> None:
    text = 'asm(".text\\n.globl entry\\nentry:\\n.quad entry\\n");'  # an address among the code
    assert "relocates its text" in audit(library(text, "-Wl,-z,notext"), GENERATED)


def test_what_a_kind_may_have_is_no_finding(library: Any) -> None:
    data = library('thread_local int n; extern "C" int entry() { return ++n; }', flags=FLAGS)
    assert any("n" in finding for finding in audit(data, GENERATED))
    allowed = replace(GENERATED, tls=True, undefined=GENERATED.undefined | {"__tls_get_addr"})
    assert audit(data, allowed) == []
    mapped = library('extern "C" const char* entry() { return "/proc/self/maps"; }')
    assert audit(mapped, GENERATED) == ["names /proc/self/maps"]
    assert audit(mapped, replace(GENERATED, paths=(b"/proc/",))) == []


def test_versions_of_needed_libraries_are_no_finding(library: Any) -> None:
    text = '#include <cstdio>\nextern "C" int entry() { return puts("x"); }'
    flags = ("-shared", "-fPIC", "-Wl,--build-id=sha1")
    assert audit(library(text, flags=flags), replace(GENERATED, needed=SYSTEM)) == []
    assert "wants puts" in audit(library(text), GENERATED)
