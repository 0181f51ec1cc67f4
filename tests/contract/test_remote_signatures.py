"""An entry that is not signed as it should be is not used: nothing of it is asked for or written.

What is wrong with each is put at a remote by somebody who may write there, as a file and through
HTTP. The payload of every one of them is there, and would be given to whoever asks for it.
"""

from __future__ import annotations

import os
import re
import sys
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
from pypto_store.remote.signatures import signed_bytes
from pypto_store.remote.trust import ANYONE, TrustedKeys
from pypto_store.testing import (
    GENERATED,
    PAYLOAD,
    READY,
    payload_builder,
    ready_spec,
    snapshot,
)
from rejected_entries import (
    EVIL,
    KEY,
    OTHER_KEY,
    REJECTED,
    good,
    other_key,
    own_signature,
)
from signed_entries import (
    Recording,
    public,
    signatures_by,
    signer,
    unchecked_manifest,
)


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
