"""Bundles against generated payloads, damage and malice."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import tarfile
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from pypto_store import ArtifactKey, ArtifactSpec, Digest, State
from pypto_store.bundle.faults import BundleError
from pypto_store.bundle.index import parse_index
from pypto_store.bundle.packing import Packing
from pypto_store.bundle.unpacking import unpack
from pypto_store.entry import Entry
from pypto_store.evidence import EvidenceRecord, Input
from pypto_store.manifest import FileRecord, Manifest
from pypto_store.paths import path_fault

LIMIT = 10**6
SPEC = ArtifactSpec(State.GENERATED, "l2")
NAMES = st.text(st.sampled_from("ab./é\u202e'\n"), min_size=1, max_size=6)
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
PAYLOADS = st.dictionaries(
    PATHS.filter(lambda path: path_fault(path) is None), st.binary(max_size=600), max_size=4
).filter(
    lambda payload: not any(a != b and b.startswith(f"{a}/") for a in payload for b in payload)
)


def key(number):
    digest = Digest.of(b"%d" % number)
    return ArtifactKey(digest, digest, digest, digest, digest)


@contextmanager
def directory():
    place = tempfile.mkdtemp()
    try:
        yield Path(place)
    finally:
        shutil.rmtree(place)


def laid_out(top, payloads):
    """An entry of each payload, as a validated one would be."""
    entries = []
    for number, payload in enumerate(payloads):
        slot = top / str(number)
        slot.mkdir()
        records = []
        for path, data in sorted(payload.items()):
            (slot / path).parent.mkdir(parents=True, exist_ok=True)
            (slot / path).write_bytes(data)
            records.append(FileRecord(path, len(data), Digest.of(data).hex, False))
        entries.append(Entry(str(slot), Manifest(key(number), SPEC, tuple(records))))
    return entries


def written(entries, evidence=()):
    out = io.BytesIO()
    Packing(entries, evidence).write(out, lambda _: None)
    return out.getvalue()


def content(bundle):
    return zstandard.ZstdDecompressor().stream_reader(bundle).read()


def packed(data):
    compressor = zstandard.ZstdCompressor(level=1, write_checksum=True, write_content_size=False)
    made = compressor.compressobj()
    return made.compress(data) + made.flush()


def received(bundle):
    """What is read from a bundle: its index and the contents by digest."""
    with directory() as place:
        (place / "contents").mkdir()
        contents = unpack(io.BytesIO(bundle), str(place / "contents"), LIMIT, lambda _: None)
        found = {
            name: (place / "contents" / name).read_bytes()
            for name in os.listdir(place / "contents")
        }
        return contents.index, found


def refused(bundle):
    """Whether a bundle is refused; either way nothing but contents was written, and only inside."""
    with directory() as place:
        inside = place / "contents"
        inside.mkdir()
        try:
            unpack(io.BytesIO(bundle), str(inside), LIMIT, lambda _: None)
        except BundleError:
            outcome = True
        else:
            outcome = False
        assert os.listdir(place) == ["contents"]
        for file in inside.iterdir():
            assert re.fullmatch("[0-9a-f]{64}", file.name)
            assert file.is_file() and not file.is_symlink()
        return outcome


@given(st.lists(PAYLOADS, max_size=4))
def test_what_is_packed_arrives(payloads):
    with directory() as top:
        entries = laid_out(top, payloads)
        bundle = written(entries)
        assert bundle == written(entries[::-1])
        index, found = received(bundle)
    assert {manifest.key for manifest in index.entries} == {entry.key for entry in entries}
    assert {(m.key, m.files) for m in index.entries} == {(e.key, e.manifest.files) for e in entries}
    contents = {data for payload in payloads for data in payload.values()}
    assert found == {Digest.of(data).hex: data for data in contents}


@pytest.fixture(scope="module")
def sample():
    """The content of a bundle with shared contents and evidence."""
    with directory() as top:
        payloads = [{"a": b"shared", "b/c": b"x" * 700}, {"a": b"shared", "empty": b""}]
        record = EvidenceRecord.of("source", key(0).source, [Input("f", "n", "v")])
        return content(written(laid_out(top, payloads), [record]))


@given(st.data())
def test_any_other_bytes_are_refused(sample, data):
    """Whatever is changed in the tar file, it is the writer's own bytes or none."""
    changed = bytearray(sample)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(changed)))
        what = data.draw(st.sampled_from(["replace", "insert", "delete", "repeat", "cut"]))
        amount = data.draw(st.sampled_from([1, 2, 8, 100, 512, 1024, 4096]))
        if what == "replace":
            changed[at : at + 1] = data.draw(st.binary(min_size=1, max_size=2))
        elif what == "insert":
            changed[at:at] = data.draw(st.binary(min_size=1, max_size=3)) * amount
        elif what == "delete":
            del changed[at : at + amount]
        elif what == "repeat":
            changed[at:at] = changed[max(0, at - amount) : at]
        else:
            del changed[at:]
    assert refused(packed(bytes(changed))) is (bytes(changed) != sample)


@given(st.data())
def test_damaged_compression_is_refused_or_gives_the_same(sample, data):
    bundle = bytearray(packed(sample))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(bundle) - 1))
        bundle[at] = data.draw(st.integers(0, 255))
    try:
        same = content(bytes(bundle)) == sample
    except zstandard.ZstdError:
        same = False
    assert same or refused(bytes(bundle))


@given(st.binary(max_size=3000))
def test_any_bytes_are_refused(data):
    assert refused(data)
    assert refused(packed(data))


KINDS = st.sampled_from([*b"0123457SLKxgXNDVMA\0"]).map(lambda code: bytes([code]))
MEMBERS = st.builds(
    lambda name, kind, link, size, headers: (name, kind, link, size, headers),
    st.one_of(
        st.sampled_from(
            ["pypto-bundle.json", "blobs/" + "a" * 64, "../x", "/etc/x", "blobs/../../x", "."]
        ),
        PATHS,
    ),
    KINDS,
    st.sampled_from(["", "../x", "/etc/passwd", "blobs"]),
    st.integers(0, 600),
    st.dictionaries(
        st.sampled_from(["path", "linkpath", "size", "GNU.sparse.map", "GNU.sparse.name"]),
        st.sampled_from(["../x", "/x", "1", "0,1,2"]),
        max_size=2,
    ),
)


@given(st.lists(MEMBERS, min_size=1, max_size=4), st.booleans())
def test_malicious_archives_are_refused(sample, members, with_index):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, kind, link, size, headers in members:
            member = tarfile.TarInfo(name)
            member.type, member.linkname, member.size, member.pax_headers = (
                kind,
                link,
                size,
                headers,
            )
            archive.addfile(member, io.BytesIO(bytes(size)))
    # A right index in front lets the reader come as far as the members.
    start = 512 + -(-int(sample[124:135], 8) // 512) * 512 if with_index else 0
    assert refused(packed(sample[:start] + out.getvalue()))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["blobs", "entries", "records", "schema", "files", "spec", "key", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(JSON, JSON, JSON, JSON)
def test_an_index_is_canonical_or_refused(blobs, entries, records, schema):
    document = {"blobs": blobs, "entries": entries, "records": records, "schema": schema}
    data = (json.dumps(document, separators=(",", ":"), sort_keys=True) + "\n").encode()
    try:
        index = parse_index(data)
    except BundleError:
        return
    assert index.encode() == data
