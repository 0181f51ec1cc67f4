"""Entries that stand where READY of KEY should be, and what is said of each by who trusts key 1."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from dataclasses import replace

from pypto_store.paths import MANIFEST_NAME
from pypto_store.remote.blob_store import BlobDigest
from pypto_store.remote.signatures import SIZE_LIMIT, Signature, encode, parse
from pypto_store.testing import GENERATED, PAYLOAD, READY, ready_spec, sample_key
from signed_entries import Planted, public, raw_signature, signer

KEY, OTHER_KEY = sample_key("one"), sample_key("two")
BY_ANOTHER = f"signed by {re.escape(public(2))}"
EVIL = b"\x7fELF of somebody else"
TAMPERED = {**PAYLOAD, "prebuilt/kernel_0.bin": EVIL}
ESCAPES = (
    "../evil", "a/../../evil", "/tmp/pypto-evil", "./evil", "a//evil", "evil/", "..", ".", "",
    "a/./evil", "a\0evil", "a/" * 200 + "evil", "x" * 300,
)  # fmt: skip

good = Planted.of(KEY, READY, PAYLOAD, by=1)
generated = Planted.of(KEY, GENERATED, PAYLOAD, by=1)
other_key = Planted.of(OTHER_KEY, READY, PAYLOAD, by=1)
(own_signature,) = parse(good.signatures)


def made_by_hand(**changes):
    """A document of signatures with other fields than there are."""
    row = {
        "algorithm": "ed25519",
        "key": b64encode(own_signature.key).decode(),
        "signature": b64encode(own_signature.signature).decode(),
    }
    document = {"schema_version": 1, "signatures": [row], **changes}
    return json.dumps(document, separators=(",", ":"), sort_keys=True).encode() + b"\n"


def escaping(path):
    """An entry whose signed manifest lists a file where none may be."""
    payload = {**PAYLOAD, path: EVIL}
    return Planted.of(KEY, READY, payload, by=1)


def with_spec(**changes):
    return Planted.of(KEY, replace(READY, **changes), PAYLOAD, by=1)


# What stands at the remote where READY of KEY should be, and what is said of it. By each the key 1
# is trusted. The first group has the payload that belongs there, and is refused for who vouches.
REJECTED = {
    "unsigned": (good.but(signatures=None), "it is not signed"),
    "signed by another key": (Planted.of(KEY, READY, PAYLOAD, by=2), BY_ANOTHER),
    "a signature that claims the trusted key": (
        good.but(
            signatures=encode([
                Signature(own_signature.key, parse(signer(2).sign(good.manifest))[0].signature)
            ])
        ),
        "not one of this manifest",
    ),
    "a signature with one bit turned": (
        good.but(
            signatures=encode([
                Signature(own_signature.key, bytes([own_signature.signature[0] ^ 1])
                          + own_signature.signature[1:])
            ])
        ),
        "not one of this manifest",
    ),
    "signed without the words of this format": (
        good.but(signatures=raw_signature(1, good.manifest)), "not one of this manifest",
    ),
    "signed for another purpose": (
        good.but(signatures=raw_signature(1, b"pypto collection v1\0" + good.manifest)),
        "not one of this manifest",
    ),
    "signed for another version": (
        good.but(signatures=raw_signature(1, b"pypto artifact manifest v2\0" + good.manifest)),
        "not one of this manifest",
    ),
    "a signature of the digest": (
        good.but(signatures=raw_signature(1, BlobDigest.of(good.manifest).sha256.hex.encode())),
        "not one of this manifest",
    ),
    "no signatures in the document": (good.but(signatures=made_by_hand(signatures=[])), "1 to 16"),
    "an empty document": (good.but(signatures=b""), "not JSON"),
    "a document with a further field": (
        good.but(signatures=made_by_hand(trust="me")), "unknown field 'trust'",
    ),
    "a document with a field twice": (
        good.but(signatures=good.signatures.replace(b'"key":', b'"key":"","key":')), "field twice",
    ),
    "a document of another spelling": (
        good.but(signatures=good.signatures.replace(b",", b", ")), "canonical",
    ),
    "a document of another schema": (
        good.but(signatures=made_by_hand(schema_version=2)), "schema_version 2",
    ),
    "too many signatures": (
        good.but(signatures=made_by_hand(signatures=[
            json.loads(signer(number).sign(good.manifest))["signatures"][0]
            for number in range(1, 18)
        ])),
        "1 to 16",
    ),
    "a document without end": (
        good.but(signatures=good.signatures[:-1] + b" " * SIZE_LIMIT + b"\n"),
        r"json.sig has \d+ bytes",
    ),
    # Here the content is another one, in every way that a signature does not cover it.
    "another payload in the entry alone": (
        good.but(listed={"prebuilt/kernel_0.bin": EVIL}), MANIFEST_NAME,
    ),
    "another payload with a manifest to match": (
        Planted.of(KEY, READY, TAMPERED, by=None).but(signatures=good.signatures),
        "not one of this manifest",
    ),
    "another payload, signed by another key": (
        Planted.of(KEY, READY, TAMPERED, by=2), BY_ANOTHER,
    ),
    "a further file in the entry": (good.but(listed={"evil.so": EVIL}), MANIFEST_NAME),
    "a file less in the entry": (
        good.but(payload={name: data for name, data in PAYLOAD.items() if name != "empty"}),
        MANIFEST_NAME,
    ),
    "a manifest of another spelling": (
        good.but(
            manifest=good.manifest.replace(b",", b", "),
            signatures=signer(1).sign(good.manifest.replace(b",", b", ")),
        ),
        MANIFEST_NAME,
    ),
    "a manifest with a byte more": (good.but(manifest=good.manifest + b"\n"), MANIFEST_NAME),
    # And here it was rightly signed, but for something else.
    "replayed from another key": (other_key, MANIFEST_NAME),
    "replayed from GENERATED": (generated, MANIFEST_NAME),
    "replayed from another CPU level": (
        Planted.of(KEY, ready_spec("x86-64-v4"), PAYLOAD, by=1), MANIFEST_NAME,
    ),
    "replayed from another execution": (with_spec(execution=("other",)), MANIFEST_NAME),
    "replayed from other requirements": (with_spec(required_files=("empty",)), MANIFEST_NAME),
    "replayed from another build kind": (with_spec(build_kind="l3"), MANIFEST_NAME),
    # Whoever has the key may sign it, and still no path leaves its directory.
    **{
        f"signed, with the path {path[:20]!r}": (escaping(path), "path|reserved|manifest")
        for path in ESCAPES
    },
    "signed, with a file that is a directory too": (
        Planted.of(KEY, READY, {**PAYLOAD, "kernels": b"x"}, by=1), "both a file and a directory",
    ),
    "signed, without a file that it requires": (
        Planted.of(KEY, READY, {"empty": b""}, by=1), "required file",
    ),
}  # fmt: skip
