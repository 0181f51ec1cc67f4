"""The example's program as Bazel starts it: every kernel is ready, whatever the shell says."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(os.environ.get("PYPTO_TEST_SERVE", "")).absolute()
CACHE = Path(os.environ.get("PYPTO_TEST_KERNEL_CACHE", "")).absolute()

pytestmark = pytest.mark.skipif(
    "PYPTO_TEST_SERVE" not in os.environ, reason="needs the program that Bazel builds"
)


def _serve(cwd: Path, **environ: str) -> dict[str, Any]:
    done = subprocess.run(
        [PROGRAM],
        cwd=cwd,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def _ready(report: dict[str, Any]) -> None:
    assert report["requests"] == report["ready_hits"] == 3
    assert report["bypasses"] == 0, report["last_bypass_reason"]
    for counter in ("generated_hits", "misses", "storage_errors", "invalid_entries"):
        assert report[counter] == 0, counter
    assert report["generation_builds"] == report["binary_builds"] == 0
    assert report["programs_started"] == []


def test_all_kernels_are_ready(tmp_path: Path) -> None:
    _ready(_serve(tmp_path))
    assert list(tmp_path.iterdir()) == [], "nor does it write anything"


@pytest.mark.parametrize(
    "shell",
    [
        {"PATH": "/usr/local/bin:/usr/bin"},
        {"PATH": "/nowhere"},
        {"CPATH": "/opt/include", "LD_LIBRARY_PATH": "lib:/opt/lib"},
        {"COMPILER_PATH": "/nowhere", "LIBRARY_PATH": "lib", "SOURCE_DATE_EPOCH": "7"},
    ],
    ids=["another PATH", "no tool on PATH", "other libraries", "other tools"],
)
def test_the_shell_does_not_matter(tmp_path: Path, shell: dict[str, str]) -> None:
    _ready(_serve(tmp_path, **shell))


def test_whoever_starts_it_may_do_without(tmp_path: Path) -> None:
    report = _serve(tmp_path, PYPTO_CACHE="0", PYPTO_TOOL_PATH="/usr/bin:/bin")
    assert report["ready_hits"] == 0
    assert report["generation_builds"] == report["binary_builds"] == 3


def test_the_root_is_shown_by_links_and_has_nothing_for_writers() -> None:
    marker = CACHE / "STORE"
    # A sandbox links each file, and other ways of running the directory.
    assert marker.is_symlink() or CACHE.is_symlink()
    assert {path.name for path in CACHE.iterdir()} == {
        "STORE", "artifacts", "evidence", "facts", "tools",
    }  # fmt: skip
