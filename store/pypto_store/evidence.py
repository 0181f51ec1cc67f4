"""Readable inputs of a key's components, kept to explain why two keys differ.

A key is five digests, which say that something differs and not what. So whoever publishes leaves
the inputs of each component beside the entries, by the component's digest:

    <root>/evidence/<component's digest>.json

They are an aid to people and nothing else: no lookup reads them, no key or manifest covers them,
a publication does not wait for them, and losing one loses an explanation. They are written once,
whole or not at all, and not synced. They hold what no entry holds (host paths, variables), and stay
behind when entries travel.

Grammar (schema 1), canonical JSON as a manifest is:

    record = {"component": text, "digest": sha, "inputs": [input, ...], "schema": 1,
              "subject": text}                       ; the kernel, or "" where there is none
    input  = {"name": text, "of": text, "value": text}   ; (of, name) is unique in a record

`of` says what the input belongs to (a function, a tool, a parameter), `name` what it is there. A
value that is too long is cut, and its digest put in place of the rest, so that two values that
differ read differently.

Schema history: 1, the first.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pypto_store.digest import Digest
from pypto_store.layout import (
    FILE_MODE,
    STAGING_PREFIX,
    Layout,
    group_bits,
    make_directories,
    make_file,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

SCHEMA = 1
SIZE_LIMIT = 1024 * 1024  # bytes of one record
INPUT_LIMIT = 1000
VALUE_LIMIT = 32 * 1024  # characters of one value
NAME_LIMIT = 256

# Characters of all texts together: escaped, each takes at most twelve bytes of the record.
_VALUES_LIMIT = 80 * 1024
_FIELDS = frozenset({"component", "digest", "inputs", "schema", "subject"})
_INPUT_FIELDS = frozenset({"name", "of", "value"})


class EvidenceError(ValueError):
    """Bytes that are no evidence record; the text says why."""


class Input(NamedTuple):
    """One readable input: what it belongs to, what it is there, and what it was."""

    of: str
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class EvidenceRecord:
    """The readable inputs of one component; made by `of`, which keeps within the bounds."""

    component: str
    digest: Digest
    subject: str
    inputs: tuple[Input, ...]

    @classmethod
    def of(
        cls, component: str, digest: Digest, inputs: Iterable[Input], subject: str = ""
    ) -> EvidenceRecord:
        """A record of `inputs` in their order, cut where they are too long or too many.

        Two inputs of one name are told apart by a number.
        """
        kept: list[Input] = []
        names: dict[tuple[str, str], int] = {}
        left = _VALUES_LIMIT
        given = list(inputs)
        for position, item in enumerate(given):
            value = _cut(item.value, VALUE_LIMIT)
            left -= len(value) + len(item.of) + len(item.name)
            if len(kept) == INPUT_LIMIT - 1 or left < 0:
                rest = given[position:]
                kept.append(Input("", "further inputs", f"{len(rest)}, {_digest_of(repr(rest))}"))
                break
            of, name = _cut(item.of, NAME_LIMIT), _cut(item.name, NAME_LIMIT)
            number = names[(of, name)] = names.get((of, name), 0) + 1
            kept.append(Input(of, name if number == 1 else f"{name} ({number})", value))
        return cls(component, digest, _cut(subject, NAME_LIMIT), tuple(kept))

    def encode(self) -> bytes:
        """The canonical bytes."""
        document = {
            "component": self.component,
            "digest": self.digest.hex,
            "inputs": [item._asdict() for item in self.inputs],
            "schema": SCHEMA,
            "subject": self.subject,
        }
        text = json.dumps(document, sort_keys=True, separators=(",", ":"))
        return text.encode("ascii") + b"\n"


def parse(data: bytes, digest: Digest) -> EvidenceRecord:
    """The record of a component's digest; EvidenceError for anything else."""
    if len(data) > SIZE_LIMIT:
        raise EvidenceError(f"larger than {SIZE_LIMIT} bytes")
    try:
        document = json.loads(data.decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"not JSON: {error}") from None
    if type(document) is not dict or document.keys() != _FIELDS:
        raise EvidenceError("the fields are not those of a record")
    if type(document["schema"]) is not int or document["schema"] != SCHEMA:
        raise EvidenceError(f"schema {document['schema']!r} is unknown; this reader knows {SCHEMA}")
    if document["digest"] != digest.hex:
        raise EvidenceError(f"belongs to {document['digest']!r}")
    items = document["inputs"]
    if type(items) is not list or len(items) > INPUT_LIMIT:
        raise EvidenceError("inputs is no list, or too long")
    inputs = []
    for item in items:
        if type(item) is not dict or item.keys() != _INPUT_FIELDS:
            raise EvidenceError("the fields are not those of an input")
        inputs.append(Input(item["of"], item["name"], item["value"]))
    texts = [document["component"], document["subject"]]
    texts += [part for item in inputs for part in item]
    if not all(type(text) is str for text in texts):
        raise EvidenceError("a text is none")
    if len({(item.of, item.name) for item in inputs}) != len(inputs):
        raise EvidenceError("an input is named twice")
    record = EvidenceRecord(document["component"], digest, document["subject"], tuple(inputs))
    if record.encode() != data:
        raise EvidenceError("not in canonical form")
    return record


def load(layout: Layout, digest: Digest) -> EvidenceRecord | None:
    """What is kept of a component; None if nothing is.

    EvidenceError if what is there is damaged, OSError if it cannot be read.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(layout.evidence_of(digest), flags)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise EvidenceError("not a regular file") from None
        raise
    try:
        parts = []
        left = SIZE_LIMIT + 1
        while left and (part := os.read(descriptor, left)):
            parts.append(part)
            left -= len(part)
    finally:
        os.close(descriptor)
    return parse(b"".join(parts), digest)


def keep(layout: Layout, records: Iterable[EvidenceRecord]) -> None:
    """Leave what is not there yet; OSError if that fails, which loses explanations only.

    For whoever holds the store's shared lock, as a publisher does.
    """
    for record in records:
        place = layout.evidence_of(record.digest)
        if os.path.lexists(place):
            continue
        group = group_bits(layout.root)
        make_directories(layout.evidence, group)
        temporary = f"{layout.evidence}/{STAGING_PREFIX}{os.urandom(12).hex()}"
        flags = os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = make_file(temporary, flags, FILE_MODE, group & ~0o020)
        try:
            try:
                view = memoryview(record.encode())
                while view:
                    view = view[os.write(descriptor, view) :]
            finally:
                os.close(descriptor)
            # Whoever was faster wrote the same: replacing it changes nothing.
            os.rename(temporary, place)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[: limit - 100]}\n... {len(text)} characters, {_digest_of(text)}"


def _digest_of(text: str) -> str:
    return f"sha256 {hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
