"""The hermetic toolchain that Bazel makes, and installations that use it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

# The tests of this folder share modules that are no tests.
sys.path.insert(0, os.path.dirname(__file__))

from places import Place

VARIABLE = "PYPTO_TEST_TOOLCHAIN"


@pytest.fixture(scope="session")
def toolchain() -> Path:
    """The directory of the toolchain."""
    named = os.environ.get(VARIABLE)
    if not named:
        pytest.skip(f"{VARIABLE} names no toolchain; ./bazelw build //toolchains/zig:kernel")
    return Path(named).absolute()


@pytest.fixture(scope="module")
def place(toolchain: Path, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """An installation that tests of a module share."""
    return Place(tmp_path_factory.mktemp("place"), toolchain)
