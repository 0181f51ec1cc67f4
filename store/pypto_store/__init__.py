"""A store of immutable, content-addressed build artifacts.

Usable alone: it knows digests, files and processes, and nothing of what is being built.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pypto_store.config import CacheConfig
from pypto_store.digest import Digest
from pypto_store.entry import Entry, EntryChanged
from pypto_store.keys import ArtifactKey, ArtifactSpec, State
from pypto_store.listing import EntryRow, iterate_entries
from pypto_store.outcomes import (
    BuildResult,
    Failure,
    Fetched,
    Hint,
    Hit,
    Invalid,
    Lookup,
    Miss,
    Private,
    Published,
    StorageError,
)
from pypto_store.records import RecordBuilder
from pypto_store.store import ArtifactStore

if TYPE_CHECKING:
    from pypto_store.remote_config import RemoteConfig, TlsConfig

__all__ = [
    "ArtifactKey",
    "ArtifactSpec",
    "ArtifactStore",
    "BuildResult",
    "CacheConfig",
    "Digest",
    "Entry",
    "EntryChanged",
    "EntryRow",
    "Failure",
    "Fetched",
    "Hint",
    "Hit",
    "Invalid",
    "Lookup",
    "Miss",
    "Private",
    "Published",
    "RecordBuilder",
    "RemoteConfig",
    "State",
    "StorageError",
    "TlsConfig",
    "iterate_entries",
]

# Loaded at first use: a store without a remote needs none of it.
_OF_REMOTES = ("RemoteConfig", "TlsConfig")


def __getattr__(name: str) -> Any:
    if name not in _OF_REMOTES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pypto_store import remote_config

    value = globals()[name] = getattr(remote_config, name)
    return value
