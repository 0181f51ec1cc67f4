"""Commands of the store over three entries: rehearsed, and killed at a point that they reach."""

from __future__ import annotations

import io
import os
import signal
import threading

from pypto_store import ArtifactStore, Hit, Miss, crash_points
from pypto_store.testing import (
    GENERATED,
    PAYLOAD,
    READY,
    payload_builder,
    sample_key,
    snapshot,
)
from pypto_store.tools.command_line import Edge, run

WANTED = [(sample_key("one"), GENERATED), (sample_key("one"), READY), (sample_key("two"), READY)]


def published(directory):
    """A root below `directory` that has what is WANTED."""
    store = ArtifactStore(directory / "source")
    for key, spec in WANTED:
        store.get_or_build(key, spec, payload_builder(), private_parent=directory / "p")
    return directory / "source"


def command(*words):
    return run([str(word) for word in words], Edge({}, io.StringIO(), io.StringIO()))


def rehearse(*words):
    """Every point that a command reaches, in order."""
    reached = []
    with crash_points.armed(reached.append):
        assert command(*words) == 0
    return reached


def killed(child, number, *words):
    """Run a command in a child that is killed at the point of that number."""
    left, lock = [number], threading.Lock()

    def strike(_):
        with lock:
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1

    def crash():
        with crash_points.armed(strike):
            command(*words)

    assert child(crash).wait() == -signal.SIGKILL


def assert_halfway(root, point):
    """Of what is WANTED, a root that was being filled has each entry whole or not at all."""
    store = ArtifactStore(root, lock_timeout=20)
    for key, spec in WANTED:
        assert isinstance(store.lookup(key, spec), (Hit, Miss)), point


def assert_filled(root, point):
    """The root has all that is WANTED, to the byte, and nothing else is left in it."""
    store = ArtifactStore(root, lock_timeout=20)
    for key, spec in WANTED:
        found = store.lookup(key, spec)
        assert isinstance(found, Hit), point
        assert {path: found.entry.read(path) for path in PAYLOAD} == PAYLOAD, point
    assert not [path for path in snapshot(root) if ".tmp." in path], point
