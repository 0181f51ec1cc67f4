"""The assembler's command line: output, errors, exit status, and what is left on disk."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pypto
import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]

GOLDEN = Path(__file__).parent / "golden"
SAMPLES = sorted(path.stem for path in GOLDEN.glob("*.pto"))
GOOD = b'module attributes {pto.target_arch = "a2a3"} {\nfunc.func @f() {\nreturn\n}\n}\n'
BAD = GOOD.replace(b"return", b"%r = arith.addi %a, %a : index\nreturn")
EXPECTED = (
    b'#include "pto/sim/fault.hpp"\nusing namespace pto;\n\n__global__ AICORE void f() {\n}\n'
)


@pytest.mark.parametrize("name", SAMPLES)
def test_golden(run: Run, tmp_path: Path, name: str) -> None:
    out = tmp_path / "out.cpp"
    done = run(GOLDEN / f"{name}.pto", "-o", out)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert out.read_text() == (GOLDEN / f"{name}.expected").read_text()


def test_output_does_not_depend_on_names_or_environment(run: Run, tmp_path: Path) -> None:
    for name in ("a.pto", "b.pto"):
        (tmp_path / name).write_bytes((GOLDEN / "softmax.pto").read_bytes())
    first = run(tmp_path / "a.pto").stdout
    assert first == run(tmp_path / "b.pto").stdout
    assert first == run("-", stdin=(GOLDEN / "softmax.pto").read_bytes()).stdout
    assert str(tmp_path).encode() not in first


def test_standard_streams(run: Run) -> None:
    assert run("-", stdin=GOOD).stdout == EXPECTED
    assert run("-", "-o", "-", stdin=GOOD).stdout == EXPECTED


@pytest.mark.parametrize(
    "options",
    [
        ["--pto-arch", "a2a3"],
        ["--pto-arch=a2a3"],
        ["--pto-level", "level3"],
        ["--pto-level=level2", "--enable-insert-sync"],
        ["-o=-"],
    ],
)
def test_accepted_options(run: Run, options: list[str]) -> None:
    done = run("-", *options, stdin=GOOD)
    assert (done.returncode, done.stdout) == (0, EXPECTED)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no input file"),
        (["a", "b"], "more than one input: 'b'"),
        (["--fast", "-"], "unknown option '--fast'"),
        (["-", "-o"], "'-o' needs a value"),
        (["-", "--pto-arch", "a9"], "unknown architecture 'a9'"),
        (["missing.pto"], "cannot open 'missing.pto': No such file or directory"),
        (["/"], "cannot read '/': Is a directory"),
        (["-", "-o", "missing/out.cpp"], "cannot create 'missing/out.cpp.tmp."),
    ],
)
def test_wrong_commands(run: Run, arguments: list[str], message: str) -> None:
    done = run(*arguments, stdin=GOOD)
    assert done.returncode == 2
    assert message in done.stderr.decode()
    assert done.stdout == b""


def test_wrong_text_names_its_place_and_writes_nothing(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "bad.pto"
    source.write_bytes(BAD)
    out = tmp_path / "out.cpp"
    done = run(source, "-o", out)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode() == (
        f"{source}:3:17: error: '%a' is not defined here\n"
        "  %r = arith.addi %a, %a : index\n"
        "                  ^\n"
        f"{source}:3:21: error: '%a' is not defined here\n"
        "  %r = arith.addi %a, %a : index\n"
        "                      ^\n"
    )
    assert sorted(os.listdir(tmp_path)) == ["bad.pto", "home"]


def test_wrong_text_leaves_an_older_output_alone(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out.cpp"
    out.write_text("older")
    assert run("-", "-o", out, stdin=BAD).returncode == 1
    assert out.read_text() == "older"
    assert run("-", "-o", out, stdin=GOOD).returncode == 0
    assert out.read_bytes() == EXPECTED
    assert sorted(os.listdir(tmp_path)) == ["home", "out.cpp"]


def test_output_may_be_no_file(run: Run) -> None:
    assert run("-", "-o", "/dev/null", stdin=GOOD).returncode == 0
    assert Path("/dev/null").is_char_device()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_an_error(run: Run) -> None:
    done = run("-", "-o", "/dev/full", stdin=GOOD)
    assert done.returncode == 2
    assert b"No space left on device" in done.stderr


def test_endless_input_is_refused(run: Run) -> None:
    done = run("/dev/zero")
    assert done.returncode == 1
    assert b"the limit is 4194304" in done.stderr


def test_version(run: Run) -> None:
    assert re.fullmatch(rb"ptoas \d+\.\d+\.\d+\n", run("--version").stdout)


def test_help_names_every_option(run: Run) -> None:
    text = run("--help").stdout.decode()
    for option in ("-o", "--pto-arch", "--pto-level", "--enable-insert-sync", "--version"):
        assert option in text


def test_the_command_is_an_elf_with_a_build_id(assembler: Path) -> None:
    with assembler.open("rb") as stream:
        elf = ELFFile(stream)
        notes = [
            note["n_type"]
            for section in elf.iter_sections()
            if isinstance(section, NoteSection)
            for note in section.iter_notes()
        ]
        dynamic = elf.get_section_by_name(".dynamic")
        needed = [tag.needed for tag in dynamic.iter_tags("DT_NEEDED")]
    assert "NT_GNU_BUILD_ID" in notes
    # It stands alone: nothing but what every machine with a C++ compiler has.
    everywhere = ("libc.", "libm.", "libgcc_s.", "libstdc++.", "ld-linux")
    assert not [name for name in needed if not name.startswith(everywhere)]


SPACES = {
    "vec_bytes": "vec",
    "mat_bytes": "mat",
    "left_bytes": "left",
    "right_bytes": "right",
    "acc_bytes": "acc",
    "bias_bytes": "bias",
}


def test_limits_are_those_of_the_sdk(run: Run) -> None:
    sdk = Path(pypto.__file__).parent / "_sdk/sdk.json"
    for arch, limits in json.loads(sdk.read_text())["limits"].items():
        assert set(limits) == set(SPACES)
        for name, limit in limits.items():
            for address, fits in ((limit - 32, True), (limit, False)):
                text = f"""module {{
                  func.func @f() {{
                    %a = arith.constant {address} : i64
                    %t = pto.alloc_tile addr = %a : !pto.tile_buf<loc={SPACES[name]}, dtype=f32,
                                                                  rows=1, cols=8>
                    return
                  }}
                }}"""
                done = run("-", "--pto-arch", arch, stdin=text.encode())
                assert (done.returncode == 0) == fits, (arch, name, address, done.stderr)
