"""An entry that is not signed as it should be is not used: nothing of it is asked for or written.

What is wrong with each is put at a remote by somebody who may write there, as a file and through
HTTP. The payload of every one of them is there, and would be given to whoever asks for it.
"""

from __future__ import annotations

import json
import os
import re
import sys
from base64 import b64encode
from dataclasses import replace

import pytest
from http_cache_server import HttpCacheServer
from pypto_store import ArtifactStore, RemoteConfig
from pypto_store.paths import MANIFEST_NAME, SIGNATURE_NAME
from pypto_store.remote.arrival import fetch_entry
from pypto_store.remote.blob_store import BlobDigest, CorruptBlob, RejectedEntry
from pypto_store.remote.engines import open_engine
from pypto_store.remote.entry_name import entry_name
from pypto_store.remote.messages import ActionResult
from pypto_store.remote.sending import send_entry
from pypto_store.remote.signatures import SIZE_LIMIT, Signature, encode, parse, signed_bytes
from pypto_store.remote.trust import ANYONE, TrustedKeys
from pypto_store.testing import (
    GENERATED,
    PAYLOAD,
    READY,
    payload_builder,
    ready_spec,
    sample_key,
    snapshot,
)
from signed_entries import (
    Planted,
    Recording,
    public,
    raw_signature,
    signatures_by,
    signer,
    unchecked_manifest,
)

KEY, OTHER_KEY = sample_key("one"), sample_key("two")
BY_ANOTHER = f"signed by {re.escape(public(2))}"
EVIL = b"\x7fELF of somebody else"
TAMPERED = {**PAYLOAD, "prebuilt/kernel_0.bin": EVIL}
ESCAPES = (
    "../evil", "a/../../evil", "/tmp/pypto-evil", "./evil", "a//evil", "evil/", "..", ".", "",
    "a/./evil", "a\0evil", MANIFEST_NAME, "a/" * 200 + "evil", "x" * 300,
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
        good.but(signatures=good.signatures[:-1] + b" " * SIZE_LIMIT + b"\n"), "16384",
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
        for path in ESCAPES if path != MANIFEST_NAME
    },
    "signed, with a file that is a directory too": (
        Planted.of(KEY, READY, {**PAYLOAD, "kernels": b"x"}, by=1), "both a file and a directory",
    ),
    "signed, without a file that it requires": (
        Planted.of(KEY, READY, {"empty": b""}, by=1), "required file",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def server():
    server = HttpCacheServer()
    yield server
    server.stop()


@pytest.fixture(params=["file", "http"])
def url(request, tmp_path):
    """A remote with nothing in it."""
    if request.param == "file":
        return (tmp_path / "remote").as_uri()
    server = request.getfixturevalue("server")
    server.files.clear()
    return server.url


@pytest.fixture
def engine(url):
    opened = Recording(open_engine(RemoteConfig(url)))
    yield opened
    opened.close()


@pytest.fixture
def private(tmp_path):
    """An empty directory that an entry is to be brought into, below the parent of such."""
    place = tmp_path / "private" / "incoming"
    place.mkdir(parents=True)
    return place


def touched(*places):
    """All that writing below these places would change, also when it was undone afterwards."""
    return [(os.stat(place).st_mtime_ns, snapshot(place)) for place in places]


def payload_of(entry):
    """The blobs of an entry that nobody may ask for before it is accepted."""
    files = [*entry.payload.values(), *entry.listed.values(), EVIL]
    return {BlobDigest.of(data) for data in files if data}


def fetch(engine, private, trust, key=KEY, spec=READY):
    return fetch_entry(engine, "test://remote", key, spec, str(private), trust)


def expect_rejection(engine, private, trust, reason, entry, key=KEY, spec=READY):
    places = (private, private.parent)
    before = touched(*places)
    with pytest.raises(RejectedEntry, match=reason) as rejected:
        fetch(engine, private, trust, key, spec)
    assert touched(*places) == before
    assert not engine.asked & payload_of(entry)
    assert "test://remote" in str(rejected.value)


@pytest.mark.parametrize("name", REJECTED)
def test_what_is_wrong_is_rejected_before_any_payload_is_asked_for(engine, private, name):
    entry, reason = REJECTED[name]
    entry.put(engine, KEY, READY)
    expect_rejection(engine, private, TrustedKeys([public(1)]), reason, entry)


def test_the_entry_that_the_rejected_ones_differ_from_is_used(engine, private):
    good.put(engine)
    manifest = fetch(engine, private, TrustedKeys([public(1)]))
    assert manifest is not None and manifest.encode() == good.manifest
    found = {path: (private / path).read_bytes() for path in PAYLOAD}
    assert found == PAYLOAD
    assert sorted(path for path in snapshot(private) if (private / path).is_file()) == sorted(
        PAYLOAD
    )


@pytest.mark.parametrize(
    "asked", [(OTHER_KEY, READY), (KEY, GENERATED), (KEY, ready_spec("x86-64-v4"))], ids=str
)
def test_what_was_signed_is_good_in_its_own_place_alone(engine, private, asked):
    good.put(engine, *asked)
    expect_rejection(
        engine, private, TrustedKeys([public(1)]), MANIFEST_NAME, good, asked[0], asked[1]
    )


def test_a_name_that_another_entry_has_gives_nothing_away(engine, private):
    """The whole answer of one name under another, its action and command with it."""
    other_key.put(engine)
    stored = engine.entries.get(entry_name(OTHER_KEY, READY).digest)
    engine.entries.put(entry_name(KEY, READY).digest, stored)
    expect_rejection(engine, private, TrustedKeys([public(1)]), MANIFEST_NAME, other_key)


def test_one_of_two_signatures_is_enough_while_keys_change(engine, private, tmp_path):
    both = good.but(signatures=signatures_by(good.manifest, 1, 2))
    both.put(engine)
    for number, trusted in enumerate(([1], [2], [2, 3])):
        place = tmp_path / f"for {number}"
        place.mkdir()
        assert fetch(engine, place, TrustedKeys(map(public, trusted))) is not None
    engine.asked.clear()
    expect_rejection(engine, private, TrustedKeys([public(3)]), "signed by", both)


def test_a_key_that_is_taken_away_counts_no_more(engine, private, tmp_path):
    good.put(engine)
    place = tmp_path / "before"
    place.mkdir()
    assert fetch(engine, place, TrustedKeys([public(1), public(2)])) is not None
    engine.asked.clear()
    expect_rejection(
        engine, private, TrustedKeys([public(2)]), f"signed by {re.escape(public(1))}", good
    )


def test_without_the_package_everything_is_rejected(engine, private, monkeypatch):
    good.put(engine)
    trust = TrustedKeys([public(1)])
    for name in ("exceptions", "hazmat.primitives.asymmetric.ed25519"):
        monkeypatch.setitem(sys.modules, f"cryptography.{name}", None)
    expect_rejection(engine, private, trust, r"pip install 'pypto\[signing\]'", good)


def test_signatures_that_are_gone_are_a_miss(engine, private):
    """A cache may lose any blob at any time; who signed it last may have been anybody."""
    good.put(engine)
    lost = good.but(signatures=signer(2).sign(b"never stored"))
    engine.entries.put(entry_name(KEY, READY).digest, lost.result().encode())
    before = touched(private)
    assert fetch(engine, private, TrustedKeys([public(1)])) is None
    assert touched(private) == before
    assert not engine.asked & payload_of(good)


def test_signatures_that_are_executable_or_listed_twice_are_none(engine, private):
    good.put(engine)
    result = good.result()
    (listed,) = [file for file in result.output_files if file.path == SIGNATURE_NAME]
    others = tuple(file for file in result.output_files if file.path != SIGNATURE_NAME)
    for files, reason in (
        ((*others, replace(listed, executable=True)), "is executable"),
        ((*others, listed, listed), "twice"),
    ):
        engine.entries.put(entry_name(KEY, READY).digest, ActionResult(files).encode())
        expect_rejection(engine, private, TrustedKeys([public(1)]), reason, good)


def test_signed_or_not_is_one_to_whoever_trusts_anyone(engine, tmp_path):
    for number, entry in enumerate((good, good.but(signatures=None), good.but(signatures=b"x"))):
        entry.put(engine)
        place = tmp_path / f"for {number}"
        place.mkdir()
        assert fetch(engine, place, ANYONE) is not None


def test_a_payload_that_is_not_what_was_signed_is_found_out_and_leaves_nothing(
    url, engine, private, tmp_path, request
):
    good.put(engine)
    name = BlobDigest.of(PAYLOAD["prebuilt/kernel_0.bin"]).sha256.hex
    wrong = PAYLOAD["prebuilt/kernel_0.bin"][:-1] + b"!"
    if url.startswith("file:"):
        (tmp_path / "remote" / "cas" / name[:2] / name).write_bytes(wrong)
    else:
        request.getfixturevalue("server").files[f"cas/{name}"] = wrong
    with pytest.raises(CorruptBlob):
        fetch(engine, private, TrustedKeys([public(1)]))
    assert not snapshot(private)


def publish(tmp_path, key=KEY, spec=READY):
    result = ArtifactStore(tmp_path / "root").get_or_build(
        key, spec, payload_builder(), private_parent=tmp_path / "builds"
    )
    return result.entry


def stands(engine):
    """The document of signatures that stands at the remote, if there is one."""
    result = ActionResult.decode(engine.entries.get(entry_name(KEY, READY).digest))
    for file in result.output_files:
        if file.path == SIGNATURE_NAME:
            return engine.blobs.get_many([file.digest])[file.digest]
    return None


def test_what_is_sent_is_signed_and_is_used_by_whoever_trusts_the_key(engine, private, tmp_path):
    trust = TrustedKeys([public(1)])
    sent = send_entry(engine, "test://remote", publish(tmp_path), trust, signer(1))
    assert sent.entry_sent
    assert stands(engine) == good.signatures == signer(1).sign(good.manifest)
    assert fetch(engine, private, trust) is not None


def test_what_is_sent_is_not_sent_again(engine, tmp_path):
    entry = publish(tmp_path)
    for trust in (ANYONE, TrustedKeys([public(1)])):
        send_entry(engine, "test://remote", entry, trust, signer(1))
        again = send_entry(engine, "test://remote", entry, trust, signer(1))
        assert (again.bytes_sent, again.entry_sent) == (0, False)


# What stands there before a signer comes, who replaces it.
REPLACED = {
    name: REJECTED[name][0]
    for name in (
        "unsigned", "signed by another key", "a signature with one bit turned",
        "an empty document", "a document without end", "another payload in the entry alone",
        "another payload with a manifest to match", "replayed from another key",
        "signed, with the path '../evil'",
    )
}  # fmt: skip


@pytest.mark.parametrize("trusting", [True, False], ids=["trusting keys", "trusting anyone"])
@pytest.mark.parametrize("name", REPLACED)
def test_what_readers_would_reject_is_replaced(engine, private, tmp_path, name, trusting):
    """Also by one who trusts anyone: its readers may not."""
    REPLACED[name].put(engine, KEY, READY)
    trust = TrustedKeys([public(1)]) if trusting else ANYONE
    assert send_entry(engine, "test://remote", publish(tmp_path), trust, signer(1)).entry_sent
    assert fetch(engine, private, TrustedKeys([public(1)])) is not None


def test_a_new_key_signs_again_what_the_old_one_has_signed(engine, private, tmp_path):
    """So that readers can be told to forget the old one."""
    good.put(engine)
    both = TrustedKeys([public(1), public(2)])
    assert send_entry(engine, "test://remote", publish(tmp_path), both, signer(2)).entry_sent
    assert fetch(engine, private, TrustedKeys([public(2)])) is not None


def test_what_somebody_signed_is_left_by_one_who_cannot_sign(engine, private, tmp_path):
    good.put(engine)
    assert not send_entry(engine, "test://remote", publish(tmp_path), ANYONE, None).entry_sent
    assert fetch(engine, private, TrustedKeys([public(1)])) is not None


def test_the_signed_bytes_of_an_entry_do_not_change():
    """Format, key, specification and inventory of one entry: what was signed stays signed."""
    assert signed_bytes(good.manifest) == b"pypto artifact manifest v1\0" + unchecked_manifest(
        KEY, READY, PAYLOAD
    )
    digest = "529e6545f696550f2bf7808a49bdb35a74e393f7881d1c2b30ef7480c5763206"
    assert BlobDigest.of(signed_bytes(good.manifest)).sha256.hex == digest
    made = (
        "745cb4e49b0144954c599632ec0e84288ca42373187275d1a19cd9eb067b8ac4"
        "3faf26b07d306b943ac42ddab9f5363de27738e5dddf415b7e39e65ee5b97c03"
    )
    assert own_signature.signature.hex() == made
