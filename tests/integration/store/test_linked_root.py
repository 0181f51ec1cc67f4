"""A root as Bazel shows it to a sandbox: a tree of directories whose every file is a link."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pypto.runtime.cpu_level import host_level, levels_up_to

LESSER = levels_up_to(host_level())[1:]


def link_tree(root: Path, links: Path) -> None:
    """Show `root` at `links` as a tree of links."""
    for path in root.rglob("*"):
        place = links / path.relative_to(root)
        if path.is_dir():
            place.mkdir(parents=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(path)


@pytest.fixture
def shipped(filled: Any, tmp_path: Path) -> Any:
    """A filled site whose root lies elsewhere, read-only as a build's outputs, shown by links."""
    real = tmp_path / "output" / "cache"
    shutil.copytree(filled.root, real)
    for name in ("locks", "cas"):
        shutil.rmtree(real / name)
    for path in real.rglob("*"):
        if path.is_file():
            path.chmod(0o555)
    shutil.rmtree(filled.root)
    link_tree(real, filled.root)
    return filled


def test_ready_is_served_and_no_tool_is_asked(shipped: Any, snapshot_of: Any) -> None:
    before = snapshot_of(shipped.root)
    report = shipped.run(readonly=True)
    assert report["correct"]
    assert report["stats"]["ready_hits"] == 1
    assert report["stats"]["bypasses"] == report["stats"]["binary_builds"] == 0
    assert report["programs"] == [], "the record of the compiler is found beside the entries"
    assert snapshot_of(shipped.root) == before


@pytest.mark.skipif(not LESSER, reason="this processor runs one level only")
def test_a_read_only_root_serves_what_was_built_for_a_lesser_processor(filled: Any) -> None:
    _rebuild_for(filled, LESSER[-1])
    report = filled.run(readonly=True)
    assert report["correct"]
    assert report["stats"]["ready_hits"] == 1
    assert report["stats"]["binary_builds"] == 0


@pytest.mark.skipif(not LESSER, reason="this processor runs one level only")
def test_a_root_that_may_be_written_to_gets_what_this_processor_can_do(filled: Any) -> None:
    _rebuild_for(filled, LESSER[-1])
    report = filled.run()
    assert report["correct"]
    assert report["stats"]["generated_hits"] == report["stats"]["binary_builds"] == 1
    assert filled.run()["stats"]["ready_hits"] == 1


def _rebuild_for(site: Any, level: str) -> None:
    """Leave READY of the site's kernel for another CPU level alone."""
    shutil.rmtree(site.slot("ready").parent)
    command = [sys.executable, "-m", "pypto.jit", "complete", "--root", str(site.root)]
    done = subprocess.run(
        [*command, "--cpu-level", level],
        env={**os.environ, **site.environ},
        cwd=site.work,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["entries"][0]["cpu_level"] == level
