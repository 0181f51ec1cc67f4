"""Children that crash, stop and fork: what the fault tests share."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

import pytest

# The tests of this folder share modules that are no tests.
sys.path.insert(0, os.path.dirname(__file__))


class Child:
    """A forked process without exec, killed at the end of the test if it still lives."""

    def __init__(self, action):
        with warnings.catch_warnings():
            # A thread that was left waiting for a lock may still be on its way out.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if self.pid == 0:
            status = 99
            try:
                status = int(action() or 0)
            except BaseException:  # noqa: BLE001  a child reports everything and returns nowhere
                traceback.print_exc()
            finally:
                os._exit(status)
        self._status = None

    def wait(self):
        """The exit status, or minus the signal that ended it."""
        if self._status is None:
            self._status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._status

    def signal(self, number):
        if self._status is None:
            os.kill(self.pid, number)

    def kill(self):
        self.signal(signal.SIGKILL)
        return self.wait()


class Latch:
    """A gate between processes: `wait` returns once someone has called `open`."""

    def __init__(self):
        self._read, self._write = os.pipe()

    def open(self):
        os.write(self._write, b"x" * 100)

    def wait(self):
        os.read(self._read, 1)

    def close(self):
        os.close(self._read)
        os.close(self._write)


@pytest.fixture
def child():
    """Start children; none survives the test."""
    children = []

    def start(action):
        children.append(Child(action))
        return children[-1]

    yield start
    for started in children:
        started.kill()


@pytest.fixture
def memory_path(tmp_path):
    """As `tmp_path`, in memory if there is room: for thousands of small trees that nobody keeps."""
    memory = "/dev/shm"
    if not os.access(memory, os.W_OK) or shutil.disk_usage(memory).free < 1 << 28:
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory, prefix="pypto-test-") as directory:
        yield Path(directory)


@pytest.fixture
def no_sync(monkeypatch):
    """Leave durability to the page cache, which outlives any process: the tests are bounded."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def latch():
    """Make latches."""
    latches = []

    def make():
        latches.append(Latch())
        return latches[-1]

    yield make
    for made in latches:
        made.open()  # whoever still waits, be it a child of a child, goes on
        made.close()
