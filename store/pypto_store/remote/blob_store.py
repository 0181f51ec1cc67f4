"""What a remote is to the store: blobs by what they are, and entries by what asked for them.

These are the protocols that every engine implements and the faults that it may raise. An engine is
one client of one kind of server; it is made from a RemoteConfig (see `engines`), may be used by
several threads at once, and is not used after `close()`.

Absent is a value (None), broken is an error. Everything that goes wrong outside this process is a
RemoteFault; an engine maps the errors of its transport to these once, where they arise, and lets
no other exception out. What a source of the caller's raises is passed on, and nothing is stored:

    RemoteFault              has url, operation, reason and remedy
      RemoteUnavailable      not there now: down, unreachable, too slow, overloaded, full
      RemoteRefused          there, but not for this client: credentials, or permission to write
      RemoteProtocolError    there, but what it says makes no sense, or is not to be trusted
        CorruptBlob          it gave other bytes than those that were asked for
        RejectedEntry        an entry that is not what its name says, or not from whom it has to be
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from pypto_store.digest import Digest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

BLOB_LIMIT = 2**63 - 1  # bytes of one blob: what REAPI can say
ENTRY_LIMIT = 4_000_000  # bytes of one entry: every server and gRPC client takes that much
_SHOWN = 1000  # characters of a reason
CHUNK = 1 << 20  # bytes; a good piece to read and write at once
SLOWEST = 1 << 20  # bytes per second; whoever moves less gets no more time for it


@dataclass(frozen=True, slots=True, order=True)
class BlobDigest:
    """The name of a blob: its SHA-256 and its size in bytes (0 to 2**63 - 1; else a ValueError)."""

    sha256: Digest
    size: int

    def __post_init__(self) -> None:
        if type(self.sha256) is not Digest:
            raise TypeError(f"sha256 must be a Digest, not {self.sha256!r}")
        if type(self.size) is not int or not 0 <= self.size <= BLOB_LIMIT:
            raise ValueError(f"a blob cannot have {self.size!r} bytes")

    @classmethod
    def of(cls, data: bytes) -> BlobDigest:
        """The name of `data`."""
        return cls(Digest(hashlib.sha256(data).hexdigest()), len(data))

    def __str__(self) -> str:
        return f"{self.sha256}/{self.size}"


class BlobStream(Protocol):
    """Bytes that are read once, front to back. An open binary file is one."""

    def read(self, size: int, /) -> bytes:
        """At most `size` (1 or more) further bytes; fewer do not mean the end, none do."""
        ...

    def close(self) -> None:
        """Give back what the stream holds, read to its end or not. May be called twice."""
        ...


# Opens the same bytes afresh at every call: an engine that has to begin again calls it again. The
# engine closes what it opened.
Source: TypeAlias = "Callable[[], BlobStream]"


def read_at_most(stream: BlobStream, limit: int) -> bytes:
    """Everything up to the stream's end, but no more than `limit` bytes; the stream stays open."""
    pieces = []
    while limit and (piece := stream.read(min(limit, CHUNK))):
        pieces.append(piece)
        limit -= len(piece)
    return b"".join(pieces)


def source_of(data: bytes) -> Source:
    """A source whose bytes are `data`."""
    return lambda: io.BytesIO(data)


class BlobStore(Protocol):
    """Blobs by digest.

    An engine's own blob store passes on what arrives; `verifying` is what makes it trustworthy, and
    `engines` puts that around every one. A blob may go away at any time, also right after
    `find_missing` has seen it.
    """

    def get(self, digest: BlobDigest) -> BlobStream | None:
        """A stream of the blob, to be closed by the caller; None when it is not there."""
        ...

    def get_many(self, digests: Collection[BlobDigest]) -> dict[BlobDigest, bytes]:
        """Those of the blobs that are there, whole.

        The caller bounds the sum of the sizes by what it wants to have in memory; the engine
        divides the request as its server needs it.
        """
        ...

    def put(self, digest: BlobDigest, source: Source) -> None:
        """Store a blob: all of it or nothing. One that is there already is replaced or kept."""
        ...

    def put_many(self, blobs: Mapping[BlobDigest, bytes]) -> None:
        """Store blobs that are in memory. After a fault any of them may be stored, each whole."""
        ...

    def find_missing(self, digests: Collection[BlobDigest]) -> frozenset[BlobDigest]:
        """Those of the blobs that are not there."""
        ...


class EntryIndex(Protocol):
    """Entries (the bytes of an ActionResult message) by the digest of the Action that names them.

    Nobody can check an entry by its name: whoever can write to the remote can say anything in it.
    """

    def get(self, name: BlobDigest) -> bytes | None:
        """The entry, at most ENTRY_LIMIT bytes; None when there is none."""
        ...

    def put(self, name: BlobDigest, entry: bytes) -> None:
        """Store an entry in place of the one that may be there; ValueError above ENTRY_LIMIT.

        Every blob that it names, the action and its command among them, must be stored before.
        """
        ...


def check_entry_size(entry: bytes) -> None:
    """ValueError for an entry that is too large to be stored."""
    if len(entry) > ENTRY_LIMIT:
        raise ValueError(f"an entry has {len(entry)} bytes, but {ENTRY_LIMIT} is the limit")


class Engine(Protocol):
    """One remote: its blobs and its entries."""

    @property
    def blobs(self) -> BlobStore:
        """The blobs."""
        ...

    @property
    def entries(self) -> EntryIndex:
        """The entries."""
        ...

    def close(self) -> None:
        """Give back connections and files. May be called twice."""
        ...


def plain(text: str) -> str:
    """What may have been said by somebody else, as one short line that no terminal obeys."""
    line = " ".join(text[:_SHOWN].split())
    shown = "".join(letter if letter.isprintable() else "?" for letter in line)
    return shown if len(text) <= _SHOWN else f"{shown}..."


class RemoteFault(Exception):
    """Something went wrong at a remote, and this is all that can be said of it in one line.

    url: the remote, without credentials. operation: what was being done ("get blob <sha256>").
    reason: what happened, `plain`. remedy: what a user can do about it.
    """

    def __init__(self, *, url: str, operation: str, reason: str, remedy: str) -> None:
        reason = plain(reason)
        super().__init__(f"{url}: {operation}: {reason}; {remedy}")
        self.url = url
        self.operation = operation
        self.reason = reason
        self.remedy = remedy


class RemoteUnavailable(RemoteFault):
    """The remote is not there now: down, unreachable, too slow, overloaded or full."""


class RemoteRefused(RemoteFault):
    """The remote does not let this client do it: 401, 403, UNAUTHENTICATED, PERMISSION_DENIED."""


class RemoteProtocolError(RemoteFault):
    """The remote answered, but not as its protocol says."""


class CorruptBlob(RemoteProtocolError):
    """The bytes that arrived are not those that the digest names."""


class RejectedEntry(RemoteProtocolError):
    """What stands under an entry's name is not used: the entry is at fault, not the transport."""
