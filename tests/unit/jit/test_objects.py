from __future__ import annotations

import threading

import pytest
from pypto.jit.objects import ObjectTable, PersistentObject, PrivateObject

NAME = PersistentObject("k", "/root", False)


def test_a_second_request_gets_the_same_object() -> None:
    table: ObjectTable[list[int]] = ObjectTable()
    first, live = table.obtain(NAME, list)
    assert not live
    second, live = table.obtain(NAME, list)
    assert live
    assert second is first


@pytest.mark.parametrize(
    "other",
    [
        PersistentObject("k", "/other", False),
        PersistentObject("k", "/root", True),
        PersistentObject("l", "/root", False),
        PrivateObject("disabled", "k", "", ""),
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
    while not table._flights or follower.ident is None:
        pass
    go.set()
    leader.join()
    follower.join()
    assert len(seen) == 2
    assert table.obtain(NAME, list) == ([], False)
