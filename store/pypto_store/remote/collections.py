"""A named list of the entries at a remote: no protocol of remotes can say what there is.

Who pushes entries lists them under a name, and who pulls asks for what is listed. A list is an
aid to find entries by and nothing else: it makes no entry valid, and one that is listed may be
gone. It stands at the remote as an entry does, under the digest of an action:

    Command = pypto-collection v1 <name>
    Action  = the command, over an empty input root
    files of the ActionResult: collection.json and, where somebody signed it, collection.json.sig

Both files are an enemy's until they were read. The list is canonical JSON, as a manifest is (ASCII,
no blanks, keys in alphabetical order, one trailing newline), and no other spelling is taken:

    collection = {"entries": [entry, ...],    ; strictly ascending by place
                  "name": name,               ; of this list: none is taken for another
                  "schema": 1}
    entry      = {"components": {"application": sha, "environment": sha, "format": sha,
                                 "source": sha, "specialization": sha},
                  "kernel": text or null,     ; at most 512 characters, for people
                  "manifest": sha,            ; of the manifest's bytes, as whoever listed it had it
                  "size": integer,            ; bytes of the payload
                  "spec": spec}               ; manifest.py has it
    place      = environment, key, state, CPU level ("" without one)
    name       = one to 64 letters, digits and _ . + -, the first a letter or a digit

What is signed is `signed_bytes` of the list, which no manifest begins like; the signatures are the
document that entries have (signatures.py). A signature says who wrote the list last. It vouches for
no entry: each has its own.

Of two who push to one list at the same time the last one wins: what the other has listed in between
is not on it, though the entries are there, and another push lists them again. Whoever pushes reads
the list right before it is written, and keeps all that is on it.

Schema history: 1, the first. A change takes the next number and a line here; a reader refuses the
numbers it does not know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, NoReturn

from pypto_store.digest import Digest, is_digest_name
from pypto_store.keys import ArtifactKey, ArtifactSpec
from pypto_store.manifest import spec_of
from pypto_store.remote.batches import SMALL_BLOB
from pypto_store.remote.blob_store import BlobDigest, RejectedEntry, read_at_most, source_of
from pypto_store.remote.entry_name import EntryName
from pypto_store.remote.inventory import PAYLOAD_LIMIT
from pypto_store.remote.messages import Action, ActionResult, Command, MessageError, OutputFile
from pypto_store.remote.signatures import SIZE_LIMIT as SIGNATURES_LIMIT

if TYPE_CHECKING:
    from pypto_store.manifest import Manifest
    from pypto_store.remote.blob_store import BlobStore, Engine
    from pypto_store.remote.trust import Signer, Trust

SCHEMA = 1
SIZE_LIMIT = 64 * 1024 * 1024  # bytes of one list: some 80,000 entries
KERNEL_LIMIT = 512  # characters
DEFAULT_NAME = "default"

_DOCUMENT = "collection.json"
_SIGNATURES = "collection.json.sig"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}")
_FIELDS = {"entries", "name", "schema"}
_ENTRY_FIELDS = {"components", "kernel", "manifest", "size", "spec"}
_COMPONENTS = {"application", "environment", "format", "source", "specialization"}
_CONTEXT = b"pypto collection v1\0"
_REMEDY = "push to it to begin it anew, or name another"


class CollectionError(ValueError):
    """A list that is none, or cannot be one; says what is wrong."""


@dataclass(frozen=True, slots=True)
class Listed:
    """One entry on a list; valid from birth (CollectionError if not).

    manifest: the digest of the manifest's bytes. size: bytes of the payload, as it was said.
    kernel: "" where nothing tells it.
    """

    key: ArtifactKey
    spec: ArtifactSpec
    manifest: Digest
    size: int
    kernel: str = ""

    def __post_init__(self) -> None:
        if type(self.size) is not int or not 0 <= self.size <= PAYLOAD_LIMIT:
            raise CollectionError(f"an entry cannot have {self.size!r} bytes")
        if not _can_be_listed(self.kernel):
            raise CollectionError(
                f"the name of a kernel is no text of at most {KERNEL_LIMIT} characters"
            )

    @classmethod
    def of(cls, manifest: Manifest, kernel: str) -> Listed:
        """What a list says of an entry. A kernel's name that no list can have is left out."""
        return cls(
            manifest.key,
            manifest.spec,
            BlobDigest.of(manifest.encode()).sha256,
            manifest.payload_size,
            kernel if _can_be_listed(kernel) else "",
        )

    @property
    def place(self) -> tuple[str, str, str, str]:
        """Where it is, as an order: what has one place has one name at a remote."""
        spec = self.spec
        key = self.key
        return (key.environment.hex, key.digest.hex, spec.state.value, spec.cpu_level or "")

    def encode(self) -> str:
        """Its canonical JSON."""
        components = ",".join(f'"{name}":"{value.hex}"' for name, value in self.key.components())
        kernel = encode_basestring_ascii(self.kernel) if self.kernel else "null"
        return (
            f'{{"components":{{{components}}},"kernel":{kernel},"manifest":"{self.manifest.hex}",'
            f'"size":{self.size},"spec":{_encoded_spec(self.spec)}}}'
        )


@dataclass(frozen=True, slots=True)
class Collection:
    """A list of entries under its name; valid from birth (CollectionError if not)."""

    name: str
    entries: tuple[Listed, ...]

    def __post_init__(self) -> None:
        check_name(self.name)
        places = [entry.place for entry in self.entries]
        if places != sorted(set(places)):
            raise CollectionError("its entries are not in strictly ascending order of their places")

    def with_entries(self, entries: Iterable[Listed]) -> Collection:
        """This list with further entries, each in place of the one that has its place."""
        merged = {entry.place: entry for entry in (*self.entries, *entries)}
        return Collection(self.name, tuple(merged[place] for place in sorted(merged)))

    def encode(self) -> bytes:
        """The canonical bytes; CollectionError when they exceed the limit."""
        entries = ",".join(entry.encode() for entry in self.entries)
        text = f'{{"entries":[{entries}],"name":"{self.name}","schema":{SCHEMA}}}\n'
        data = text.encode("ascii")
        if len(data) > SIZE_LIMIT:
            raise CollectionError(
                f"collection {self.name!r} would have {len(data)} bytes, but {SIZE_LIMIT} is the "
                "limit; list further entries under another name"
            )
        return data


@dataclass(frozen=True, slots=True)
class FoundCollection:
    """A list as it stands at a remote, and whether somebody signed it."""

    collection: Collection
    signed: bool


def check_name(name: str) -> None:
    """CollectionError unless a list can be called so."""
    if _NAME.fullmatch(name) is None:
        raise CollectionError(
            f"{name!r} is no name of a collection: it is 1 to 64 letters, digits and _ . + -, "
            "and begins with a letter or a digit"
        )


def collection_name(name: str) -> EntryName:
    """Under what a list stands at a remote."""
    check_name(name)
    command = Command(("pypto-collection", "v1", name)).encode()
    action = Action(BlobDigest.of(command), BlobDigest.of(b"")).encode()
    return EntryName(action, command, BlobDigest.of(action))


def signed_bytes(document: bytes) -> bytes:
    """What a signature under a list is for."""
    return _CONTEXT + document


def fetch_collection(engine: Engine, url: str, name: str, trust: Trust) -> FoundCollection | None:
    """The list of that name; None if there is none, or not all of it any more.

    RejectedEntry for one that is malformed or that `trust` does not accept; any other RemoteFault
    as the engine raises it. Reads no more than what a list may have.
    """
    return _Reading(engine.blobs, url, name).read(engine, trust)


def put_collection(engine: Engine, collection: Collection, signer: Signer | None) -> int:
    """Store a list in place of the one that is there; gives the bytes sent. RemoteFault."""
    document = collection.encode()
    name = collection_name(collection.name)
    blobs = {BlobDigest.of(data): data for data in (name.command, name.action, document)}
    files = [OutputFile(_DOCUMENT, BlobDigest.of(document))]
    if signer is not None:
        signatures = signer.sign(signed_bytes(document))
        files.append(OutputFile(_SIGNATURES, BlobDigest.of(signatures)))
        blobs[BlobDigest.of(signatures)] = signatures
    missing = engine.blobs.find_missing(blobs.keys())
    engine.blobs.put_many({digest: blobs[digest] for digest in missing if _is_small(digest)})
    for digest in missing:
        if not _is_small(digest):
            engine.blobs.put(digest, source_of(blobs[digest]))
    result = ActionResult(tuple(files)).encode()
    engine.entries.put(name.digest, result)
    return len(result) + sum(digest.size for digest in missing)


def parse_collection(data: bytes, name: str) -> Collection:
    """Read the list of that name; CollectionError unless it is canonical and consistent."""
    if len(data) > SIZE_LIMIT:
        raise CollectionError(f"it has more than {SIZE_LIMIT} bytes")
    try:
        document = json.loads(data.decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise CollectionError(f"it is not JSON: {error}") from None
    if type(document) is not dict or document.keys() != _FIELDS:
        raise CollectionError("it does not have exactly the fields of a collection")
    if type(document["schema"]) is not int or document["schema"] != SCHEMA:
        raise CollectionError(
            f"it has schema {document['schema']!r}, and this version knows {SCHEMA}"
        )
    if document["name"] != name:
        raise CollectionError(f"it is the list {document['name']!r}")
    if type(document["entries"]) is not list:
        raise CollectionError("its entries are not a list")
    collection = Collection(name, tuple(map(_listed, document["entries"])))
    if collection.encode() != data:
        raise CollectionError("it is not in canonical form")
    return collection


def _listed(value: object) -> Listed:
    if type(value) is not dict or value.keys() != _ENTRY_FIELDS:
        raise CollectionError("an entry does not have exactly the fields of one")
    kernel = "" if value["kernel"] is None else value["kernel"]
    if type(kernel) is not str:
        raise CollectionError("the name of a kernel is not text")
    return Listed(
        _key(value["components"]), _spec(value["spec"]), _digest(value["manifest"]),
        value["size"], kernel,
    )  # fmt: skip


def _key(value: object) -> ArtifactKey:
    if type(value) is not dict or value.keys() != _COMPONENTS:
        raise CollectionError("an entry does not have exactly the components of a key")
    return ArtifactKey(**{name: _digest(digest) for name, digest in value.items()})


def _digest(value: object) -> Digest:
    if type(value) is not str or not is_digest_name(value):
        raise CollectionError("a digest is malformed")
    return Digest(value)


def _spec(value: object) -> ArtifactSpec:
    text = ""
    if type(value) is dict:
        text = json.dumps(value, separators=(",", ":"), sort_keys=True)
    spec = spec_of(text.encode("ascii"))
    if spec is None:
        raise CollectionError("the specification of an entry is none")
    return spec


def _encoded_spec(spec: ArtifactSpec) -> str:
    fields = {
        "build_kind": spec.build_kind,
        "cpu_level": spec.cpu_level,
        "execution": spec.execution,
        "required_files": spec.required_files,
        "state": spec.state.value,
    }
    return json.dumps(fields, separators=(",", ":"))


def _can_be_listed(kernel: str) -> bool:
    # A lone surrogate is half of a character, and no encoding has it.
    return len(kernel) <= KERNEL_LIMIT and not any("\ud800" <= sign <= "\udfff" for sign in kernel)


def _is_small(digest: BlobDigest) -> bool:
    return digest.size <= SMALL_BLOB


class _Reading:
    """One list on its way here."""

    def __init__(self, blobs: BlobStore, url: str, name: str) -> None:
        self._blobs = blobs
        self._url = url
        self._name = name

    def read(self, engine: Engine, trust: Trust) -> FoundCollection | None:
        entry = engine.entries.get(collection_name(self._name).digest)
        if entry is None:
            return None
        files = self._files(entry)
        document = self._whole(files[_DOCUMENT], SIZE_LIMIT)
        signatures = None
        if _SIGNATURES in files:
            signatures = self._whole(files[_SIGNATURES], SIGNATURES_LIMIT)
            if signatures is None:
                return None
        if document is None:
            return None
        if reason := trust.fault(signed_bytes(document), signatures):
            self._reject(reason)
        try:
            collection = parse_collection(document, self._name)
        except CollectionError as error:
            self._reject(str(error))
        return FoundCollection(collection, signatures is not None)

    def _files(self, entry: bytes) -> dict[str, BlobDigest]:
        try:
            result = ActionResult.decode(entry)
        except MessageError as error:
            self._reject(f"it is no ActionResult: {error}")
        files = {file.path: file.digest for file in result.output_files}
        names = set(files) - {_SIGNATURES}
        if len(files) != len(result.output_files) or names != {_DOCUMENT}:
            self._reject(f"it does not have {_DOCUMENT}, and nothing but its signatures besides")
        return files

    def _whole(self, digest: BlobDigest, limit: int) -> bytes | None:
        if digest.size > limit:
            self._reject(f"a file of it has {digest.size} bytes, but {limit} is the limit")
        if digest.size == 0:
            return b""
        stream = self._blobs.get(digest)
        if stream is None:
            return None
        with closing(stream):
            return read_at_most(stream, digest.size + 1)

    def _reject(self, reason: str) -> NoReturn:
        raise RejectedEntry(
            url=self._url,
            operation=f"get collection {self._name!r}",
            reason=reason,
            remedy=_REMEDY,
        )
