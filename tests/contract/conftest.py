"""The tests of this folder share modules that are no tests, and a remote that is filled once."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, os.path.dirname(__file__))

from forged_entries import NAME, Truth, sent_to_memory
from pypto_store.remote.messages import ActionResult

if TYPE_CHECKING:
    from pypto_store.remote.memory import MemoryRemote


@pytest.fixture(scope="session")
def sent_entries(tmp_path_factory: pytest.TempPathFactory) -> MemoryRemote:
    """The remote of `forged_entries`, to be copied."""
    return sent_to_memory(tmp_path_factory.mktemp("sent"))


@pytest.fixture
def remote(sent_entries: MemoryRemote) -> MemoryRemote:
    """A remote with the entry, with which a test may do what it wants."""
    return sent_entries.copy()


@pytest.fixture
def truth(remote: MemoryRemote) -> Truth:
    """What the remote has before the test changes it."""
    return Truth(ActionResult.decode(remote.entries[NAME]))
