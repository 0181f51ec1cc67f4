"""The remotes of a process: one tier for each, made when a miss first needs it, and counted.

A request that its root answers makes none, and imports nothing of them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from pypto.jit import log
from pypto.jit.fitness import misfit
from pypto.jit.statistics import Counter, Statistics

if TYPE_CHECKING:
    from pypto_store import ArtifactKey, ArtifactSpec, Entry, RemoteConfig
    from pypto_store.manifest import Manifest
    from pypto_store.remote.tier import RemoteTier
    from pypto_store.remote_store import Remote


# Remotes that are kept. More of them are one remote whose credentials change all the time, and each
# would keep its connections for as long as the process lives.
_KEPT = 16


class Remotes:
    """The tiers by what describes them. Safe for threads and across fork, as they are."""

    def __init__(self, statistics: Statistics, clock: Callable[[], int]) -> None:
        self._statistics = statistics
        self._clock = clock
        self._tiers: dict[RemoteConfig, RemoteTier] = {}

    def at(self, config: RemoteConfig) -> Remote:
        """The remote that `config` describes, for a store; nothing is opened yet."""
        return _Counted(self, config, self._statistics, self._clock)

    def tier(self, config: RemoteConfig) -> RemoteTier:
        """The process's only tier for `config`."""
        tier = self._tiers.get(config)
        if tier is None:
            from pypto_store.remote.tier import RemoteTier

            # Making one opens nothing, so that of two threads one may make it in vain.
            made = RemoteTier(config, _Observer(self._statistics), misfit=misfit)
            tier = self._tiers.setdefault(config, made)
            while len(self._tiers) > _KEPT:
                # Collected, with its connections, once its uploads are done.
                with suppress(KeyError, RuntimeError):
                    del self._tiers[next(iter(self._tiers))]
        return tier

    def flush(self, timeout: float) -> bool:
        """Wait for uploads, at most `timeout` seconds for each remote; whether all are done."""
        done = True
        for tier in list(self._tiers.values()):
            done &= tier.flush(timeout)
        return done


class _Counted:
    """A remote whose tier is made at its first use, and how long it kept requests waiting."""

    def __init__(
        self,
        remotes: Remotes,
        config: RemoteConfig,
        statistics: Statistics,
        clock: Callable[[], int],
    ) -> None:
        self._remotes = remotes
        self._config = config
        self._statistics = statistics
        self._clock = clock

    def fetch(self, key: ArtifactKey, spec: ArtifactSpec, directory: str) -> Manifest | None:
        begin = self._clock()
        try:
            return self._remotes.tier(self._config).fetch(key, spec, directory)
        finally:
            self._statistics.add(Counter.REMOTE_FETCH_NS, self._clock() - begin)

    def offer(self, entry: Entry) -> None:
        self._remotes.tier(self._config).offer(entry)


class _Observer:
    """Counts what a tier tells. How long requests waited is counted where they wait."""

    def __init__(self, statistics: Statistics) -> None:
        self._statistics = statistics

    def hit(self, size: int, ns: int) -> None:
        self._statistics.add_all({Counter.REMOTE_HITS: 1, Counter.REMOTE_DOWNLOAD_BYTES: size})

    def miss(self, ns: int) -> None:
        self._statistics.add(Counter.REMOTE_MISSES)
        log.remote_missed(ns)

    def fault(self, reason: str, ns: int) -> None:
        # The tier itself tells people, and each kind of trouble only once.
        self._statistics.remote_fault(reason)

    def uploaded(self, size: int, ns: int) -> None:
        self._statistics.add_all(
            {
                Counter.REMOTE_UPLOADS: 1,
                Counter.REMOTE_UPLOAD_BYTES: size,
                Counter.REMOTE_UPLOAD_NS: ns,
            }
        )
        log.uploaded(size, ns)
