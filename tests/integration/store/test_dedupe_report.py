"""The report of what sharing saves, over a small corpus."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = (Path(__file__).parents[2] / "benchmarks" / "dedupe.py").resolve()
KERNELS = 4


def test_the_second_revision_costs_manifests_alone(tmp_path: Path, site: Any) -> None:
    figures = tmp_path / "figures.json"
    command = [sys.executable, str(PROGRAM), "--kernels", str(KERNELS), "--output", str(figures)]
    result = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, **site.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    generated, ready, once, twice = json.loads(figures.read_text(encoding="utf-8"))
    assert generated["entries"] == ready["entries"] == KERNELS
    # GENERATED and READY of one key share nothing, and here no other kernel's do either.
    assert once["inodes"] <= generated["inodes"] + ready["inodes"]
    assert twice["files"] == 2 * once["files"]
    assert twice["inodes"] == once["inodes"] + 2 * KERNELS
    assert twice["saved"] == twice["apparent"] - twice["kept"] > once["apparent"] // 2
    assert twice["blocks"] - twice["kept_blocks"] > 0
    assert f"{twice['saved']} bytes saved of {twice['apparent']}" in result.stdout
