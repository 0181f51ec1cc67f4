"""Stores to look at, and the command line as a process sees it, terminal or none."""

from __future__ import annotations

import io
import json
import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from pypto_store import ArtifactStore
from pypto_store.testing import GENERATED, READY, payload_builder, ready_spec, sample_key
from pypto_store.tools.command_line import Edge, run

# The tests of this folder share modules that are no tests.
sys.path.insert(0, os.path.dirname(__file__))


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


@dataclass
class Done:
    """How one command ended."""

    status: int
    out: str
    err: str

    @property
    def document(self):
        return json.loads(self.out)


@pytest.fixture
def command():
    """Run a command without a terminal."""

    def start(*arguments, environ=None):
        out, err = io.StringIO(), io.StringIO()
        status = run([str(word) for word in arguments], Edge(environ or {}, out, err))
        return Done(status, out.getvalue(), err.getvalue())

    return start


@pytest.fixture
def on_terminal(monkeypatch):
    """Run a command on a terminal of a width."""

    def start(*arguments, width=100):
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("TERM", "xterm")
        out, err = Terminal(), Terminal()
        status = run([str(word) for word in arguments], Edge({}, out, err))
        return Done(status, out.getvalue(), err.getvalue())

    return start


@contextmanager
def _writing(root):
    store = ArtifactStore(root)
    try:
        yield store
    finally:
        store._lease.drop()


@pytest.fixture
def writing():
    """A store to write with, whose process is none of its writers afterwards."""
    return _writing


@pytest.fixture
def root(tmp_path):
    """A root with two keys: one GENERATED and two READY, and one GENERATED. Nobody uses it."""
    with _writing(tmp_path / "root") as store:
        for key, spec in (
            (sample_key("one"), GENERATED),
            (sample_key("one"), READY),
            (sample_key("one"), ready_spec("x86-64")),
            (sample_key("two", "elsewhere"), GENERATED),
        ):
            store.get_or_build(key, spec, payload_builder(), private_parent=tmp_path / "p")
    return tmp_path / "root"


@pytest.fixture
def place(tmp_path):
    """The directory of a remote that is one."""
    return tmp_path / "remote"


@pytest.fixture
def url(place):
    """That remote."""
    return f"file://{place}"
