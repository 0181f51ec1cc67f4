"""`push` and `pull` where something is damaged, gone, hostile or taken."""

from __future__ import annotations

import os

import pytest
from carried_entries import KEY, TWO, blob, entry_file, fates
from pypto_store import ArtifactStore, Hit, iterate_entries
from pypto_store.remote.blob_store import CorruptBlob, RemoteProtocolError, RemoteUnavailable
from pypto_store.remote.collections import (
    Collection,
    Listed,
    collection_name,
    put_collection,
)
from pypto_store.remote.engines import open_engine
from pypto_store.remote.entry_name import entry_name
from pypto_store.remote_config import RemoteConfig
from pypto_store.testing import GENERATED, PAYLOAD, READY, payload_builder, sample_key, snapshot
from pypto_store.tools import pull, pushing

# -- damage on this side


def test_damaged_entries_are_not_sent(root, url, place, command):
    rows = list(iterate_entries(root))
    manifest, payload = (next(row for row in rows if row.key == key) for key in (KEY, TWO))
    with open(f"{manifest.path}/artifact_manifest.json", "ab") as file:
        file.write(b" ")
    name = next(iter(PAYLOAD))
    os.chmod(f"{payload.path}/{name}", 0o644)
    os.unlink(f"{payload.path}/{name}")
    done = command("push", "--root", root, "--remote", url)
    assert done.status == 1
    assert done.document["counts"] == {"sent": 2, "present": 0, "damaged": 2, "failed": 0}
    reasons = [entry["reason"] for entry in done.document["entries"] if entry["fate"] == "damaged"]
    assert all(reasons)
    assert done.document["collection"]["entries"] == 2
    gone = entry_name(sample_key("two", "elsewhere"), GENERATED).digest.sha256.hex
    assert not entry_file(place, gone).exists()


def test_nothing_valid_makes_no_list(root, url, place, command):
    for row in iterate_entries(root):
        with open(f"{row.path}/artifact_manifest.json", "ab") as file:
            file.write(b" ")
    done = command("push", "--root", root, "--remote", url)
    assert (done.status, done.document["collection"]) == (1, None)
    assert not (place / "ac").exists()


def test_a_slot_that_is_taken_keeps_what_it_has(root, url, command, tmp_path):
    command("push", "--root", root, "--remote", url)
    there = tmp_path / "there"
    other = {**PAYLOAD, "kernel_config.json": b"{}"}
    ArtifactStore(there).get_or_build(
        sample_key("one"), READY, payload_builder(other), private_parent=tmp_path / "p"
    )
    ArtifactStore(there).get_or_build(
        sample_key("one"), GENERATED, payload_builder(), private_parent=tmp_path / "p"
    )
    (row,) = [row for row in iterate_entries(there) if row.state.value == "generated"]
    with open(f"{row.path}/artifact_manifest.json", "ab") as file:
        file.write(b" ")
    before = snapshot(there)
    done = command("pull", "--root", there, "--remote", url)
    assert done.status == 1
    found = fates(done)
    assert found[KEY, "ready", READY.cpu_level] == "other"
    assert found[KEY, "generated", None] == "damaged"
    assert list(found.values()).count("pulled") == 2
    after = snapshot(there)
    assert {path: after[path] for path in before if path.startswith("artifacts")} == {
        path: state for path, state in before.items() if path.startswith("artifacts")
    }


# -- trouble on the other side


def test_what_the_remote_forgot_is_missing_and_no_failure(root, url, place, command, tmp_path):
    command("push", "--root", root, "--remote", url)
    os.unlink(entry_file(place, entry_name(sample_key("one"), READY).digest.sha256.hex))
    done = command("pull", "--root", tmp_path / "there", "--remote", url)
    assert done.status == 0
    assert fates(done)[KEY, "ready", READY.cpu_level] == "missing"
    assert done.document["counts"]["pulled"] == 3
    again = command("push", "--root", root, "--remote", url)
    assert again.document["counts"] == {"sent": 1, "present": 3, "damaged": 0, "failed": 0}


def test_what_is_not_that_entry_is_rejected(root, url, place, command, tmp_path):
    command("push", "--root", root, "--remote", url)
    mine = entry_name(sample_key("one"), READY).digest.sha256.hex
    yours = entry_name(sample_key("two", "elsewhere"), GENERATED).digest.sha256.hex
    path = entry_file(place, mine)
    path.chmod(0o644)
    path.write_bytes(entry_file(place, yours).read_bytes())
    there = tmp_path / "there"
    done = command("pull", "--root", there, "--remote", url)
    assert done.status == 1
    assert fates(done)[KEY, "ready", READY.cpu_level] == "rejected"
    assert done.document["counts"]["pulled"] == 3
    assert isinstance(ArtifactStore(there).lookup(sample_key("one"), GENERATED), Hit)
    assert not isinstance(ArtifactStore(there).lookup(sample_key("one"), READY), Hit)
    # A push finds that it is none, and puts it right.
    assert command("push", "--root", root, "--remote", url).document["counts"]["sent"] == 1
    assert command("pull", "--root", there, "--remote", url).document["counts"]["pulled"] == 1


def test_a_changed_blob_reaches_no_store(root, url, place, command, tmp_path):
    command("push", "--root", root, "--remote", url)
    row = next(row for row in iterate_entries(root) if row.key == TWO)
    record = max(row.manifest.files, key=lambda record: record.size)
    path = blob(place, record.sha256)
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)
    there = tmp_path / "there"
    done = command("pull", "--root", there, "--remote", url)
    assert done.status == 1 and done.document["counts"]["rejected"] == 4
    assert not list(iterate_entries(there))


@pytest.mark.parametrize("entry", [b"\xff", b""])
def test_a_hostile_list_is_no_list(root, url, place, command, tmp_path, entry):
    command("push", "--root", root, "--remote", url)
    path = entry_file(place, collection_name("default").digest.sha256.hex)
    path.chmod(0o644)
    path.write_bytes(entry)
    done = command("pull", "--root", tmp_path / "there", "--remote", url)
    assert (done.status, done.out) == (2, "")
    assert "collection 'default'" in done.err and "Traceback" not in done.err
    assert not (tmp_path / "there" / "artifacts").exists()
    replaced = command("push", "--root", root, "--remote", url).document["collection"]
    assert replaced["entries"] == 4 and replaced["replaced"]
    assert command("pull", "--root", tmp_path / "there", "--remote", url).status == 0


def test_a_list_that_promises_what_is_not_there_is_only_a_list(root, url, command, tmp_path):
    command("push", "--root", root, "--remote", url)
    lies = [
        Listed(sample_key(f"no{n}"), GENERATED, sample_key().digest, 1, "\x1b[31mk")
        for n in range(5)
    ]
    engine = open_engine(RemoteConfig(url))
    put_collection(engine, Collection("lies", ()).with_entries(lies), None)
    done = command("pull", "--root", tmp_path / "there", "--remote", url, "--as", "lies")
    assert (done.status, done.document["counts"]["missing"]) == (0, 5)


class _Failing:
    """`send_entry` or `fetch_entry` that does what it is told from the second call on."""

    def __init__(self, real, error):
        self._real, self._error, self.calls = real, error, 0

    def __call__(self, *arguments):
        self.calls += 1
        if self.calls > 1:
            raise self._error
        return self._real(*arguments)


def fault(kind):
    return kind(url="file:///x", operation="put", reason="it rained", remedy="wait")


def test_a_push_stops_where_the_remote_has_gone_and_goes_on_later(
    root, url, place, command, tmp_path, monkeypatch
):
    monkeypatch.setattr(pushing, "LANES", 1)
    with monkeypatch.context() as patch:
        failing = _Failing(pushing.send_entry, fault(RemoteUnavailable))
        patch.setattr(pushing, "send_entry", failing)
        done = command("push", "--root", root, "--remote", url)
    assert (done.status, failing.calls) == (1, 2)
    assert done.err.startswith("error: file:///x: put: it rained; wait; 1 of 4 entries are done")
    assert done.document["left"] == 3 and done.document["collection"] is None
    assert done.document["counts"]["sent"] == 1
    again = command("push", "--root", root, "--remote", url).document
    assert (again["counts"]["sent"], again["counts"]["present"]) == (3, 1)
    assert again["collection"]["entries"] == 4


def test_a_pull_stops_where_the_remote_has_gone_and_goes_on_later(
    root, url, command, tmp_path, monkeypatch
):
    command("push", "--root", root, "--remote", url)
    monkeypatch.setattr(pull, "LANES", 1)
    there, bundle = tmp_path / "there", tmp_path / "b"
    for error in (fault(RemoteUnavailable), OSError(28, "No space left on device")):
        for words in (("--root", there), ("--bundle", bundle)):
            with monkeypatch.context() as patch:
                failing = _Failing(pull.fetch_entry, error)
                patch.setattr(pull, "fetch_entry", failing)
                done = command("pull", *words, "--remote", url)
            assert failing.calls == 2, words
            assert "run it again" in done.err, words
            assert done.status == (1 if words[0] == "--root" else 2)
    assert not bundle.exists()
    again = command("pull", "--root", there, "--remote", url).document
    assert again["counts"]["pulled"] + again["counts"]["present"] == 4
    assert again["counts"]["present"] >= 1


def test_one_entry_that_the_remote_cannot_take_is_no_reason_to_stop(
    root, url, command, monkeypatch
):
    monkeypatch.setattr(pushing, "LANES", 1)
    for kind in (RemoteProtocolError, CorruptBlob):
        with monkeypatch.context() as patch:
            patch.setattr(pushing, "send_entry", _Failing(pushing.send_entry, fault(kind)))
            done = command("push", "--root", root, "--remote", url)
        assert done.status == 1
        assert done.document["counts"]["failed"] == 3 and done.document["stopped"] is None
        assert done.document["collection"]["entries"] == 1


def test_a_remote_that_cannot_be_written_is_refused(root, command, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    done = command("push", "--root", root, "--remote", f"file://{tmp_path}/file")
    assert done.status in (1, 2) and str(tmp_path / "file") in done.err
    done = command("push", "--remote", "file:///x")
    assert done.status == 2 and "no store is named" in done.err


def test_what_the_store_cannot_take_has_failed_and_leaves_nothing(
    root, url, command, tmp_path, monkeypatch
):
    command("push", "--root", root, "--remote", url)
    left = []

    def refuse(layout, key, spec, build, **_):
        left.append(build)
        raise OSError(5, "Input/output error")

    kept = []
    monkeypatch.setattr("pypto_store.building.publish", refuse)
    monkeypatch.setattr(
        "pypto_store.tools.bundle_input.remove_tree",
        lambda directory: kept.extend(path for path in left if os.path.exists(path)),
    )
    done = command("pull", "--root", tmp_path / "there", "--remote", url, "--scratch", tmp_path)
    assert done.status == 1
    assert done.document["counts"]["failed"] == 4
    assert all("Input/output" in entry["reason"] for entry in done.document["entries"])
    assert len(left) == 4 and not kept  # one does not have to make room for all at once
