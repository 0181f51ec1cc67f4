"""Servers that fail, on loopback, and machines that build in spite of them."""

from __future__ import annotations

import logging
import os
import sys

import pytest

_TESTS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# The modules of this folder, and the servers of the tests of engines.
sys.path[:0] = [
    os.path.dirname(os.path.abspath(__file__)),
    os.path.join(_TESTS, "contract"),
    os.path.join(_TESTS, "integration", "remote"),
]


@pytest.fixture(autouse=True)
def no_sync(monkeypatch):
    """Durability is not what is tested here; children inherit this, programs do not."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def started():
    """Servers are put in here by the test that starts them, and stopped after it."""
    servers = []
    yield servers
    for server in reversed(servers):
        server.stop()


@pytest.fixture
def machine(tmp_path):
    """Makes machines: a store, a remote, and what was counted of it."""
    from machines import Machine

    made = []

    def make(config, name=None):
        made.append(Machine(tmp_path / (name or f"machine-{len(made)}"), config))
        return made[-1]

    yield make
    for one in made:
        one.stop()


@pytest.fixture
def told(caplog):
    """What was logged about remotes, as texts."""
    caplog.set_level(logging.INFO, "pypto_store")
    return lambda: [record.getMessage() for record in caplog.records if "remote" in record.name]
