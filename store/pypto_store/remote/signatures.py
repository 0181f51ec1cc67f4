"""The signatures of a manifest: the file that lies beside it, `artifact_manifest.json.sig`.

It is canonical JSON as the manifest is: ASCII, no blanks, keys in alphabetical order, one trailing
newline. Any other spelling of the same content is refused, duplicate and unknown fields with it.

Grammar (schema 1):

    document  = {"schema_version": 1, "signatures": [signature, ...]}
                                       ; 1 to 16, strictly ascending by the text of the key
    signature = {"algorithm": "ed25519",
                 "key": base64,        ; of the public key's 32 bytes
                 "signature": base64}  ; of the 64 bytes of RFC 8032, PureEdDSA
    base64    = RFC 4648 with its padding

What is signed is not the manifest alone, but `signed_bytes`: a signature that the same key made for
something else is none here, and one that was made here is none elsewhere.

    signed bytes = "pypto artifact manifest v1", a zero byte, the manifest's bytes

The manifest has the key, the specification and the digest of every file, so one signature is for
all of the entry and for no other.

Schema history: 1, the first. A change of meaning, of fields or of algorithms takes the next number
and a line here; a reader refuses the numbers it does not know. A change of what is signed takes the
next number in the words before the zero byte as well.
"""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pypto_store.remote.public_key import KEY_SIZE, exact_base64

if TYPE_CHECKING:
    from collections.abc import Iterable

SCHEMA = 1
SIGNATURES_LIMIT = 16  # of one document: each costs a verification
SIZE_LIMIT = 16 * 1024  # bytes of one document
SIGNATURE_SIZE = 64  # bytes

_ALGORITHM = "ed25519"
_CONTEXT = b"pypto artifact manifest v1\0"
_DOCUMENT_FIELDS = frozenset({"schema_version", "signatures"})
_SIGNATURE_FIELDS = frozenset({"algorithm", "key", "signature"})


class SignaturesError(ValueError):
    """Bytes that are no such document; says what is wrong with them."""


@dataclass(frozen=True, slots=True)
class Signature:
    """What one key says of a manifest; nothing here has verified it.

    key: the 32 bytes of the public key. signature: the 64 bytes of the signature.
    """

    key: bytes
    signature: bytes

    def __post_init__(self) -> None:
        if type(self.key) is not bytes or len(self.key) != KEY_SIZE:
            raise SignaturesError(f"a key has {KEY_SIZE} bytes")
        if type(self.signature) is not bytes or len(self.signature) != SIGNATURE_SIZE:
            raise SignaturesError(f"a signature has {SIGNATURE_SIZE} bytes")


def signed_bytes(manifest: bytes) -> bytes:
    """What a signature of a manifest is made over."""
    return _CONTEXT + manifest


def encode(signatures: Iterable[Signature]) -> bytes:
    """The document of these signatures, in whatever order; SignaturesError if there is none."""
    ordered = sorted(signatures, key=lambda each: b64encode(each.key))
    if not 1 <= len(ordered) <= SIGNATURES_LIMIT:
        raise SignaturesError(f"has {len(ordered)} signatures; 1 to {SIGNATURES_LIMIT} can be")
    keys = [each.key for each in ordered]
    if len(set(keys)) != len(keys):
        raise SignaturesError("has two signatures by the same key")
    rows = ",".join(
        f'{{"algorithm":"{_ALGORITHM}","key":"{_base64(each.key)}",'
        f'"signature":"{_base64(each.signature)}"}}'
        for each in ordered
    )
    return f'{{"schema_version":{SCHEMA},"signatures":[{rows}]}}\n'.encode("ascii")


def parse(data: bytes) -> tuple[Signature, ...]:
    """The signatures of a document; SignaturesError unless it is canonical and within bounds."""
    if len(data) > SIZE_LIMIT:
        raise SignaturesError(f"is larger than {SIZE_LIMIT} bytes")
    try:
        document = json.loads(data.decode("ascii"), object_pairs_hook=_unique)
    except SignaturesError:
        raise
    except (ValueError, RecursionError) as error:
        raise SignaturesError(f"is not JSON: {error}") from None
    fields = _fields("document", document, _DOCUMENT_FIELDS)
    version, rows = fields["schema_version"], fields["signatures"]
    if type(version) is not int or version != SCHEMA:
        raise SignaturesError(f"has schema_version {version!r:.40}; this reader knows {SCHEMA}")
    if type(rows) is not list or not 1 <= len(rows) <= SIGNATURES_LIMIT:
        raise SignaturesError(f"must have a list of 1 to {SIGNATURES_LIMIT} signatures")
    found = tuple(_signature(row) for row in rows)
    if encode(found) != data:
        raise SignaturesError("is not in canonical form")
    return found


def _signature(value: object) -> Signature:
    fields = _fields("signature", value, _SIGNATURE_FIELDS)
    if fields["algorithm"] != _ALGORITHM:
        raise SignaturesError(f"has the algorithm {fields['algorithm']!r:.40}, not {_ALGORITHM!r}")
    return Signature(
        _bytes("key", fields["key"], KEY_SIZE),
        _bytes("signature", fields["signature"], SIGNATURE_SIZE),
    )


def _bytes(name: str, value: object, size: int) -> bytes:
    data = exact_base64(value, size) if type(value) is str else None
    if data is None:
        raise SignaturesError(f"has a {name} that is not base64 of {size} bytes")
    return data


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise SignaturesError("has a field twice")
    return fields


def _fields(what: str, value: object, names: frozenset[str]) -> dict[str, object]:
    if type(value) is not dict:
        raise SignaturesError(f"has a {what} that is not an object")
    if missing := names - value.keys():
        raise SignaturesError(f"lacks the field {min(missing)!r} of a {what}")
    if extra := value.keys() - names:
        raise SignaturesError(f"has the unknown field {min(extra)!r:.40} in a {what}")
    return value
