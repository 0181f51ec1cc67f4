"""A remote in memory whose operations fail as a test says, tiers of it, and what they count."""

from __future__ import annotations

import os
from dataclasses import replace

from pypto_store import RemoteConfig
from pypto_store.remote.blob_store import RemoteUnavailable
from pypto_store.remote.entry_testing import publish
from pypto_store.remote.memory import MemoryRemote
from pypto_store.remote.tier import RemoteTier
from pypto_store.testing import PAYLOAD, READY, sample_key

LONG = 30.0  # seconds; nothing here takes them


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


def fault(kind=RemoteUnavailable, reason="connection refused"):
    return kind(url="file:///there", operation="get it", reason=reason, remedy="see to it")
