"""The tests of this folder share modules that are no tests, and a remote that is filled once."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, os.path.dirname(__file__))

from forged_entries import sent_to_memory

if TYPE_CHECKING:
    from pypto_store.remote.memory import MemoryRemote


@pytest.fixture(scope="session")
def sent_entries(tmp_path_factory: pytest.TempPathFactory) -> MemoryRemote:
    """The remote of `forged_entries`, to be copied."""
    return sent_to_memory(tmp_path_factory.mktemp("sent"))
