"""Settings of a launcher that has a workspace and a cache of its own."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from bootstrap.progress import Progress
from bootstrap.settings import Settings


@pytest.fixture
def progress() -> Progress:
    return Progress(StringIO())


@pytest.fixture
def make_settings(tmp_path: Path) -> Callable[..., Settings]:
    def make(**environ: str) -> Settings:
        given = {
            "HOME": str(tmp_path),
            "BAZELW_CACHE": str(tmp_path / "cache"),
            "PATH": "/usr/bin:/bin",
        }
        workspace = tmp_path / "workspace"
        workspace.mkdir(exist_ok=True)
        return Settings.from_environ(workspace, given | environ)

    return make


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str, str], Path]:
    """Makes an executable shell script ``name`` in a directory of its own and returns it."""

    def make(name: str, body: str) -> Path:
        path = tmp_path / "programs" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        path.chmod(0o755)
        return path

    return make
