"""Records of readable inputs: what is kept, within which bounds, and what is refused."""

from __future__ import annotations

import json
import os

import pytest
from pypto_store import ArtifactStore, Digest, Hit
from pypto_store.evidence import (
    INPUT_LIMIT,
    SIZE_LIMIT,
    VALUE_LIMIT,
    EvidenceError,
    EvidenceRecord,
    Input,
    keep,
    load,
    parse,
)
from pypto_store.layout import Layout
from pypto_store.testing import GENERATED, payload_builder, sample_key, snapshot

DIGEST = Digest.of(b"component")
RECORD = EvidenceRecord.of(
    "source",
    DIGEST,
    [Input("kernels:f", "text", "def f():\n    pass"), Input("kernels:f", "global X", "1")],
    "kernels:f",
)


def test_a_record_reads_back_as_it_was():
    assert parse(RECORD.encode(), DIGEST) == RECORD
    odd = EvidenceRecord.of("environment", DIGEST, [Input("\udcff", "\0", "\U0001f600\x1b[31m")])
    assert parse(odd.encode(), DIGEST) == odd


def test_equal_names_are_told_apart():
    inputs = [Input("f", "text", "1"), Input("f", "text", "2"), Input("g", "text", "3")]
    record = EvidenceRecord.of("source", DIGEST, inputs)
    assert [item.name for item in record.inputs] == ["text", "text (2)", "text"]


def test_long_values_still_differ_and_records_are_bounded():
    long = "\U0001f600" * (VALUE_LIMIT + 10)
    one, two = (
        EvidenceRecord.of("source", DIGEST, [Input("f", "text", long + end)]) for end in "ab"
    )
    assert one != two
    assert len(one.inputs[0].value) <= VALUE_LIMIT
    many = [Input(f"f{n}", "text", long) for n in range(3)]
    assert len(EvidenceRecord.of("source", DIGEST, many).encode()) < SIZE_LIMIT
    crowd = [Input("f", f"global {n}", str(n)) for n in range(INPUT_LIMIT + 50)]
    record = EvidenceRecord.of("source", DIGEST, crowd)
    assert len(record.inputs) == INPUT_LIMIT
    crowd[-1] = Input("f", "global last", "another")
    assert record.inputs[-1] != EvidenceRecord.of("source", DIGEST, crowd).inputs[-1]
    assert parse(record.encode(), DIGEST) == record


def spoilt():
    document = json.loads(RECORD.encode())

    def canonical(changed):
        return json.dumps(changed, sort_keys=True, separators=(",", ":")).encode() + b"\n"

    yield b""
    yield b"\xff"
    yield b"[" * 100_000
    yield RECORD.encode() + b" "
    yield canonical([])
    yield canonical({**document, "schema": 2})
    yield canonical({**document, "schema": True})
    yield canonical({**document, "digest": "0" * 64})
    yield canonical({**document, "more": 1})
    yield canonical({**document, "subject": None})
    yield canonical({**document, "inputs": {}})
    yield canonical({**document, "inputs": [*document["inputs"], document["inputs"][0]]})
    yield canonical({**document, "inputs": [{"name": "a", "of": "b"}]})
    yield canonical({**document, "inputs": [{"name": 1, "of": "b", "value": "c"}]})
    yield json.dumps(document).encode()


@pytest.mark.parametrize("data", list(spoilt()), ids=lambda data: f"{len(data)} bytes")
def test_anything_else_is_refused(data):
    with pytest.raises(EvidenceError):
        parse(data, DIGEST)


def test_kept_once_and_whole(tmp_path):
    layout = Layout(str(tmp_path))
    assert load(layout, DIGEST) is None
    keep(layout, [RECORD])
    assert load(layout, DIGEST) == RECORD
    before = snapshot(tmp_path)
    keep(layout, [RECORD])
    assert snapshot(tmp_path) == before
    assert os.listdir(layout.evidence) == [f"{DIGEST}.json"]
    assert os.stat(layout.evidence_of(DIGEST)).st_mode & 0o777 == 0o600


def test_a_group_that_shares_the_root_may_read_it(tmp_path):
    os.chmod(tmp_path, 0o2770)
    layout = Layout(str(tmp_path))
    keep(layout, [RECORD])
    assert os.stat(layout.evidence).st_mode & 0o7777 == 0o2770
    assert os.stat(layout.evidence_of(DIGEST)).st_mode & 0o777 == 0o640


def test_a_failure_leaves_nothing(tmp_path, monkeypatch):
    layout = Layout(str(tmp_path))

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", refuse)
    with pytest.raises(OSError, match="No space"):
        keep(layout, [RECORD])
    assert os.listdir(layout.evidence) == []


def test_what_is_no_file_is_damage(tmp_path):
    layout = Layout(str(tmp_path))
    keep(layout, [RECORD])
    place = layout.evidence_of(DIGEST)
    os.rename(place, tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", place)  # good bytes, and still not ours to follow
    with pytest.raises(EvidenceError, match="regular file"):
        load(layout, DIGEST)
    os.unlink(place)
    os.mkfifo(place)
    with pytest.raises(EvidenceError):
        load(layout, DIGEST)


def test_a_store_keeps_it_beside_entries_and_never_reads_it(tmp_path):
    root = tmp_path / "root"
    store = ArtifactStore(root)
    key = sample_key()
    store.get_or_build(key, GENERATED, payload_builder(), private_parent=tmp_path / "p")
    store.keep_evidence([EvidenceRecord.of("source", key.source, [Input("f", "text", "x")])])
    path = root / "evidence" / f"{key.source}.json"
    assert path.is_file()
    path.write_bytes(b"damage")
    assert isinstance(ArtifactStore(root).lookup(key, GENERATED), Hit)


def test_a_read_only_store_keeps_none(tmp_path):
    store = ArtifactStore(tmp_path / "root", readonly=True)
    store.keep_evidence([RECORD])
    assert not (tmp_path / "root").exists()
