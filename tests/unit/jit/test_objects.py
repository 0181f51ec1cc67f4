from __future__ import annotations

import os
import threading

import pytest
from pypto.jit.objects import ObjectTable, PersistentObject, PrivateObject
from pypto_store import Digest

NAME = PersistentObject("k", "/root", False)


@pytest.mark.conforms("cache.21")
def test_a_second_request_gets_the_same_object() -> None:
    table: ObjectTable[list[int]] = ObjectTable()
    first, live = table.obtain(NAME, list)
    assert not live
    second, live = table.obtain(NAME, list)
    assert live
    assert second is first


@pytest.mark.conforms("cache.22", "cache.23", "cache.24")
@pytest.mark.parametrize(
    "other",
    [
        PersistentObject("k", "/other", False),
        PersistentObject("k", "/root", True),
        PersistentObject("l", "/root", False),
        PrivateObject("disabled", Digest.of(b"k"), "", ""),
    ],
)
def test_root_mode_and_kind_keep_objects_apart(other: PersistentObject | PrivateObject) -> None:
    table: ObjectTable[list[int]] = ObjectTable()
    first, _ = table.obtain(NAME, list)
    second, live = table.obtain(other, list)
    assert not live
    assert second is not first


def test_overlapping_requests_make_one_object() -> None:
    table: ObjectTable[list[int]] = ObjectTable()
    made = []
    inside = threading.Event()
    go = threading.Event()

    def make() -> list[int]:
        inside.set()
        go.wait(10)
        made.append(1)
        return []

    results: list[list[int]] = []
    threads = [
        threading.Thread(target=lambda: results.append(table.obtain(NAME, make)[0]))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    assert inside.wait(10)
    go.set()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert len(results) == 8
    assert all(result is results[0] for result in results)


def test_an_error_reaches_every_overlapping_request_and_is_forgotten() -> None:
    table: ObjectTable[list[int]] = ObjectTable()
    inside = threading.Event()
    go = threading.Event()

    def fail() -> list[int]:
        inside.set()
        go.wait(10)
        raise OSError("no")

    seen: list[BaseException] = []

    def ask() -> None:
        try:
            table.obtain(NAME, fail)
        except OSError as error:
            seen.append(error)

    leader = threading.Thread(target=ask)
    leader.start()
    assert inside.wait(10)
    follower = threading.Thread(target=ask)
    follower.start()
    go.set()
    leader.join()
    follower.join()
    assert len(seen) == 2
    assert table.obtain(NAME, list) == ([], False)


@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_a_child_does_not_wait_for_what_its_parents_thread_was_making() -> None:
    table: ObjectTable[list[int]] = ObjectTable()
    inside = threading.Event()
    go = threading.Event()

    def make() -> list[int]:
        inside.set()
        go.wait(30)
        return [1]

    thread = threading.Thread(target=lambda: table.obtain(NAME, make))
    thread.start()
    assert inside.wait(10)
    child = os.fork()
    if child == 0:
        made, live = table.obtain(NAME, lambda: [2])
        os._exit(0 if made == [2] and not live else 1)
    try:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        go.set()
        thread.join()
    assert table.obtain(NAME, lambda: [3]) == ([1], True)
