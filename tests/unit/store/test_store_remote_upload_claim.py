"""Claims of uploads: one holder on a machine, freed by any end, and nothing depends on them."""

from __future__ import annotations

import errno
import os
import signal
import socket
import sys
import uuid

import pytest
from pypto_store.remote.upload_claim import claimed

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="abstract sockets are Linux's"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]

URL = "http://there"


@pytest.fixture
def name():
    """A name that no other test run on this machine has."""
    return str(uuid.uuid4())


def is_free(*place):
    with claimed(*place, patience=0) as held:
        return held


class Time:
    """A clock that only sleeping moves."""

    def __init__(self):
        self.now = 0.0

    def sleep(self, seconds):
        self.now += seconds

    def clock(self):
        return self.now


def test_one_holder_at_a_time(name):
    with claimed(URL, "", name, patience=0) as held:
        assert held
        assert not is_free(URL, "", name)
    assert is_free(URL, "", name)


def test_every_part_of_the_name_counts_and_none_runs_into_the_next(name):
    with claimed(URL, "main", name, patience=0):
        assert not is_free(URL, "main", name)
        assert is_free(URL, "", name)
        assert is_free(URL + "/", "main", name)
        assert is_free(URL, "main", name + "1")
        assert is_free(URL + "main", "", name)
        assert is_free(URL, "mai", "n" + name)


def test_it_is_waited_for_and_no_longer_than_it_is_held(name):
    time = Time()
    holder = claimed(URL, "", name, patience=0)
    holder.__enter__()

    def sleep(seconds):
        time.sleep(seconds)
        if time.now > 3:
            holder.__exit__(None, None, None)

    with claimed(URL, "", name, patience=100, sleep=sleep, clock=time.clock) as held:
        assert held
    assert 3 < time.now < 3.1


def test_after_the_patience_it_goes_on_without(name):
    time = Time()
    with claimed(URL, "", name, patience=0):
        with claimed(URL, "", name, patience=5, sleep=time.sleep, clock=time.clock) as held:
            assert not held
        assert 4.9 < time.now <= 5
        assert not is_free(URL, "", name)  # who went on without it did not free it


def test_an_error_frees_it(name):
    with pytest.raises(ZeroDivisionError), claimed(URL, "", name, patience=0):
        raise ZeroDivisionError
    assert is_free(URL, "", name)


def test_an_interrupted_wait_leaves_nothing_open(name):
    def interrupted(seconds):
        raise KeyboardInterrupt

    with claimed(URL, "", name, patience=0):
        before = len(os.listdir("/proc/self/fd"))
        waiting = claimed(URL, "", name, patience=5, sleep=interrupted)
        with pytest.raises(KeyboardInterrupt), waiting:
            pass
        assert len(os.listdir("/proc/self/fd")) == before


def forked(action):
    pid = os.fork()
    if pid == 0:
        try:
            action()
        finally:
            os._exit(70)
    return pid


def test_a_killed_holder_frees_it(name):
    read, write = os.pipe()

    def hold():
        with claimed(URL, "", name, patience=0):
            os.write(write, b"x")
            signal.pause()

    pid = forked(hold)
    try:
        assert os.read(read, 1) == b"x"
        assert not is_free(URL, "", name)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    os.close(read), os.close(write)
    assert is_free(URL, "", name)


def test_the_child_of_a_holder_does_not_hold_it(name):
    with claimed(URL, "", name, patience=0):
        pid = forked(signal.pause)
    try:
        with claimed(URL, "", name, patience=20) as held:  # the child needs a moment to let go
            assert held
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_the_child_of_one_who_waits_does_not_hold_it_later(name):
    holder, children = claimed(URL, "", name, patience=0), []
    holder.__enter__()

    def sleep(seconds):
        if not children:
            children.append(forked(signal.pause))
            holder.__exit__(None, None, None)

    with claimed(URL, "", name, patience=20, sleep=sleep) as held:
        assert held
    try:
        with claimed(URL, "", name, patience=20) as held:
            assert held
    finally:
        os.kill(children[0], signal.SIGKILL)
        os.waitpid(children[0], 0)


@pytest.mark.parametrize("number", [errno.EPERM, errno.EACCES, errno.EAFNOSUPPORT, errno.EMFILE])
def test_where_sockets_cannot_be_had_uploads_go_on(name, monkeypatch, number):
    class Forbidden:
        def __init__(self, *_):
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(socket, "socket", Forbidden)
    with claimed(URL, "", name, patience=60) as held:
        assert not held


def test_where_binding_is_forbidden_uploads_go_on_at_once(name, monkeypatch):
    class Bound(socket.socket):
        def bind(self, address):
            raise PermissionError(errno.EACCES, "no")

    monkeypatch.setattr(socket, "socket", Bound)
    with claimed(URL, "", name, patience=60, sleep=pytest.fail) as held:
        assert not held


def test_systems_without_abstract_sockets_claim_nothing(name, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    with claimed(URL, "", name, patience=60) as held:
        assert not held
