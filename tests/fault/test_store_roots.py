"""Roots that move, vanish, are replaced or come in pairs, and clocks that jump."""

from __future__ import annotations

import os
import shutil
import signal
import time

import pytest
from pypto_store import (
    ArtifactStore,
    Failure,
    Hint,
    Hit,
    Invalid,
    Miss,
    Private,
    Published,
    StorageError,
    iterate_entries,
)
from pypto_store.testing import (
    GENERATED,
    PAYLOAD,
    READY,
    payload_builder,
    sample_key,
    snapshot,
)

pytestmark = pytest.mark.usefixtures("no_sync")


@pytest.fixture
def ask(tmp_path):
    """Ask a store, or a new one over a root, for the entry."""

    def get(store, spec=READY, build=None, key="one"):
        if not isinstance(store, ArtifactStore):
            store = ArtifactStore(store, lock_timeout=20)
        return store.get_or_build(
            sample_key(key), spec, build or payload_builder(), private_parent=tmp_path / "private"
        )

    return get


def content(result):
    if isinstance(result, Private):
        return {path: (result.path / path).read_bytes() for path in PAYLOAD}
    return {path: result.entry.read(path) for path in PAYLOAD}


# -- two roots


def test_two_roots_know_nothing_of_each_other(tmp_path, ask):
    first, second = tmp_path / "first", tmp_path / "second"
    stores = [ArtifactStore(root, lock_timeout=20) for root in (first, second)]
    assert isinstance(ask(stores[0]), Published)
    assert stores[1].lookup(sample_key(), READY) == Miss()
    before = snapshot(first)
    assert isinstance(ask(stores[1]), Published)
    assert snapshot(first) == before
    shutil.rmtree(first)
    assert isinstance(ask(stores[1]), Hit)
    assert stores[0].lookup(sample_key(), READY) == Miss()


def test_the_same_key_is_built_in_two_roots_at_once(tmp_path, ask, child, latch):
    """Neither waits for the other's lock: each builder waits until the other one builds."""
    inside = [latch(), latch()]

    def start(number):
        def build(directory):
            inside[number].open()
            inside[1 - number].wait()
            payload_builder()(directory)

        return lambda: not isinstance(ask(tmp_path / f"{number}", build=build), Published)

    children = [child(start(number)) for number in range(2)]
    assert [builder.wait() for builder in children] == [0, 0]


def test_a_root_inside_another_root_is_its_own(tmp_path, ask):
    outer = tmp_path / "outer"
    inner = outer / "tools" / "inner"
    assert isinstance(ask(outer), Published)
    assert isinstance(ask(inner), Published)
    rows = list(iterate_entries(outer))
    assert len(rows) == 1
    assert not rows[0].path.startswith(str(inner))


# -- a root that becomes another one


def move_and_link(root):
    moved = root.with_name("moved")
    root.rename(moved)
    root.symlink_to(moved)
    return moved


def test_a_root_replaced_by_a_link_to_itself_between_requests(tmp_path, ask):
    root = tmp_path / "root"
    store = ArtifactStore(root, lock_timeout=20)
    ask(store)
    moved = move_and_link(root)
    assert isinstance(store.lookup(sample_key(), READY), Hit)
    assert isinstance(ask(store, key="two"), Published)
    assert isinstance(ArtifactStore(moved).lookup(sample_key("two"), READY), Hit)


def test_a_root_that_is_a_link_from_the_beginning(tmp_path, ask):
    real, root = tmp_path / "real", tmp_path / "root"
    real.mkdir()
    root.symlink_to(real)
    assert isinstance(ask(root), Published)
    assert isinstance(ArtifactStore(real).lookup(sample_key(), READY), Hit)


def test_a_link_to_nothing_in_place_of_the_root_stays_private(tmp_path, ask):
    root = tmp_path / "root"
    root.symlink_to(tmp_path / "nowhere")
    result = ask(root)
    assert isinstance(result, Private)
    assert result.failure in (Failure.STORAGE, Failure.LOCK)
    assert content(result) == PAYLOAD
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("target", ["moved", "elsewhere"])
def test_a_root_replaced_by_a_link_while_something_is_built(tmp_path, ask, target):
    root = tmp_path / "root"
    store = ArtifactStore(root, lock_timeout=20)
    ask(store, GENERATED)
    (tmp_path / "elsewhere").mkdir()

    def replace_and_build(directory):
        root.rename(tmp_path / "moved")
        root.symlink_to(tmp_path / target)
        payload_builder()(directory)

    result = ask(store, build=replace_and_build)
    assert content(result) == PAYLOAD
    # Wherever the link leads, what is there is whole, and the next one finds or makes it.
    for place in ("moved", "elsewhere"):
        found = ArtifactStore(tmp_path / place).lookup(sample_key(), READY)
        assert isinstance(found, (Hit, Miss))
    assert isinstance(ask(store), (Hit, Published))
    assert content(ask(store)) == PAYLOAD


def test_two_builders_of_one_root_that_was_replaced_never_mix(tmp_path, ask, child, latch):
    """One still builds for the old directory when the other one begins in the new one."""
    root = tmp_path / "root"
    inside, leave = latch(), latch()

    def slow(directory):
        inside.open()
        leave.wait()
        payload_builder()(directory)

    old = child(lambda: not isinstance(ask(root, build=slow), (Hit, Published)))
    inside.wait()
    root.rename(tmp_path / "old")
    assert isinstance(ask(root), Published)
    before = snapshot(root / "artifacts")
    leave.open()
    assert old.wait() == 0
    # The first one found the slot taken, or its own way; it replaced nothing.
    assert snapshot(root / "artifacts") == before
    assert isinstance(ArtifactStore(root).lookup(sample_key(), READY), Hit)


def test_an_ancestor_replaced_by_a_link_between_requests(tmp_path, ask):
    (tmp_path / "above").mkdir()
    root = tmp_path / "above" / "root"
    store = ArtifactStore(root, lock_timeout=20)
    ask(store)
    move_and_link(tmp_path / "above")
    assert isinstance(store.lookup(sample_key(), READY), Hit)
    assert isinstance(ask(store, key="two"), Published)


# -- a root that is removed


def test_a_root_removed_between_requests_is_made_again(tmp_path, ask):
    root = tmp_path / "root"
    store = ArtifactStore(root, lock_timeout=20)
    ask(store)
    shutil.rmtree(root)
    for look in (
        lambda: store.lookup(sample_key(), READY),
        lambda: store.lookup_generated(sample_key()),
        lambda: store.read_hint(sample_key()),
        lambda: store.discover_ready(sample_key(), lambda _: READY),
    ):
        assert look() == Miss()
    assert not root.exists()
    assert isinstance(ask(store), Published)
    assert isinstance(ArtifactStore(root).lookup(sample_key(), READY), Hit)


def test_a_root_removed_during_a_build_costs_nothing_but_this_publication(tmp_path, ask):
    root = tmp_path / "root"
    store = ArtifactStore(root, lock_timeout=20)

    def remove_and_build(directory):
        shutil.rmtree(root)
        payload_builder()(directory)

    result = ask(store, build=remove_and_build)
    assert content(result) == PAYLOAD
    assert isinstance(ask(store), (Hit, Published))
    assert isinstance(ArtifactStore(root).lookup(sample_key(), READY), Hit)


def test_a_root_removed_at_every_step_of_a_publication(tmp_path, ask):
    """`rm -rf` of the cache while it is used is a thing that users do."""
    from pypto_store import crash_points

    reached = []
    with crash_points.armed(reached.append):
        ask(tmp_path / "rehearsal")
    for number in range(len(reached)):
        root = tmp_path / f"{number}"
        left = [number]

        def strike(_, root=root, left=left):
            if left[0] == 0:
                shutil.rmtree(root, ignore_errors=True)
            left[0] -= 1

        store = ArtifactStore(root, lock_timeout=20)
        with crash_points.armed(strike):
            result = ask(store)
        if isinstance(result, Private):
            assert content(result) == PAYLOAD, reached[number]
            assert result.failure in (Failure.STORAGE, Failure.LOCK), reached[number]
        found = store.lookup(sample_key(), READY)
        assert isinstance(found, (Hit, Miss)), reached[number]
        assert isinstance(ask(store), (Hit, Published)), reached[number]
        assert content(ask(store)) == PAYLOAD


def test_an_entry_removed_after_it_was_found_is_an_error_that_names_it(tmp_path, ask):
    root = tmp_path / "root"
    entry = ask(root).entry
    shutil.rmtree(root)
    with pytest.raises(FileNotFoundError, match=r"kernel_0\.bin"):
        entry.verify("prebuilt/kernel_0.bin")
    with pytest.raises(FileNotFoundError):
        entry.materialize(tmp_path / "out")


# -- clocks


@pytest.mark.parametrize("when", [0, 1, 2**31 + 5, 2**33])
def test_modification_times_mean_nothing(tmp_path, ask, when):
    root = tmp_path / "root"
    ask(root, GENERATED)
    ask(root)
    for parent, directories, files in os.walk(root):
        for name in (*directories, *files):
            os.utime(os.path.join(parent, name), (when, when), follow_symlinks=False)
    store = ArtifactStore(root, lock_timeout=20)
    assert isinstance(store.lookup(sample_key(), READY), Hit)
    assert isinstance(store.lookup_generated(sample_key()), Hit)
    assert isinstance(store.read_hint(sample_key()), Hint)
    assert isinstance(store.discover_ready(sample_key(), lambda _: READY), Hit)
    second = ask(store, key="two")
    assert isinstance(second, Published)
    assert second.shared_bytes == sum(map(len, PAYLOAD.values()))
    second.entry.materialize(tmp_path / "out")


@pytest.mark.parametrize("jump", [-(10**9), 10**9])
def test_a_clock_that_jumps_while_something_is_built(tmp_path, ask, monkeypatch, jump):
    """The time of day is nobody's business: only waiting reads a clock, the monotonic one."""
    real = time.time

    def build(directory):
        monkeypatch.setattr(time, "time", lambda: real() + jump)
        monkeypatch.setattr(time, "time_ns", lambda: int((real() + jump) * 1e9))
        payload_builder()(directory)

    root = tmp_path / "root"
    assert isinstance(ask(root, build=build), Published)
    assert isinstance(ask(root), Hit)
    monkeypatch.undo()
    assert isinstance(ask(root), Hit)


@pytest.mark.parametrize("jump", [-(10**9), 10**9])
def test_a_time_of_day_that_jumps_while_one_waits(tmp_path, ask, child, latch, jump):
    root = tmp_path / "root"
    inside, leave = latch(), latch()

    def slow(directory):
        inside.open()
        leave.wait()
        payload_builder()(directory)

    holder = child(lambda: not isinstance(ask(root, build=slow), Published))
    inside.wait()

    def wait():
        real = time.time
        start = real()
        time.time = lambda: real() + (jump if real() > start + 0.2 else 0)
        return not isinstance(ask(root), Hit)

    waiter = child(wait)
    time.sleep(3.5)  # longer than until the first time that a waiter looks at a clock again
    leave.open()
    assert waiter.wait() == 0
    assert holder.wait() == 0


@pytest.mark.parametrize("jump", [-1000.0, 1000.0])
def test_a_monotonic_clock_that_jumps_while_one_waits(tmp_path, ask, child, latch, jump):
    """As after a suspended machine: a waiter gives up early or late, and has a result anyway."""
    root = tmp_path / "root"
    inside, leave = latch(), latch()

    def slow(directory):
        inside.open()
        leave.wait()
        payload_builder()(directory)

    holder = child(lambda: not isinstance(ask(root, build=slow), Published))
    inside.wait()

    def wait():
        real = time.monotonic
        start = real()
        time.monotonic = lambda: real() + (jump if real() > start + 0.2 else 0.0)
        result = ask(root)
        kind = Private if jump > 0 else Hit
        return not (isinstance(result, kind) and content(result) == PAYLOAD)

    waiter = child(wait)
    if jump > 0:
        # Its deadline is over the next time it looks, although the holder still builds.
        assert waiter.wait() == 0
        leave.open()
    else:
        time.sleep(0.5)
        leave.open()
        assert waiter.wait() == 0
    assert holder.wait() == 0


def test_a_builder_stopped_for_long_publishes_when_it_goes_on(tmp_path, ask, child, latch):
    """Nothing expires: no lease, no age by which a staging directory counts as abandoned."""
    root = tmp_path / "root"
    inside, leave = latch(), latch()

    def slow(directory):
        inside.open()
        leave.wait()
        payload_builder()(directory)

    holder = child(lambda: not isinstance(ask(root, build=slow), Published))
    inside.wait()
    holder.signal(signal.SIGSTOP)
    for parent, directories, files in os.walk(root):
        for name in (*directories, *files):
            os.utime(os.path.join(parent, name), (0, 0))
    waiting = ArtifactStore(root, lock_timeout=0.1)
    result = ask(waiting)
    assert isinstance(result, Private)
    assert result.failure is Failure.LOCK
    assert content(result) == PAYLOAD
    holder.signal(signal.SIGCONT)
    leave.open()
    assert holder.wait() == 0
    assert isinstance(ask(waiting), Hit)


def test_something_else_in_place_of_a_directory_of_the_root(tmp_path, ask):
    """Every directory the store would make is a file, a link or a pipe instead."""
    places = ("locks", "artifacts", "artifacts/v1", "cas")
    for number, place in enumerate(places):
        for kind in ("file", "link", "pipe"):
            root = tmp_path / f"{number}-{kind}"
            (root / place).parent.mkdir(parents=True)
            match kind:
                case "file":
                    (root / place).write_bytes(b"")
                case "link":
                    (root / place).symlink_to(tmp_path / "nowhere")
                case "pipe":
                    os.mkfifo(root / place)
            result = ask(root)
            assert content(result) == PAYLOAD, (place, kind)
            assert isinstance(result, (Private, Published)), (place, kind)
            found = ArtifactStore(root).lookup(sample_key(), READY)
            assert isinstance(found, (Hit, Miss, StorageError)), (place, kind)
            assert not isinstance(found, Invalid)
            assert not (tmp_path / "nowhere").exists()
