"""The remote as the store has it: what is counted, what is told, and that none of it is fatal."""

from __future__ import annotations

import base64
import errno
import logging
import os
import threading
from dataclasses import replace

import pytest
from pypto_store import RemoteConfig
from pypto_store.remote import tier as tier_module
from pypto_store.remote.blob_store import (
    RemoteProtocolError,
    RemoteRefused,
    RemoteUnavailable,
)
from pypto_store.remote.entry_testing import publish
from pypto_store.remote.memory import MemoryRemote
from pypto_store.remote.tier import RemoteTier
from pypto_store.testing import GENERATED, PAYLOAD, READY, payload_builder, sample_key
from pypto_store.validation import validate_payload

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

LONG = 30.0  # seconds; nothing here takes them
PUTS = ("find", "put blob", "put many", "put entry")


class Counting:
    """An observer that remembers."""

    def __init__(self):
        self.hits, self.misses, self.faults, self.uploads = [], [], [], []
        self.ns = []

    def hit(self, size, ns):
        self.hits.append(size)
        self.ns.append(ns)

    def miss(self, ns):
        self.misses.append(ns)
        self.ns.append(ns)

    def fault(self, reason, ns):
        self.faults.append(reason)
        self.ns.append(ns)

    def uploaded(self, size, ns):
        self.uploads.append(size)
        self.ns.append(ns)

    def counts(self):
        return len(self.hits), len(self.misses), len(self.faults), len(self.uploads)


class Hooked:
    """An engine that calls `hook(operation)` before each operation of another one."""

    def __init__(self, inner, hook):
        self._inner = inner
        self.blobs = _Part(
            inner.blobs, hook, get="get blob", get_many="get many", find_missing="find",
            put="put blob", put_many="put many",
        )  # fmt: skip
        self.entries = _Part(inner.entries, hook, get="get entry", put="put entry")

    def close(self):
        self._inner.close()


class _Part:
    def __init__(self, inner, hook, **names):
        for method, operation in names.items():
            setattr(self, method, self._hooked(getattr(inner, method), hook, operation))

    @staticmethod
    def _hooked(real, hook, operation):
        def call(*arguments):
            hook(operation)
            return real(*arguments)

        return call


class Setting:
    """A remote in memory, whose operations fail as `faults` says, and tiers of it."""

    def __init__(self, directory):
        self.directory = directory
        self.remote = MemoryRemote()
        self.faults = {}
        self.asked = []
        self.opened = []
        self.config = RemoteConfig(f"file://{directory}/remote", upload="sync")
        self.tiers = []

    def tier(self, observer, **changes):
        made = RemoteTier(replace(self.config, **changes), observer, open_engine=self.open)
        self.tiers.append(made)
        return made

    def open(self, config):
        self.opened.append(config)
        self.meet("open")
        return Hooked(self.remote.open(), lambda operation: self.meet(operation))

    def meet(self, operation):
        self.asked.append(operation)
        if (fault := self.faults.get(operation)) is not None:
            raise fault

    def entry(self, name="one", spec=READY, payload=PAYLOAD):
        return publish(self.directory / f"root-{name}" / "root", sample_key(name), spec, payload)

    def place(self):
        place = self.directory / f"place-{len(os.listdir(self.directory))}"
        place.mkdir()
        return place


@pytest.fixture
def setting(tmp_path):
    made = Setting(tmp_path)
    yield made
    for tier in made.tiers:
        assert tier.flush(LONG)
        tier.close()


@pytest.fixture
def told(caplog):
    """What was logged, as texts."""
    caplog.set_level(logging.INFO)
    return lambda: [record.getMessage() for record in caplog.records]


def fault(kind=RemoteUnavailable, reason="connection refused"):
    return kind(url="file:///there", operation="get it", reason=reason, remedy="see to it")


def test_what_one_offers_the_others_fetch(setting):
    observer, entry = Counting(), setting.entry()
    setting.tier(observer).offer(entry)
    place = setting.place()
    manifest = setting.tier(observer).fetch(sample_key(), READY, str(place))
    assert manifest == entry.manifest
    descriptor = os.open(place, os.O_RDONLY)
    validate_payload(descriptor, manifest.files)
    os.close(descriptor)
    payload = sum(map(len, PAYLOAD.values()))
    assert (observer.hits, observer.misses, observer.faults) == ([payload], [], [])
    stored = sum(map(len, {*setting.remote.held.values(), *setting.remote.entries.values()}))
    assert observer.uploads == [stored]
    assert all(ns > 0 for ns in observer.ns) and len(observer.ns) == 2


def test_a_miss_is_counted_and_leaves_nothing(setting):
    observer, place = Counting(), setting.place()
    assert setting.tier(observer).fetch(sample_key(), READY, str(place)) is None
    assert observer.counts() == (0, 1, 0, 0)
    assert not os.listdir(place)


def test_nothing_is_opened_before_it_is_used_and_then_once(setting):
    observer = Counting()
    tier = setting.tier(observer)
    assert not setting.opened
    for _ in range(3):
        tier.fetch(sample_key(), READY, str(setting.place()))
    assert setting.opened == [setting.config]


@pytest.mark.parametrize(
    "error",
    [
        ValueError("RemoteConfig.tls cannot be used: no such file (/x)"),
        fault(reason="No module named 'grpc'"),
        FileNotFoundError(errno.ENOENT, "No such file", "/ca.pem"),
        KeyError("scheme"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_cannot_be_opened_is_not_used_until_it_can(setting, told, error):
    observer, entry = Counting(), setting.entry()
    tier = setting.tier(observer)
    setting.faults["open"] = error
    for _ in range(3):
        assert tier.fetch(sample_key(), READY, str(setting.place())) is None
        tier.offer(entry)
    assert observer.counts() == (0, 0, 6, 0)
    assert len(told()) == 1 and str(error.args[-1]).strip("'") in told()[0]
    del setting.faults["open"]
    tier.offer(entry)
    assert tier.fetch(sample_key(), READY, str(setting.place())) is not None


@pytest.mark.parametrize("operation", ["get entry", "get many"])
def test_trouble_is_counted_every_time_and_told_once_for_each_kind(setting, told, operation):
    observer, entry = Counting(), setting.entry()
    tier = setting.tier(observer)
    tier.offer(entry)
    for number in range(2):
        for kind in (RemoteUnavailable, RemoteProtocolError):
            setting.faults[operation] = fault(kind, f"answer {number} of {entry.key.digest}")
            place = setting.place()
            assert tier.fetch(sample_key(), READY, str(place)) is None
            assert not os.listdir(place)
    assert observer.counts() == (0, 0, 4, 1)
    assert [text.partition(" (told once")[0] for text in told()] == observer.faults[:2]
    assert observer.faults[0].startswith("file:///there: get it: answer 0 of ")


def test_a_log_is_not_filled_by_new_words(setting, told):
    observer, tier = Counting(), None
    for number in range(100):
        tier = tier or setting.tier(observer)
        tier._breaker.reads._open = False
        setting.faults["get entry"] = fault(reason="x" * number)
        tier.fetch(sample_key(), READY, str(setting.place()))
    assert len(observer.faults) == 100 and len(told()) == 32


def test_a_remote_that_does_not_answer_is_soon_not_asked(setting, told):
    observer = Counting()
    tier = setting.tier(observer)
    setting.faults["get entry"] = fault()
    for _ in range(10):
        assert tier.fetch(sample_key(), READY, str(setting.place())) is None
    assert setting.asked == ["open"] + ["get entry"] * 3
    assert len(observer.faults) == 10 and len(told()) == 1
    assert "not asked for 30 s, after get it: connection refused" in observer.faults[-1]


def test_a_request_ends_though_every_answer_comes_in_time(setting, monkeypatch):
    now = [0]
    observer, entry = Counting(), setting.entry()
    setting.tier(observer).offer(entry)
    tier = RemoteTier(setting.config, observer, clock=lambda: now[0], open_engine=setting.open)
    setting.tiers.append(tier)
    real = setting.meet

    def slowly(operation):
        real(operation)
        now[0] += int(1.2 * setting.config.timeout * 1e9)

    setting.meet = slowly
    assert tier.fetch(sample_key(), READY, str(setting.place())) is not None
    assert observer.hits
    monkeypatch.setattr(tier_module, "REQUEST_TIMEOUTS", 1)
    assert tier.fetch(sample_key(), READY, str(setting.place())) is None
    assert "the whole request has taken" in observer.faults[0]
    assert tier.fetch(sample_key(), READY, str(setting.place())) is None
    assert "not asked" in observer.faults[1]


def test_errors_of_the_local_disk_are_the_callers(setting):
    observer = Counting()
    tier = setting.tier(observer)
    tier.offer(setting.entry())
    with pytest.raises(FileNotFoundError):
        tier.fetch(sample_key(), READY, str(setting.directory / "nowhere"))
    assert observer.counts() == (0, 0, 0, 1)


def test_what_no_engine_should_raise_fails_no_request_either(setting, told):
    observer = Counting()
    tier = setting.tier(observer)
    setting.faults["get entry"] = RuntimeError("a defect\nof a package")
    assert tier.fetch(sample_key(), READY, str(setting.place())) is None
    assert observer.faults == [f"{setting.config.url}: RuntimeError: a defect of a package"]
    assert len(told()) == 1


@pytest.mark.parametrize("changes", [{"upload": "off"}, {"readonly": True}], ids=str)
def test_what_is_not_to_be_sent_is_not(setting, changes):
    observer = Counting()
    setting.tier(observer, **changes).offer(setting.entry())
    assert observer.counts() == (0, 0, 0, 0) and not setting.asked


def test_who_believes_only_signed_entries_and_cannot_sign_sends_nothing(setting, told):
    observer = Counting()
    public = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
    key = f"ed25519:{base64.b64encode(public).decode()}"
    tier = setting.tier(observer, trusted_keys=(key,))
    for name in ("one", "two"):
        tier.offer(setting.entry(name))
    assert observer.counts() == (0, 0, 0, 0) and not setting.asked
    assert len(told()) == 1 and "names no key to sign with" in told()[0]


def test_a_key_that_cannot_be_used_is_trouble_and_nothing_goes_unsigned(setting, told):
    observer, missing = Counting(), setting.directory / "no-such.pem"
    tier = setting.tier(observer, signing_key=missing)
    tier.offer(setting.entry())
    assert tier.fetch(sample_key(), READY, str(setting.place())) is None
    assert observer.counts() == (0, 0, 2, 0) and not setting.remote.held
    assert len(told()) == 1 and str(missing) in told()[0]


def test_in_the_background_it_does_not_wait(setting):
    observer, gate = Counting(), threading.Event()
    real = setting.meet
    setting.meet = lambda operation: (gate.wait(LONG), real(operation))
    tier = setting.tier(observer, upload="background")
    for name in ("one", "two"):
        tier.offer(setting.entry(name))
    assert not tier.flush(0) and not observer.uploads
    gate.set()
    assert tier.flush(LONG)
    assert observer.counts() == (0, 0, 0, 2) and len(setting.remote.entries) == 2


def test_what_is_too_much_is_dropped_and_said(setting, told, monkeypatch):
    observer, gate, entry = Counting(), threading.Event(), setting.entry()
    setting.meet = lambda operation: gate.wait(LONG)
    tier = setting.tier(observer, upload="background")
    monkeypatch.setattr(tier._uploads, "_limit", 2)
    for _ in range(6):
        tier.offer(entry)
    gate.set()
    assert tier.flush(LONG)
    assert len(observer.faults) in (3, 4)  # the first may wait, or be under way
    assert all("too much waits to be sent" in reason for reason in observer.faults)
    assert len(told()) == 1


@pytest.mark.parametrize("operation", PUTS)
def test_who_may_not_write_is_told_once_and_sends_no_more(setting, told, operation):
    observer = Counting()
    large = {**PAYLOAD, "large": bytes(2 << 20)}
    entries = [setting.entry(name, payload=large) for name in ("one", "two", "three")]
    setting.faults[operation] = fault(RemoteRefused, "403")
    tier = setting.tier(observer)
    for entry in entries:
        tier.offer(entry)
    assert observer.counts() == (0, 0, 1, 0) and len(told()) == 1
    assert not setting.remote.entries
    asked = len(setting.asked)
    tier.offer(entries[0])
    assert len(setting.asked) == asked
    assert tier.fetch(sample_key(), READY, str(setting.place())) is None
    assert observer.counts() == (0, 1, 1, 0)  # it may still be read


def test_who_may_not_read_builds_on(setting, told):
    observer = Counting()
    setting.faults["get entry"] = fault(RemoteRefused, "401")
    tier = setting.tier(observer)
    for _ in range(5):
        assert tier.fetch(sample_key(), READY, str(setting.place())) is None
    assert observer.counts() == (0, 0, 5, 0) and len(told()) == 1
    assert setting.asked.count("get entry") == 1


@pytest.mark.parametrize("damage", ["changed", "removed"])
def test_an_entry_that_is_no_more_is_not_sent(setting, damage):
    observer, entry = Counting(), setting.entry()
    victim = entry.path / "prebuilt/kernel_0.bin"
    victim.chmod(0o600)
    victim.unlink() if damage == "removed" else victim.write_bytes(b"other")
    setting.tier(observer).offer(entry)
    assert observer.counts() == (0, 0, 1, 0) and not setting.remote.entries
    assert "kernel_0.bin" in observer.faults[0]


def test_what_arrived_damaged_is_sent_afresh(setting):
    observer, entry = Counting(), setting.entry()
    tier = setting.tier(observer)
    tier.offer(entry)
    for digest, data in setting.remote.held.items():
        if data == PAYLOAD["prebuilt/kernel_0.bin"]:
            setting.remote.held[digest] = bytes(len(data))
    damaged = dict(setting.remote.held)
    setting.tier(observer).offer(entry)  # who knows nothing sees that all of it is there
    assert setting.remote.held == damaged
    assert tier.fetch(sample_key(), READY, str(setting.place())) is None
    tier.offer(entry)
    assert setting.remote.held != damaged
    assert tier.fetch(sample_key(), READY, str(setting.place())) == entry.manifest
    sent = len(observer.uploads)
    tier.offer(entry)  # once
    assert len(observer.uploads) == sent == 2


def test_not_more_damage_is_remembered_than_there_is_room_for(setting, monkeypatch):
    monkeypatch.setattr(tier_module, "_DAMAGED", 3)
    tier = setting.tier(Counting())
    for number in range(10):
        tier._remember_damage(number)
    assert list(tier._damaged) == [7, 8, 9]


def test_two_that_publish_the_same_at_once_send_it_once(setting):
    """Two processes' worth of tiers; one claims the upload, and the other sees what it did."""
    observer, entry, waiting = Counting(), setting.entry(), threading.Event()
    real = setting.meet

    def meet(operation):
        real(operation)
        if operation == "put entry":
            waiting.wait(0.2)  # the other one has all the time to get in between

    setting.meet = meet
    threads = [
        threading.Thread(target=setting.tier(observer).offer, args=(entry,)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert observer.counts() == (0, 0, 0, 1)
    assert setting.asked.count("put entry") == 1


def test_closing_drops_what_waits_and_what_comes_later_is_a_fault(setting):
    observer, entry = Counting(), setting.entry()
    begun, gate = threading.Event(), threading.Event()
    tier = setting.tier(observer, upload="background")
    assert tier.fetch(sample_key(), READY, str(setting.place())) is None
    setting.meet = lambda operation: (begun.set(), gate.wait(LONG))
    for _ in range(3):
        tier.offer(entry)
    assert begun.wait(LONG)
    tier.close()
    assert len(observer.faults) == 2
    gate.set()
    assert tier.flush(LONG)
    assert tier.fetch(sample_key(), READY, str(setting.place())) is None
    tier.offer(entry)
    assert len(observer.faults) == 4
    tier.close()


def test_the_child_of_a_fork_has_an_engine_and_a_queue_of_its_own(setting):
    observer, gate = Counting(), threading.Event()
    tier = setting.tier(observer, upload="background")
    assert tier.fetch(sample_key(), READY, str(setting.place())) is None
    real = setting.meet
    setting.meet = lambda operation: (gate.wait(LONG), real(operation))
    tier.offer(setting.entry())
    other = setting.entry("other")
    with tier._opening, tier._breaker.reads._lock:  # as when other threads are at it
        pid = os.fork()
        if pid == 0:
            gate.set()
            empty = tier.flush(0)
            tier.offer(other)
            done = tier.flush(LONG) and observer.counts() == (0, 1, 0, 1)
            os._exit(0 if empty and done and len(setting.opened) == 2 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    gate.set()
    assert tier.flush(LONG)
    assert observer.counts() == (0, 1, 0, 1) and len(setting.opened) == 1


def test_generated_and_ready_are_two_entries(setting):
    observer = Counting()
    tier = setting.tier(observer)
    tier.offer(setting.entry(spec=GENERATED))
    assert tier.fetch(sample_key(), READY, str(setting.place())) is None
    assert tier.fetch(sample_key(), GENERATED, str(setting.place())) is not None
    assert observer.counts() == (1, 1, 0, 1)


def test_builders_are_those_of_the_store(tmp_path):
    """The payload of these tests is what a builder of the store's own tests makes."""
    payload_builder()(tmp_path)
    assert {path: (tmp_path / path).read_bytes() for path in PAYLOAD} == PAYLOAD
