"""Waiting in sight: who holds a lock is said to whoever waits for it."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from pypto_store import locks
from pypto_store.lock_holder import describe_holder
from pypto_store.locks import LockUnavailable, acquire

HOLD = """
import fcntl, os, sys
descriptor = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(descriptor, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "key.lock")


@pytest.fixture
def holder(path):
    """Another process that holds the lock."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def stop(process):
    process.send_signal(signal.SIGSTOP)
    # Only once it is stopped does a parent that asks get an answer.
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)


def described(path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return describe_holder(descriptor)
    finally:
        os.close(descriptor)


def test_a_holder_is_named_with_its_command(path, holder):
    told, stopped = described(path)
    assert f"process {holder.pid} ({sys.executable} -c" in told
    assert len(told) < 250
    assert not stopped


def test_a_stopped_holder_is_said_to_be_stopped(path, holder):
    stop(holder)
    told, stopped = described(path)
    assert stopped
    assert f"kill -CONT {holder.pid}" in told


def test_a_thread_of_the_same_process_is_this_process(path):
    with acquire(path, shared=False, timeout=0):
        assert described(path)[0].startswith("this process")


def test_readers_are_all_named(path, holder):
    holder.communicate("")
    with acquire(path, shared=True, timeout=10), acquire(path, shared=True, timeout=10):
        assert described(path)[0].count("this process") == 2


def test_nobody_in_sight_is_said(path):
    acquire(path, shared=False, timeout=0).release()
    assert "another machine" in described(path)[0]


def test_an_unreadable_process_table_is_no_error(path, holder, monkeypatch):
    monkeypatch.setattr("pypto_store.lock_holder._read", lambda _: "")
    assert "another machine" in described(path)[0]


def waiting(path, caplog, until):
    """Wait for the lock in a thread until a record satisfies `until`; gives that record."""
    caplog.set_level(logging.INFO, logger="pypto_store")
    taken = []
    waiter = threading.Thread(target=lambda: taken.append(acquire(path, shared=False, timeout=30)))
    waiter.start()
    deadline = time.monotonic() + 30
    found = []
    while not found and time.monotonic() < deadline:
        time.sleep(0.005)
        found = [record for record in caplog.records if until(record)]
    return found, waiter, taken


@pytest.mark.parametrize(
    ("level", "stopped"), [(logging.INFO, False), (logging.WARNING, True), (logging.WARNING, False)]
)
def test_a_waiter_says_whom_it_waits_for(path, holder, monkeypatch, caplog, level, stopped):
    monkeypatch.setattr(locks, "_FIRST_NOTICE", 0.02)
    if not stopped:
        # The second notice of a running holder is a warning too.
        monkeypatch.setattr(locks, "_NEXT_NOTICE", 0.04)
    if stopped:
        stop(holder)
    found, waiter, taken = waiting(path, caplog, lambda record: record.levelno == level)
    holder.kill()
    waiter.join(30)
    taken[0].release()
    text = found[0].getMessage()
    assert path in text
    assert f"process {holder.pid}" in text
    assert ("stopped" in text) == stopped


def test_a_short_wait_is_silent(path, holder, caplog):
    caplog.set_level(logging.INFO, logger="pypto_store")
    with pytest.raises(LockUnavailable, match=r"timed out after 0\.1 s; held by process \d+ \("):
        acquire(path, shared=False, timeout=0.1)
    assert not caplog.records
