from __future__ import annotations

import os
import sys
import threading
import time
import warnings

import pytest
from pypto_store import ArtifactStore, Private
from pypto_store.flights import Flights
from pypto_store.testing import READY, payload_builder, sample_key


def wait_until_following(count):
    """Until `count` threads wait inside Flights.run for somebody else's result."""

    def followers():
        waiting = 0
        for frame in sys._current_frames().values():
            names = []
            while frame is not None:
                names.append(frame.f_code.co_qualname)
                frame = frame.f_back
            waiting += "Flights.run" in names and "Flights._lead" not in names
        return waiting

    deadline = time.monotonic() + 30
    while followers() < count:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def overlap(action, call, followers):
    """Run `call` in a leader and `followers` threads that all join the leader's flight."""
    results = []

    def record():
        try:
            results.append(call())
        except BaseException as error:  # noqa: BLE001  interruptions too
            results.append(error)

    threads = [threading.Thread(target=record) for _ in range(followers + 1)]
    threads[0].start()
    action.entered.wait(30)
    for thread in threads[1:]:
        thread.start()
    wait_until_following(followers)
    action.leave.set()
    for thread in threads:
        thread.join(30)
    return results


class Action:
    def __init__(self, *outcomes):
        self.entered, self.leave = threading.Event(), threading.Event()
        self.outcomes = list(outcomes)
        self.calls = 0

    def __call__(self, *_):
        self.calls += 1
        self.entered.set()
        self.leave.wait(30)
        outcome = self.outcomes.pop(0) if self.outcomes else "late"
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


def test_followers_share_the_result():
    flights, action = Flights(), Action("result")
    assert overlap(action, lambda: flights.run("name", action), 3) == ["result"] * 4
    assert action.calls == 1


def test_followers_share_the_error_and_nothing_is_remembered():
    flights, action = Flights(), Action(ValueError("broken"), "fine")
    results = overlap(action, lambda: flights.run("name", action), 3)
    assert len({id(result) for result in results}) == 1
    assert isinstance(results[0], ValueError)
    assert flights.run("name", action) == "fine"


def test_interruption_stops_only_its_own_thread():
    flights, action = Flights(), Action(KeyboardInterrupt(), "second")
    results = overlap(action, lambda: flights.run("name", action), 1)
    assert [type(result) for result in results].count(KeyboardInterrupt) == 1
    assert "second" in results


def test_other_names_do_not_wait():
    flights = Flights()
    assert flights.run("a", lambda: flights.run("b", lambda: "inner")) == "inner"


def test_asking_for_what_oneself_builds_is_an_error():
    flights = Flights()
    with pytest.raises(RuntimeError, match="it is building"):
        flights.run("a", lambda: flights.run("a", lambda: None))


def test_child_does_not_wait_for_threads_it_does_not_have():
    flights, action = Flights(), Action("result")
    leader = threading.Thread(target=lambda: flights.run("name", action))
    leader.start()
    action.entered.wait(30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # fork with threads is the point
        pid = os.fork()
    if pid == 0:
        status = 1
        try:
            status = 0 if flights.run("name", lambda: "mine") == "mine" else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    action.leave.set()
    leader.join(30)


def test_overlapping_readonly_requests_share_one_private_build(tmp_path):
    store = ArtifactStore(tmp_path / "root", readonly=True)
    action = Action(None)

    def build(directory):
        action()
        payload_builder()(directory)

    results = overlap(
        action,
        lambda: store.get_or_build(sample_key(), READY, build, private_parent=tmp_path / "p"),
        3,
    )
    assert action.calls == 1
    assert all(result is results[0] for result in results)
    assert isinstance(results[0], Private)
