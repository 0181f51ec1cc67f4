"""Lists of entries at a remote: their grammar, merging, and every way in which one may lie."""

from __future__ import annotations

import json
import random

import pytest
from pypto_store.digest import Digest
from pypto_store.keys import ArtifactSpec, State
from pypto_store.manifest import FileRecord, Manifest
from pypto_store.remote import collections
from pypto_store.remote.blob_store import BlobDigest, RejectedEntry
from pypto_store.remote.collections import (
    Collection,
    CollectionError,
    Listed,
    collection_name,
    fetch_collection,
    parse_collection,
    put_collection,
    signed_bytes,
)
from pypto_store.remote.memory import MemoryRemote
from pypto_store.remote.messages import Action, ActionResult, Command, OutputFile
from pypto_store.remote.trust import ANYONE
from pypto_store.testing import GENERATED, READY, ready_spec, sample_key

URL = "memory://here"
DIGEST = Digest("ab" * 32)


class Stamp:
    """Signs with a word, and believes what is signed with it."""

    def __init__(self, word):
        self._word = word

    @property
    def own(self):
        return self

    def sign(self, manifest):
        return self._word + BlobDigest.of(manifest).sha256.hex.encode()

    def fault(self, manifest, signatures):
        return None if signatures == self.sign(manifest) else "it is not stamped"


def listed(name="one", spec=GENERATED, **fields):
    return Listed(sample_key(name), spec, **{"manifest": DIGEST, "size": 7, **fields})


def sample(*entries, name="default"):
    return Collection(name, ()).with_entries(entries or (listed(), listed(spec=READY)))


@pytest.fixture
def remote():
    return MemoryRemote()


def fetch(remote, name="default", trust=ANYONE):
    return fetch_collection(remote.open(), URL, name, trust)


# -- what a list is


def test_a_list_reads_as_it_was_written():
    entries = [
        listed(),
        listed(spec=READY, kernel="kernels:kernel"),
        listed(spec=ready_spec("x86-64")),
        listed("two", kernel="m\u00f6dule:\u6838\nx"),
    ]
    random.Random(5).shuffle(entries)
    collection = sample(*entries)
    assert len(collection.entries) == 4
    assert parse_collection(collection.encode(), "default") == collection
    assert collection.encode().isascii()
    assert parse_collection(Collection("x", ()).encode(), "x").entries == ()


def test_its_bytes_are_canonical_json():
    data = sample(listed(kernel="k"), listed(spec=READY)).encode()
    document = json.loads(data)
    assert json.dumps(document, sort_keys=True, separators=(",", ":")).encode() + b"\n" == data
    assert document["schema"] == 1
    assert [entry["kernel"] for entry in document["entries"]] == ["k", None]
    assert document["entries"][0]["spec"] == {
        "build_kind": GENERATED.build_kind,
        "cpu_level": None,
        "execution": list(GENERATED.execution),
        "required_files": list(GENERATED.required_files),
        "state": "generated",
    }


def test_an_entry_is_listed_from_its_manifest():
    file = FileRecord("kernel_config.json", 5, "1f" * 32, False)
    manifest = Manifest(sample_key(), ArtifactSpec(State.GENERATED, "program"), (file,))
    entry = Listed.of(manifest, "kernels:kernel")
    assert entry.manifest == BlobDigest.of(manifest.encode()).sha256
    assert (entry.size, entry.kernel) == (5, "kernels:kernel")
    for kernel in ("k" * 513, "\ud800"):
        assert Listed.of(manifest, kernel).kernel == ""


def test_later_entries_take_the_places_of_earlier_ones():
    older, newer = listed(size=1), listed(size=2)
    collection = sample(older, listed("two")).with_entries([newer, listed("three")])
    assert len(collection.entries) == 3
    assert newer in collection.entries and older not in collection.entries
    # Two specifications of one state and level have one name at a remote, so one is listed.
    other = ArtifactSpec(State.GENERATED, "other")
    assert len(sample(older).with_entries([listed(spec=other)]).entries) == 1
    levels = [listed(spec=READY), listed(spec=ready_spec("x86-64"))]
    assert len(sample(older).with_entries(levels).entries) == 3


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "a b", "a\n", "x" * 65, "\u00e4"])
def test_a_name_is_a_plain_word(name):
    with pytest.raises(CollectionError, match="is no name of a collection"):
        Collection(name, ())
    with pytest.raises(CollectionError, match="is no name of a collection"):
        collection_name(name)


def test_the_name_at_a_remote_is_that_of_an_action():
    name = collection_name("nightly")
    assert Command.decode(name.command).arguments == ("pypto-collection", "v1", "nightly")
    assert Action.decode(name.action).command == BlobDigest.of(name.command)
    assert BlobDigest.of(name.action) == name.digest
    assert collection_name("other").digest != name.digest


def test_what_it_would_be_too_large_for_is_said(monkeypatch):
    monkeypatch.setattr(collections, "SIZE_LIMIT", 300)
    with pytest.raises(CollectionError, match="list further entries under another name"):
        sample().encode()
    with pytest.raises(CollectionError, match="more than 300 bytes"):
        parse_collection(bytes(301), "default")


# -- what is none


def changed(change):
    document = json.loads(sample().encode())
    change(document)
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def entry_with(**fields):
    return lambda document: document["entries"][0].update(fields)


def spec_with(**fields):
    return lambda document: document["entries"][0]["spec"].update(fields)


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.update(schema=2),
        lambda document: document.update(schema=True),
        lambda document: document.update(schema=1.0),
        lambda document: document.update(name="other"),
        lambda document: document.update(name=None),
        lambda document: document.update(entries={}),
        lambda document: document.update(entries=None),
        lambda document: document.update(further=1),
        lambda document: document.pop("name"),
        lambda document: document["entries"].reverse(),
        lambda document: document["entries"].append(document["entries"][1]),
        lambda document: document["entries"].append(None),
        lambda document: document["entries"][0].pop("kernel"),
        lambda document: document["entries"][0]["components"].pop("format"),
        lambda document: document["entries"][0]["components"].update(other="ab" * 32),
        lambda document: document["entries"][0]["components"].update(source="AB" * 32),
        entry_with(further=1),
        entry_with(kernel=""),
        entry_with(kernel=1),
        entry_with(kernel="k" * 513),
        entry_with(manifest="ab"),
        entry_with(manifest=None),
        entry_with(manifest=["ab" * 32]),
        entry_with(size=-1),
        entry_with(size=True),
        entry_with(size=1.0),
        entry_with(size=1 << 62),
        entry_with(spec=None),
        entry_with(spec=[]),
        entry_with(spec={}),
        entry_with(components=None),
        spec_with(state="other"),
        spec_with(cpu_level="x86-64"),
        spec_with(required_files=["../x"]),
        spec_with(required_files=["b", "a"]),
        spec_with(build_kind=""),
        spec_with(further=1),
    ],
)
def test_what_says_something_else_is_refused(change):
    with pytest.raises(CollectionError):
        parse_collection(changed(change), "default")
    assert parse_collection(changed(lambda _: None), "default") == sample()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"null",
        b"\xff",
        b"[" * 100_000,
        sample().encode()[:-1],
        sample().encode() + b"\n",
        b" " + sample().encode(),
        sample().encode().replace(b'"size":7', b'"size":7,"size":7', 1),
        sample().encode().replace(b'"size":7', b'"size": 7', 1),
        sample().encode().replace(b'"size":7', b'"size":07', 1),
        sample().encode().replace(b'"kernel":null', b'"kernel":"\\ud800"', 1),
        sample().encode().replace(b'"size":7', b'"size":NaN', 1),
    ],
)
def test_another_spelling_is_refused(data):
    with pytest.raises(CollectionError):
        parse_collection(data, "default")


def test_no_flipped_byte_makes_something_else_of_it():
    data = sample(listed(kernel="k"), listed("two")).encode()
    random_ = random.Random(7)
    for _ in range(300):
        place = random_.randrange(len(data))
        flipped = bytearray(data)
        flipped[place] ^= 1 << random_.randrange(8)
        try:
            found = parse_collection(bytes(flipped), "default")
        except CollectionError:
            continue
        assert found.encode() == flipped  # another digest, size or kernel, and nothing hidden


# -- at a remote


def test_a_list_is_put_and_found(remote):
    assert fetch(remote) is None
    sent = put_collection(remote.open(), sample(), None)
    found = fetch(remote)
    assert (found.collection, found.signed) == (sample(), False)
    assert sent > len(sample().encode())
    assert put_collection(remote.open(), sample(), None) < 300  # the entry alone
    assert fetch(remote, "other") is None


def test_a_large_list_goes_in_one_piece_too(remote, monkeypatch):
    monkeypatch.setattr(collections, "SMALL_BLOB", 100)
    put_collection(remote.open(), sample(), None)
    assert fetch(remote).collection == sample()


def test_a_list_of_which_a_part_is_gone_is_none(remote):
    put_collection(remote.open(), sample(), Stamp(b"a"))
    held = dict(remote.held)
    for digest, data in held.items():
        if data in (sample().encode(), Stamp(b"a").sign(signed_bytes(sample().encode()))):
            remote.held = {other: held[other] for other in held if other != digest}
            assert fetch(remote) is None


def test_a_signature_is_for_this_list_and_for_no_manifest(remote):
    stamp = Stamp(b"a")
    put_collection(remote.open(), sample(), stamp)
    found = fetch(remote, trust=stamp)
    assert (found.collection, found.signed) == (sample(), True)
    with pytest.raises(RejectedEntry, match="'default': it is not stamped"):
        fetch(remote, trust=Stamp(b"b"))
    put_collection(remote.open(), sample(), None)
    with pytest.raises(RejectedEntry, match="not stamped"):
        fetch(remote, trust=stamp)
    assert signed_bytes(b"x") != b"x"


def test_a_signed_list_is_none_under_another_name(remote):
    stamp = Stamp(b"a")
    put_collection(remote.open(), sample(name="mine"), stamp)
    mine, yours = collection_name("mine").digest, collection_name("yours").digest
    remote.entries[yours] = remote.entries[mine]
    with pytest.raises(RejectedEntry, match="it is the list 'mine'"):
        fetch(remote, "yours", stamp)


def file(path, data=b"{}", size=None):
    digest = BlobDigest.of(data)
    return OutputFile(path, digest if size is None else BlobDigest(digest.sha256, size))


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (b"", "does not have collection.json"),
        (b"\xff\xff", "no ActionResult"),
        (ActionResult((file("other.json"),)).encode(), "does not have"),
        (
            ActionResult((file("collection.json"), file("../x"))).encode(),
            "nothing but its signatures",
        ),
        (ActionResult((file("collection.json"),) * 2).encode(), "nothing but its signatures"),
        (ActionResult((file("collection.json.sig"),)).encode(), "does not have"),
        (ActionResult((file("collection.json", size=1 << 40),)).encode(), "is the limit"),
        (
            ActionResult(
                (file("collection.json"), file("collection.json.sig", size=17 * 1024))
            ).encode(),
            "is the limit",
        ),
        (ActionResult((file("collection.json"),)).encode(), "fields of a collection"),
        (ActionResult((file("collection.json", b""),)).encode(), "not JSON"),
    ],
)
def test_a_hostile_entry_is_refused_before_more_is_read(remote, entry, reason):
    for data in (b"{}", b""):
        remote.held[BlobDigest.of(data)] = data
    remote.entries[collection_name("default").digest] = entry
    with pytest.raises(RejectedEntry, match=reason) as refused:
        fetch(remote)
    assert "get collection 'default'" in str(refused.value)
