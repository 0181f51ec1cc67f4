"""Which assembler builds run. The programs are scripts; real ones are in tests/integration."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from pypto.compiler.assembler_choice import AssemblerChoice
from pypto_toolchains.ptoas import PtoasNotFound

_GOOD = """\
#include "pto/pto-inst.hpp"
__global__ AICORE void sample(__gm__ float* a, __gm__ float* b) {
  TLOAD(x, a); TMULS(x, x, 2); TSTORE(b, x);
}
"""


def script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho started >> {path.parent}/log\n{body}\n")
    path.chmod(0o755)
    return path


def starts(path: Path) -> int:
    log = path.parent / "log"
    return len(log.read_text().splitlines()) if log.exists() else 0


@pytest.fixture
def bundled(tmp_path: Path) -> Path:
    return script(tmp_path / "sdk" / "bin" / "ptoas", "exit 9")


@pytest.fixture
def works(tmp_path: Path) -> Path:
    return script(tmp_path / "works" / "ptoas", f"cat <<'END'\n{_GOOD}END")


@pytest.fixture
def fails(tmp_path: Path) -> Path:
    return script(tmp_path / "fails" / "ptoas", "echo out of order >&2; exit 4")


def test_the_bundled_one_is_not_tried(tmp_path: Path, bundled: Path) -> None:
    assert AssemblerChoice().choose({}, bundled, tmp_path) == bundled
    assert starts(bundled) == 0


def test_one_that_works_is_tried_once_for_equal_variables(
    tmp_path: Path, bundled: Path, works: Path, caplog: pytest.LogCaptureFixture
) -> None:
    choice = AssemblerChoice()
    environ = {"PTOAS_ROOT": str(works.parent), "PATH": "/usr/bin:/bin"}
    for _ in range(3):
        assert choice.choose(environ, bundled, tmp_path) == works
    assert starts(works) == 1
    assert choice.choose({**environ, "LD_LIBRARY_PATH": "/lib"}, bundled, tmp_path) == works
    assert starts(works) == 2
    assert not caplog.records


def test_one_that_fails_is_replaced_and_told_of_once(
    tmp_path: Path, bundled: Path, fails: Path, works: Path, caplog: pytest.LogCaptureFixture
) -> None:
    choice = AssemblerChoice()
    environ = {"PTOAS_ROOT": str(fails.parent), "PATH": "/usr/bin:/bin"}
    with caplog.at_level(logging.WARNING, "pypto.compiler"):
        for _ in range(3):
            assert choice.choose(environ, bundled, tmp_path) == bundled
    (record,) = caplog.records
    assert "out of order" in record.getMessage()
    assert str(fails) in record.getMessage()
    fails.write_text(works.read_text())  # a failure is not remembered
    assert choice.choose(environ, bundled, tmp_path) == fails


@pytest.mark.parametrize("left_out", ["#include", "__global__", "TLOAD", "TMULS", "TSTORE"])
def test_what_is_relied_upon_has_to_be_there(
    tmp_path: Path, bundled: Path, left_out: str, caplog: pytest.LogCaptureFixture
) -> None:
    odd = script(tmp_path / "odd" / "ptoas", f"cat <<'END'\n{_GOOD.replace(left_out, 'x')}END")
    environ = {"PTOAS_ROOT": str(odd.parent), "PATH": "/usr/bin:/bin"}
    assert AssemblerChoice().choose(environ, bundled, tmp_path) == bundled
    assert "text without" in caplog.text


@pytest.mark.parametrize("header", ["pto/pto-inst.hpp", "pto/sim/elementwise.hpp"])
def test_one_may_include_all_instructions_or_those_it_uses(
    tmp_path: Path, bundled: Path, header: str
) -> None:
    text = _GOOD.replace("pto/pto-inst.hpp", header)
    other = script(tmp_path / "other" / "ptoas", f"cat <<'END'\n{text}END")
    environ = {"PTOAS_ROOT": str(other.parent), "PATH": "/usr/bin:/bin"}
    assert AssemblerChoice().choose(environ, bundled, tmp_path) == other


def test_there_may_be_nothing_to_replace_it_with(tmp_path: Path, fails: Path) -> None:
    environ = {"PTOAS_ROOT": str(fails.parent), "PATH": "/usr/bin:/bin"}
    with pytest.raises(PtoasNotFound, match=r"out of order.*there is no bundled assembler"):
        AssemblerChoice().choose(environ, tmp_path / "missing", tmp_path)
