"""Identities that an earlier process worked out, good for as long as nothing they rest on changes.

Working an identity out follows from the request's circumstances (variables, directories, the
interpreter), the sources of the packages, and the answers of the file system. A record keeps all
three beside the result. It is found by the circumstances, and believed only after the sources were
hashed and every question asked again; so it holds no time and never goes stale.

On disk, in <root>/tools/<digest of the circumstances>.json, schema 1: a line with the SHA-256 of
what follows it in hex, then

    {"components": [[name, digest, [[fact, value], ...]], ...], "digest": sha,
     "observations": [[kind, path, answer], ...], "schema": 1,
     "settings": [[name, value or null], ...], "sources": {package: sha, ...}}
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pypto_store.digest import Digest
from pypto_toolchains.disk import Observation
from pypto_toolchains.evidence import Evidence
from pypto_toolchains.identity import ToolchainIdentity
from pypto_toolchains.records import sealed, unsealed

SCHEMA = 1

_FIELDS = frozenset({"components", "digest", "observations", "schema", "settings", "sources"})


@dataclass(frozen=True, slots=True)
class Recalled:
    """What a record says: the identity, and what has to be so still for it to be right."""

    identity: ToolchainIdentity
    sources: Mapping[str, str]
    observations: Sequence[Observation]


def circumstances(values: tuple[object, ...]) -> str:
    """The name of the record for requests of equal `values`: texts, numbers, None, and tuples."""
    # repr tells all of these apart, and escapes what is no text.
    return hashlib.sha256(f"pypto.recall/{SCHEMA} {values!r}".encode()).hexdigest()


def encode(
    identity: ToolchainIdentity,
    sources: Mapping[str, str],
    observations: tuple[Observation, ...],
) -> bytes:
    """The bytes of a record."""
    document = {
        "components": [
            [item.component, item.digest.hex, item.facts] for item in identity.components
        ],
        "digest": identity.digest.hex,
        "observations": observations,
        "schema": SCHEMA,
        "settings": identity.settings,
        "sources": dict(sources),
    }
    body = json.dumps(document, sort_keys=True, separators=(",", ":")).encode("ascii")
    return sealed(body)


def decode(content: bytes | None) -> Recalled | None:
    """What a record says, or None for one that is absent, damaged or of another schema."""
    body = unsealed(content)
    if body is None:
        return None
    try:
        document = json.loads(body)
        if document.keys() != _FIELDS or document["schema"] != SCHEMA:
            return None
        identity = ToolchainIdentity(
            Digest(document["digest"]),
            tuple(
                [
                    Evidence(name, tuple([(fact, value) for fact, value in facts]), Digest(digest))
                    for name, digest, facts in document["components"]
                ]
            ),
            tuple([(name, value) for name, value in document["settings"]]),
        )
        observations = [(kind, path, answer) for kind, path, answer in document["observations"]]
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
    if not all(type(text) is str for observation in observations for text in observation):
        return None
    return Recalled(identity, document["sources"], observations)
