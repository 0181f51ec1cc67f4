"""What the store answers. Every way out has its own type; none of them is an exception."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

    from pypto_store.digest import Digest
    from pypto_store.entry import Entry


@dataclass(frozen=True, slots=True)
class Invalid:
    """Something stands in the slot at `path` that is no valid entry; it is left as it is."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A completely validated entry. `rejected`: invalid slots met on the way to it."""

    entry: Entry
    rejected: tuple[Invalid, ...] = ()


@dataclass(frozen=True, slots=True)
class Miss:
    """Nothing usable is there. `reason` is empty when there is simply nothing."""

    reason: str = ""
    rejected: tuple[Invalid, ...] = ()


@dataclass(frozen=True, slots=True)
class StorageError:
    """The storage did not let itself be read; `path` is what was asked for."""

    path: str
    reason: str


def reason_of(error: OSError) -> str:
    """What failed and where, in one line."""
    # The filename of a call on a descriptor is that descriptor's number.
    if not isinstance(error.filename, (str, bytes)):
        return error.strerror or str(error)
    return f"{error.strerror or error} ({os.fsdecode(error.filename)})"


@dataclass(frozen=True, slots=True)
class Hint:
    """The bytes of GENERATED's kernel_config.json, checked against its manifest."""

    data: bytes


class Failure(Enum):
    """Why a build could not become an entry.

    INVALID: its slot is taken by something invalid, which is never overwritten.
    STORAGE: reading or writing the store failed.
    LOCK: the key's lock, or the store's, could not be had.
    PUBLICATION: the payload may not or cannot be published.
    """

    INVALID = "invalid"
    STORAGE = "storage"
    LOCK = "lock"
    PUBLICATION = "publication"


@dataclass(frozen=True, slots=True)
class Published:
    """This call built the entry and published it.

    shared_bytes: payload bytes that are links to what other entries, or other files of this one,
        have on disk.
    damaged_blobs: known blobs whose bytes were not what their name says; they were written afresh,
        and the names were given to the new files.
    """

    entry: Entry
    shared_bytes: int = 0
    damaged_blobs: tuple[Digest, ...] = ()


@dataclass(frozen=True, slots=True)
class Private:
    """A complete build at `path` that belongs to the caller and is no entry.

    failure is None when nothing went wrong: the store is read-only and has no such entry.
    """

    path: Path
    failure: Failure | None
    reason: str


@dataclass(frozen=True, slots=True)
class Fetched:
    """A remote had the entry, and nothing was built.

    private: it is no part of the store, but a directory of the caller's that is a whole entry.
    failure, reason: why it could not be published; failure is None for one that was, and for a
        read-only store.
    damaged_blobs: as for Published.
    """

    entry: Entry
    private: bool = False
    failure: Failure | None = None
    reason: str = ""
    damaged_blobs: tuple[Digest, ...] = ()


Lookup: TypeAlias = "Hit | Miss | Invalid | StorageError"
BuildResult: TypeAlias = "Hit | Published | Fetched | Private"
