"""A store of immutable, content-addressed build artifacts.

Usable alone: it knows digests, files and processes, and nothing of what is being built.
"""

from __future__ import annotations

from pypto_store.config import CacheConfig, RemoteConfig
from pypto_store.digest import Digest
from pypto_store.entry import Entry, EntryChanged
from pypto_store.keys import ArtifactKey, ArtifactSpec, State
from pypto_store.listing import EntryRow, iterate_entries
from pypto_store.outcomes import (
    BuildResult,
    Failure,
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
    "iterate_entries",
]
