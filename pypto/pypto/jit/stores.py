"""The stores of a process, and the remotes that they ask."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pypto.jit.building import Clock
from pypto.jit.native_validation import best_validator
from pypto.jit.policy import CachePolicy
from pypto.jit.statistics import Statistics
from pypto_store import ArtifactStore
from pypto_store.validation import Validator

if TYPE_CHECKING:
    from pypto.jit.remotes import Remotes
    from pypto_store import RemoteConfig


@dataclass(slots=True)
class Stores:
    """One store object a root, mode and remote: overlapping builds meet in it."""

    _statistics: Statistics
    _clock: Clock
    _remotes: list[Remotes] = field(default_factory=list)
    _open: dict[tuple[str, bool, RemoteConfig | None], ArtifactStore] = field(default_factory=dict)
    _validator: Validator = field(default_factory=best_validator)

    def at(self, policy: CachePolicy) -> ArtifactStore:
        """The store of an enabled policy."""
        assert policy.root is not None
        place = (policy.root, policy.readonly, policy.remote)
        store = self._open.get(place)
        if store is None:
            store = ArtifactStore(
                Path(policy.root),
                readonly=policy.readonly,
                validator=self._validator,
                remote=None if policy.remote is None else self._all_remotes().at(policy.remote),
            )
            store = self._open.setdefault(place, store)
        return store

    def flush_remotes(self, timeout: float) -> bool:
        """Wait for uploads, at most `timeout` seconds for each remote; whether all are done."""
        return not self._remotes or self._all_remotes().flush(timeout)

    def _all_remotes(self) -> Remotes:
        if not self._remotes:
            # Whoever has none does not load what they need.
            from pypto.jit.remotes import Remotes

            self._remotes.append(Remotes(self._statistics, self._clock))
        return self._remotes[0]  # of two that threads make at once, everybody takes the first
