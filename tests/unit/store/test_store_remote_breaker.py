"""When a remote is not asked, and when it is asked again, by a clock that stands still."""

from __future__ import annotations

import threading

import pytest
from pypto_store.remote.blob_store import (
    BlobDigest,
    CorruptBlob,
    RemoteProtocolError,
    RemoteRefused,
    RemoteUnavailable,
    source_of,
)
from pypto_store.remote.breaker import (
    FAULTS,
    LONGEST_PAUSE,
    PAUSE,
    Breaker,
    BreakingEngine,
    NotAsked,
)
from pypto_store.remote.time_limit import TookTooLong

DATA = b"0123456789"
BLOB = BlobDigest.of(DATA)
READS = ("get entry", "get blob", "get many")
WRITES = ("find", "put blob", "put many", "put entry")


class Clock:
    """Nanoseconds that pass when the test says so."""

    def __init__(self):
        self.now = 0

    def __call__(self):
        return self.now

    def pass_by(self, seconds):
        self.now += int(seconds * 1e9)


class Stream:
    """A blob that ends as the remote is told to have it end."""

    def __init__(self, remote):
        self._remote = remote
        self._data = DATA

    def read(self, size):
        self._remote.meet("read")
        piece, self._data = self._data[:size], self._data[size:]
        return piece

    def close(self):
        pass


class Remote:
    """An engine whose operations raise what `faults` has for them, after `seconds` each."""

    def __init__(self, clock):
        self.faults = {}
        self.asked = []
        self.seconds = 0
        self.clock = clock
        self.blobs = self
        self.entries = self._Entries(self)

    class _Entries:
        def __init__(self, remote):
            self._remote = remote

        def get(self, name):
            return self._remote.meet("get entry")

        def put(self, name, entry):
            self._remote.meet("put entry")

    def meet(self, operation):
        self.asked.append(operation)
        self.clock.pass_by(self.seconds)
        fault = self.faults.get(operation)
        if fault is not None:
            raise fault

    def get(self, digest):
        self.meet("get blob")
        return Stream(self)

    def get_many(self, digests):
        self.meet("get many")
        return {}

    def put(self, digest, source):
        self.meet("put blob")

    def put_many(self, blobs):
        self.meet("put many")

    def find_missing(self, digests):
        self.meet("find")
        return frozenset()

    def close(self):
        self.asked.append("close")


class Trial:
    """One remote behind one breaker."""

    def __init__(self):
        self.clock = Clock()
        self.remote = Remote(self.clock)
        self.breaker = Breaker("http://there", self.clock)
        self.engine = BreakingEngine(self.remote, self.breaker)

    def do(self, operation):
        blobs, entries = self.engine.blobs, self.engine.entries
        return {
            "get entry": lambda: entries.get(BLOB),
            "open": lambda: blobs.get(BLOB),
            "get blob": lambda: blobs.get(BLOB).read(100),
            "read": lambda: blobs.get(BLOB).read(100),
            "get many": lambda: blobs.get_many([BLOB]),
            "find": lambda: blobs.find_missing([BLOB]),
            "put blob": lambda: blobs.put(BLOB, source_of(DATA)),
            "put many": lambda: blobs.put_many({BLOB: DATA}),
            "put entry": lambda: entries.put(BLOB, DATA),
        }[operation]()

    def fail(self, operation, fault, times=1):
        where = "get blob" if operation == "open" else operation
        self.remote.faults[where] = fault
        for _ in range(times):
            with pytest.raises(type(fault)) as caught:
                self.do(operation)
            assert caught.value is fault
        del self.remote.faults[where]

    def is_asked(self, operation):
        """Whether the remote hears of the operation."""
        try:
            self.do(operation)
        except NotAsked:
            return False
        except (RemoteUnavailable, RemoteRefused):
            pass
        return True


@pytest.fixture
def trial():
    return Trial()


def fault(kind=RemoteUnavailable, reason="connection refused"):
    return kind(url="http://there", operation="get blob 123", reason=reason, remedy="start it")


@pytest.mark.parametrize("kind", [RemoteUnavailable, RemoteProtocolError])
@pytest.mark.parametrize("operation", [*READS, *WRITES, "read"])
def test_three_faults_in_a_row_are_enough_for_a_while(trial, operation, kind):
    trial.fail(operation, fault(kind), FAULTS - 1)
    assert trial.is_asked(operation)  # and goes well, so that it begins at one
    trial.fail(operation, fault(kind), FAULTS)
    opened, spared = (READS, WRITES) if operation in (*READS, "read") else (WRITES, READS)
    assert not any(map(trial.is_asked, opened))
    assert all(map(trial.is_asked, spared))
    heard = len(trial.remote.asked)
    trial.clock.pass_by(PAUSE - 0.001)
    assert not any(map(trial.is_asked, opened))
    assert len(trial.remote.asked) == heard
    trial.clock.pass_by(0.002)
    assert all(map(trial.is_asked, opened))


def test_it_is_said_what_happened_and_for_how_long_nothing_will(trial):
    trial.fail("get entry", fault(), FAULTS)
    trial.clock.pass_by(10)
    with pytest.raises(NotAsked) as caught:
        trial.do("get blob")
    assert str(caught.value) == (
        f"http://there: get blob {BLOB}: not asked for 20 s, after get blob 123: connection "
        "refused; see to what happened there; until then everything is built here"
    )


def test_a_trial_that_fails_begins_another_pause(trial):
    trial.fail("get entry", fault(), FAULTS)
    for operation in READS:
        trial.clock.pass_by(PAUSE + 1)
        trial.fail(operation, fault())
        assert not trial.is_asked("get entry")
    trial.clock.pass_by(PAUSE + 1)
    assert trial.is_asked("get entry")
    trial.fail("get entry", fault(), FAULTS - 1)
    assert trial.is_asked("get entry")


def test_only_one_trial_is_made_at_a_time(trial):
    trial.fail("get entry", fault(), FAULTS)
    trial.clock.pass_by(PAUSE + 1)
    with trial.breaker.reads.passing("get entry", "get entry 1"):
        assert not any(map(trial.is_asked, READS))
    assert all(map(trial.is_asked, READS))


def test_a_trial_that_came_to_nothing_makes_room_for_another(trial):
    trial.fail("get entry", fault(), FAULTS)
    trial.clock.pass_by(PAUSE + 1)
    with pytest.raises(KeyboardInterrupt), trial.breaker.reads.passing("get entry", "get entry 1"):
        raise KeyboardInterrupt
    # It said nothing of the remote, neither good nor bad: the next is a trial as well.
    with trial.breaker.reads.passing("get entry", "get entry 1"):
        assert not trial.is_asked("get entry")
    assert trial.is_asked("get entry")


def test_a_remote_that_hangs_on_blobs_is_not_excused_by_its_entries(trial):
    for _ in range(FAULTS):
        assert trial.is_asked("get entry")
        trial.fail("read", fault())
    assert not trial.is_asked("get entry")
    trial.clock.pass_by(PAUSE + 1)
    assert trial.is_asked("get entry")
    trial.fail("read", fault())  # the first one is enough now
    assert not trial.is_asked("get entry")


def test_a_blob_that_is_read_to_its_end_counts_as_success(trial):
    for _ in range(2):
        trial.fail("read", fault(), FAULTS - 1)
        stream = trial.do("open")
        assert stream.read(len(DATA)) == DATA
    trial.fail("read", fault(), FAULTS - 1)
    trial.do("open").read(1)  # begun only: it says nothing yet
    trial.fail("read", fault())
    assert not trial.is_asked("get blob")


def test_a_slow_remote_is_left_alone_for_longer(trial):
    trial.remote.seconds = 7
    trial.fail("get entry", fault(), FAULTS)
    trial.clock.pass_by(69.9)
    assert not trial.is_asked("get entry")
    trial.clock.pass_by(0.2)
    trial.remote.seconds = 3600
    trial.fail("get entry", fault())
    trial.clock.pass_by(LONGEST_PAUSE - 1)
    assert not trial.is_asked("get entry")
    trial.clock.pass_by(2)
    assert trial.is_asked("get entry")


def test_a_request_that_took_too_long_as_a_whole_is_enough(trial):
    late = TookTooLong(url="http://there", operation="get blob 123", seconds=9)
    trial.fail("get blob", late)
    trial.clock.pass_by(89)
    assert not trial.is_asked("get entry")
    trial.clock.pass_by(2)
    assert trial.is_asked("get entry")


def test_small_blobs_do_not_excuse_large_ones(trial):
    for _ in range(FAULTS):
        assert trial.is_asked("put many")
        trial.fail("put blob", fault())
    assert not trial.is_asked("put many")


@pytest.mark.parametrize("operation", READS)
def test_a_refusal_to_read_is_enough_for_a_while(trial, operation):
    trial.fail(operation, fault(RemoteRefused, "401"))
    assert not any(map(trial.is_asked, READS))
    assert all(map(trial.is_asked, WRITES))
    assert not trial.breaker.reads.refused
    trial.clock.pass_by(PAUSE + 1)
    assert trial.is_asked(operation)


@pytest.mark.parametrize("operation", WRITES)
def test_a_refusal_to_write_is_for_good(trial, operation):
    with trial.breaker.writes.passing("put blob", "one that is under way meanwhile"):
        trial.fail(operation, fault(RemoteRefused, "403"))
    assert trial.breaker.writes.refused
    trial.clock.pass_by(1e6)
    assert not any(map(trial.is_asked, WRITES))
    assert all(map(trial.is_asked, READS))
    with pytest.raises(NotAsked, match="not asked again, after get blob 123: 403"):
        trial.do("find")


def test_what_is_wrong_with_one_blob_says_nothing_of_the_others(trial):
    trial.fail("get many", fault(), FAULTS - 1)
    trial.fail("get many", fault(CorruptBlob), 10)
    trial.fail("get many", fault(), FAULTS - 1)
    assert trial.is_asked("get many")


def test_a_wrong_blob_is_a_good_trial(trial):
    trial.fail("get many", fault(), FAULTS)
    trial.clock.pass_by(PAUSE + 1)
    trial.fail("get many", fault(CorruptBlob))
    assert trial.is_asked("get many")


def test_what_the_source_of_a_blob_raises_says_nothing_of_the_remote(trial):
    trial.fail("put blob", OSError("the local disk"), 10)
    assert trial.is_asked("put blob")


def test_many_threads_make_one_trial(trial):
    trial.fail("get entry", fault(), FAULTS)
    trial.clock.pass_by(PAUSE + 1)
    gate, made = threading.Barrier(8), []
    trial.remote.faults["get entry"] = fault()

    def ask():
        gate.wait()
        made.append(trial.is_asked("get entry"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == [False] * 7 + [True]


def test_the_child_of_a_fork_does_not_wait_for_a_trial_of_its_parent(trial):
    trial.fail("get entry", fault(), FAULTS)
    trial.clock.pass_by(PAUSE + 1)
    with trial.breaker.reads.passing("get entry", "get entry 1"), trial.breaker.reads._lock:
        trial.breaker.forked()  # as in a child: neither the lock nor the trial ever end there
        assert trial.is_asked("get entry")


def test_absent_blobs_and_closing_are_passed_on(trial):
    present = trial.remote.get
    for _ in range(2):
        trial.fail("open", fault(), FAULTS - 1)
        trial.remote.get = lambda digest: None
        assert trial.do("open") is None
        trial.remote.get = present
    assert trial.is_asked("get blob")
    trial.engine.close()
    assert trial.remote.asked[-1] == "close"
