"""Entries that are what their names say, and that whoever asked for them cannot use."""

from __future__ import annotations

import os
import signal
import threading

import pytest
from pypto_store.remote import tier as tier_module
from pypto_store.remote.tier import RemoteTier
from pypto_store.remote.trust import ANYONE
from pypto_store.testing import READY, sample_key
from tier_settings import LONG, Counting

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def test_what_its_reader_cannot_use_is_a_fault_and_replaced_by_who_built_it(setting, told):
    observer, entry, seen = Counting(), setting.entry(), []
    setting.tier(Counting()).offer(entry)

    def misfit(manifest, directory):
        seen.append((manifest.key, sorted(os.listdir(directory)) != []))
        return "it is for another century"

    tier = RemoteTier(setting.config, observer, open_engine=setting.open, misfit=misfit)
    setting.tiers.append(tier)
    place = setting.place()
    assert tier.fetch(sample_key(), READY, str(place)) is None
    assert seen == [(sample_key(), True)] and not os.listdir(place)
    assert "it is for another century" in observer.faults[0] and len(told()) == 1
    setting.asked.clear()
    tier.offer(entry)
    assert observer.counts() == (0, 0, 1, 1)
    assert "put entry" in setting.asked and "get entry" not in setting.asked
    # Once is enough.
    tier.offer(entry)
    assert observer.counts() == (0, 0, 1, 1)


def test_an_error_of_looking_is_the_caller_s(setting):
    setting.tier(Counting()).offer(setting.entry())

    def misfit(manifest, directory):
        raise PermissionError(13, "no")

    tier = RemoteTier(setting.config, Counting(), open_engine=setting.open, misfit=misfit)
    setting.tiers.append(tier)
    with pytest.raises(PermissionError):
        tier.fetch(sample_key(), READY, str(setting.place()))


def test_a_fork_while_another_thread_reads_a_key_leaves_nothing_locked(setting, monkeypatch):
    reading, go_on = threading.Event(), threading.Event()
    parent = os.getpid()

    def trust_of(config):
        if os.getpid() == parent:
            reading.set()
            assert go_on.wait(LONG)
        return ANYONE

    monkeypatch.setattr(tier_module, "trust_of", trust_of)
    tier, place = setting.tier(Counting()), setting.place()
    thread = threading.Thread(target=tier.fetch, args=(sample_key(), READY, str(setting.place())))
    thread.start()
    assert reading.wait(LONG)
    child = os.fork()
    if child == 0:
        signal.alarm(int(LONG))
        tier.fetch(sample_key(), READY, str(place))
        os._exit(0)
    go_on.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
