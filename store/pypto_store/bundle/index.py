"""The index of a bundle: which entries it holds, and which bytes follow in what order.

A bundle is one zstd frame with a tar file in it, whose members are, in this order and with nothing
else before, between or after them:

    pypto-bundle.json     the index
    blobs/<sha256>        each distinct content once, in ascending order

The index is canonical JSON, as a manifest is (ASCII, no blanks, keys in alphabetical order, one
trailing newline); any other spelling of the same content is refused.

Grammar (schema 1):

    index  = {"blobs": [blob, ...],          ; strictly ascending by sha256; exactly those that
                                             ; the entries and records name
              "entries": [manifest, ...],    ; strictly ascending by place; manifest.py has them
              "records": [record, ...],      ; strictly ascending by digest
              "schema": 1}
    blob   = {"sha256": sha, "size": integer}
    record = {"digest": sha, "sha256": sha, "size": integer}
                                             ; what is kept to explain one component of a key
                                             ; (evidence.py has it), not needed to use an entry

Schema history: 1, the first. A change takes the next number and a line here; a reader refuses the
numbers it does not know. Contents are named by digest alone, so no path in a bundle ever becomes a
path on disk before the manifest that holds it has been checked.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import NamedTuple

from pypto_store import evidence
from pypto_store.bundle.faults import BundleError
from pypto_store.digest import is_digest_name
from pypto_store.keys import State
from pypto_store.manifest import Manifest, ManifestError, parse

SCHEMA = 1
SIZE_LIMIT = 64 * 1024 * 1024  # bytes of one index: some 40,000 usual entries
BLOB_LIMIT = 8**11 - 1  # bytes of one content: what a tar header can say in octal digits

_FIELDS = {"blobs", "entries", "records", "schema"}
_RECORD_FIELDS = {"digest", "sha256", "size"}


class Blob(NamedTuple):
    """One content: its digest and its size in bytes."""

    sha256: str
    size: int


class Record(NamedTuple):
    """The evidence of one component: the component's digest, and digest and size of the bytes."""

    digest: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Index:
    """What a bundle holds; consistent from birth (BundleError if not)."""

    entries: tuple[Manifest, ...]
    records: tuple[Record, ...] = ()

    def __post_init__(self) -> None:
        places = [place(manifest) for manifest in self.entries]
        if places != sorted(set(places)):
            raise BundleError("entries are not in strictly ascending order of their places")
        digests = [record.digest for record in self.records]
        if digests != sorted(set(digests)):
            raise BundleError("records are not in strictly ascending order of their digests")
        components = {value.hex for entry in self.entries for _, value in entry.key.components()}
        if strangers := set(digests) - components:
            raise BundleError(f"the record of {min(strangers)} belongs to no entry")
        self._sizes()

    def _sizes(self) -> dict[str, int]:
        sizes: dict[str, int] = {}
        named = [(file.sha256, file.size) for entry in self.entries for file in entry.files]
        named += [(record.sha256, record.size) for record in self.records]
        for sha256, size in named:
            if sizes.setdefault(sha256, size) != size:
                raise BundleError(f"content {sha256} is said to have two sizes")
            if size > BLOB_LIMIT:
                raise BundleError(
                    f"content {sha256} has {size} bytes; a bundle holds at most {BLOB_LIMIT} of one"
                )
        return sizes

    @property
    def blobs(self) -> tuple[Blob, ...]:
        """Each distinct content once, in the order of a bundle."""
        return tuple(Blob(sha256, size) for sha256, size in sorted(self._sizes().items()))

    def encode(self) -> bytes:
        """The canonical bytes; BundleError when they exceed the limit."""
        blobs = ",".join(f'{{"sha256":"{sha256}","size":{size}}}' for sha256, size in self.blobs)
        entries = b",".join(manifest.encode()[:-1] for manifest in self.entries)
        records = ",".join(
            f'{{"digest":"{digest}","sha256":"{sha256}","size":{size}}}'
            for digest, sha256, size in self.records
        )
        data = b"".join(
            (
                f'{{"blobs":[{blobs}],"entries":['.encode("ascii"),
                entries,
                f'],"records":[{records}],"schema":{SCHEMA}}}\n'.encode("ascii"),
            )
        )
        if len(data) > SIZE_LIMIT:
            raise BundleError(
                f"an index of {len(data)} bytes is larger than {SIZE_LIMIT}; "
                "make several bundles of fewer keys each"
            )
        return data


def place(manifest: Manifest) -> tuple[str, str, str, str]:
    """Where an entry is in a store, as an order; sources come before binaries of the same key."""
    spec = manifest.spec
    digest = "" if spec.state is State.GENERATED else spec.digest.hex
    return (manifest.key.environment.hex, manifest.key.digest.hex, spec.state.value, digest)


def parse_index(data: bytes) -> Index:
    """Read an index; BundleError unless it is canonical and consistent."""
    document = _load(data)
    if type(document) is not dict or document.keys() != _FIELDS:
        raise BundleError("the index does not have exactly the fields of an index")
    if type(document["schema"]) is not int or document["schema"] != SCHEMA:
        raise BundleError(
            f"the bundle has schema {document['schema']!r} and this version knows {SCHEMA}; "
            "use the version that made it, or a newer one"
        )
    index = Index(
        tuple(_manifest(item) for item in _list(document, "entries")),
        tuple(_record(item) for item in _list(document, "records")),
    )
    if index.encode() != data:
        # The list of blobs follows from the entries, so this also refuses one too many or too few.
        raise BundleError("the index is not in canonical form, or its blobs are not its entries'")
    return index


def _load(data: bytes) -> object:
    try:
        return json.loads(data.decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise BundleError(f"the index is not JSON: {error}") from None


def _list(document: dict[str, object], name: str) -> list[object]:
    value = document[name]
    if type(value) is not list:
        raise BundleError(f"{name} of the index is not a list")
    return value


def _manifest(value: object) -> Manifest:
    try:
        text = json.dumps(value, separators=(",", ":"), sort_keys=True) + "\n"
        return parse(text.encode("ascii"))
    except (ManifestError, RecursionError, TypeError) as error:
        raise BundleError(f"an entry's manifest: {error}") from None


def _record(value: object) -> Record:
    if type(value) is not dict or value.keys() != _RECORD_FIELDS:
        raise BundleError("a record of the index does not have exactly the fields of one")
    digest, sha256, size = value["digest"], value["sha256"], value["size"]
    for text in (digest, sha256):
        if type(text) is not str or not is_digest_name(text):
            raise BundleError(f"a record of the index has a malformed digest {text!r}")
    if type(size) is not int or not 0 <= size <= evidence.SIZE_LIMIT:
        raise BundleError(f"a record of the index has an impossible size {size!r}")
    return Record(digest, sha256, size)
