from __future__ import annotations

from pathlib import Path

import pytest
from pypto_toolchains.evidence import Unavailable
from pypto_toolchains.ptoas import PtoasNotFound, capture_ptoas, select_ptoas
from pypto_toolchains.records import ProbeRecords


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def bundled(tmp_path: Path) -> Path:
    return program(tmp_path / "sdk" / "bin" / "ptoas")


def select(tmp_path: Path, bundled: Path, **environ: str) -> Path:
    return select_ptoas(environ, bundled, tmp_path)


def test_the_bundled_one_is_the_default(tmp_path: Path, bundled: Path) -> None:
    program(tmp_path / "path" / "ptoas")
    assert select(tmp_path, bundled, PATH=str(tmp_path / "path")) == bundled
    assert select(tmp_path, bundled, PTOAS_ROOT="") == bundled


@pytest.mark.parametrize("spelling", ["ptoas", "bin/ptoas"])
def test_the_root_is_exclusive(tmp_path: Path, bundled: Path, spelling: str) -> None:
    chosen = program(tmp_path / "root" / spelling)
    assert select(tmp_path, bundled, PTOAS_ROOT=str(tmp_path / "root")) == chosen
    assert select(tmp_path, bundled, PTOAS_ROOT="root") == chosen  # from where it will run
    chosen.unlink()
    with pytest.raises(PtoasNotFound, match=r"PTOAS_ROOT=.*root holds no executable"):
        select(tmp_path, bundled, PTOAS_ROOT=str(tmp_path / "root"), PATH=str(bundled.parent))


def test_a_directory_in_its_place_is_passed_over(tmp_path: Path, bundled: Path) -> None:
    """Newer ones have a package of that name there."""
    (tmp_path / "root" / "ptoas").mkdir(parents=True)
    chosen = program(tmp_path / "root" / "bin" / "ptoas")
    assert select(tmp_path, bundled, PTOAS_ROOT=str(tmp_path / "root")) == chosen


def test_the_path_counts_where_none_is_bundled(tmp_path: Path) -> None:
    missing = tmp_path / "sdk" / "bin" / "ptoas"
    found = program(tmp_path / "path" / "ptoas")
    assert select(tmp_path, missing, PATH=str(found.parent)) == found
    with pytest.raises(PtoasNotFound, match="PATH has no ptoas"):
        select(tmp_path, missing, PATH="/nowhere")


def test_no_assembler_is_a_reason(tmp_path: Path) -> None:
    captured = capture_ptoas({"PATH": "/nowhere"}, tmp_path / "ptoas", tmp_path, ProbeRecords(None))
    assert isinstance(captured.outcome, Unavailable)
    assert "no assembler" in captured.outcome.reason
    assert captured.records == ()
