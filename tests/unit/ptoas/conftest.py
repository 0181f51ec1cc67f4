"""The assembler under test, as a command."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pypto
import pytest

Assembler = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture(scope="session")
def assembler() -> Path:
    named = os.environ.get("PYPTO_TEST_PTOAS")
    path = Path(named or Path(pypto.__file__).parent / "_sdk/bin/ptoas").absolute()
    assert path.is_file(), f"no assembler at {path}: build it, or name it in PYPTO_TEST_PTOAS"
    return path


@pytest.fixture
def run(assembler: Path, tmp_path: Path) -> Assembler:
    """Runs the assembler in an empty directory of its own."""
    home = tmp_path / "home"
    home.mkdir()

    def call(*arguments: str | Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        command = [str(assembler), *map(str, arguments)]
        return subprocess.run(command, input=stdin, capture_output=True, cwd=home, timeout=60)

    return call
