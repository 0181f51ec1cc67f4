"""One machine as far as these tests need one: a store over a remote, and what becomes of it."""

from __future__ import annotations

import time

from pypto_store import ArtifactStore, Hit
from pypto_store.remote.tier import RemoteTier
from pypto_store.testing import PAYLOAD, READY, payload_builder, sample_key

LONG = 60.0  # seconds; nothing here takes them
SHORT = 0.4  # seconds; the timeout of servers that are waited for
# Longer than what a timeout may take on a busy machine, shorter than any hang.
BOUND = 30.0  # seconds


class Counted:
    """What became of requests, in their order."""

    def __init__(self):
        self.hits = 0
        self.misses = 0
        self.faults = []
        self.uploads = 0

    def hit(self, size, ns):
        assert size > 0 and ns > 0
        self.hits += 1

    def miss(self, ns):
        self.misses += 1

    def fault(self, reason, ns):
        assert ns >= 0 and "\n" not in reason
        self.faults.append(reason)

    def uploaded(self, size, ns):
        assert size > 0 and ns > 0
        self.uploads += 1


class Machine:
    """Builds entries; every one has to be published here and valid, whatever the remote does."""

    def __init__(self, directory, config):
        self.directory = directory
        self.counted = Counted()
        self.tier = RemoteTier(config, self.counted)
        self.store = ArtifactStore(directory / "root", remote=self.tier)

    def build(self, name="one", payload=PAYLOAD, spec=READY, *, alone=True):
        """Whether the entry had to be built (True) or came from somewhere (False).

        alone: nobody else builds in this machine's directories at the same time.
        """
        calls = []
        result = self.store.get_or_build(
            sample_key(name),
            spec,
            payload_builder(payload, calls),
            private_parent=self.directory / "private",
        )
        assert {path: result.entry.read(path) for path in payload} == payload
        found = ArtifactStore(self.directory / "root").lookup(sample_key(name), spec)
        assert isinstance(found, Hit), found
        assert found.entry.directory == result.entry.directory
        assert not alone or not list(self.directory.glob("private/*"))
        assert type(result).__name__ in (("Published",) if calls else ("Fetched", "Hit"))
        assert not alone or not isinstance(result, Hit)
        return bool(calls)

    def settle(self):
        """Wait for the uploads; what was counted since the machine was made."""
        assert self.tier.flush(LONG)
        return self.counted

    def stop(self):
        self.tier.flush(LONG)
        self.tier.close()


def builds_on(machine, told, config, reason, *, reports=2):
    """Two builds at a remote that is of no use at all."""
    built = machine(config)
    begun = time.monotonic()
    assert built.build("one") and built.build("two")
    counted = built.settle()
    assert time.monotonic() - begun < BOUND
    assert (counted.hits, counted.misses, counted.uploads) == (0, 0, 0)
    assert len(counted.faults) == 4  # two requests, two uploads
    for fault in counted.faults:
        assert reason in fault
        assert fault.startswith(config.shown_url)
    assert 1 <= len(told()) <= reports, told()
