"""The remote as the store has it: what is counted, what is told, and that none of it is fatal."""

from __future__ import annotations

import errno
import os

import pytest
from pypto_store.remote import tier as tier_module
from pypto_store.remote.blob_store import RemoteProtocolError, RemoteRefused, RemoteUnavailable
from pypto_store.remote.tier import RemoteTier
from pypto_store.testing import GENERATED, PAYLOAD, READY, sample_key
from pypto_store.validation import validate_payload
from tier_settings import Counting, fault


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


def test_who_may_not_read_builds_on(setting, told):
    observer = Counting()
    setting.faults["get entry"] = fault(RemoteRefused, "401")
    tier = setting.tier(observer)
    for _ in range(5):
        assert tier.fetch(sample_key(), READY, str(setting.place())) is None
    assert observer.counts() == (0, 0, 5, 0) and len(told()) == 1
    assert setting.asked.count("get entry") == 1


def test_generated_and_ready_are_two_entries(setting):
    observer = Counting()
    tier = setting.tier(observer)
    tier.offer(setting.entry(spec=GENERATED))
    assert tier.fetch(sample_key(), READY, str(setting.place())) is None
    assert tier.fetch(sample_key(), GENERATED, str(setting.place())) is not None
    assert observer.counts() == (1, 1, 0, 1)
