"""Every program of docs/examples runs, and says what it is to say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = next(
    parent for parent in Path(__file__).parents if (parent / "docs" / "adr" / "README.md").exists()
)
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.py"))


@pytest.mark.parametrize("program", EXAMPLES, ids=lambda path: path.stem)
def test_the_program_runs(program: Path, tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, str(program)],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-4000:]
    assert "torch" in result.stdout, "what it computed was compared"
