"""What a tier sends, and what it does not."""

from __future__ import annotations

import base64
import os
import threading

import pytest
from pypto_store.remote import tier as tier_module
from pypto_store.remote.blob_store import RemoteRefused
from pypto_store.testing import PAYLOAD, READY, sample_key
from tier_settings import LONG, Counting, fault

PUTS = ("find", "put blob", "put many", "put entry")

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


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


def test_the_end_drops_what_waits_and_what_comes_later_is_a_fault(setting, told):
    observer, entry = Counting(), setting.entry()
    begun, gate = threading.Event(), threading.Event()
    tier = setting.tier(observer, upload="background")
    assert tier.fetch(sample_key(), READY, str(setting.place())) is None
    setting.meet = lambda operation: (begun.set(), gate.wait(LONG))
    for _ in range(3):
        tier.offer(entry)
    assert begun.wait(LONG)
    tier._uploads.finish(0)  # as at the end of the process
    assert len(observer.faults) == 2
    assert [text for text in told() if "not sent in time" in text] == [
        f"{setting.config.url}: 2 entries were not sent in time; `push` sends them"
    ]
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
