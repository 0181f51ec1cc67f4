"""`push` and `pull`: what they move, what they leave alone, and what they say of it."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from pypto_store import ArtifactStore, Hit, iterate_entries
from pypto_store.evidence import EvidenceRecord, Input
from pypto_store.layout import Layout
from pypto_store.locks import acquire
from pypto_store.remote.blob_store import CorruptBlob, RemoteProtocolError, RemoteUnavailable
from pypto_store.remote.collections import (
    Collection,
    Listed,
    collection_name,
    fetch_collection,
    put_collection,
)
from pypto_store.remote.engines import open_engine
from pypto_store.remote.entry_name import entry_name
from pypto_store.remote.trust import ANYONE, signer_of
from pypto_store.remote_config import RemoteConfig
from pypto_store.testing import GENERATED, PAYLOAD, READY, payload_builder, sample_key, snapshot
from pypto_store.tools import pull, pushing

KEY = sample_key("one").digest.hex
TWO = sample_key("two", "elsewhere").digest.hex


@pytest.fixture
def place(tmp_path):
    """The directory of a remote that is one."""
    return tmp_path / "remote"


@pytest.fixture
def url(place):
    return f"file://{place}"


def entries(root):
    """Modes and bytes of all entries; inodes and the rest of the root are its own."""
    return {
        path: (mode, data)
        for path, (mode, _, data) in snapshot(root).items()
        if path.startswith("artifacts")
    }


def fates(done):
    return {(entry["key"], entry["state"], entry["cpu_level"]): entry["fate"]
        for entry in done.document["entries"]}  # fmt: skip


def blob(place, sha256):
    return place / "cas" / sha256[:2] / sha256


def entry_file(place, name):
    return place / "ac" / name[:2] / name


# -- there and back


def test_a_pushed_root_is_pulled_elsewhere_byte_for_byte(root, url, command, tmp_path):
    pushed = command("push", "--root", root, "--remote", url)
    assert (pushed.status, pushed.err) == (0, "")
    assert pushed.document["counts"] == {"sent": 4, "present": 0, "damaged": 0, "failed": 0}
    assert pushed.document["remote"] == url
    assert pushed.document["collection"] == {
        "name": "default", "entries": 4, "added": 4, "signed": False, "replaced": None,
    }  # fmt: skip
    there = tmp_path / "there"
    pulled = command("pull", "--root", there, "--remote", url)
    assert (pulled.status, pulled.err) == (0, "")
    assert pulled.document["counts"]["pulled"] == 4
    assert entries(there) == entries(root)
    store = ArtifactStore(there, readonly=True)
    assert isinstance(store.lookup(sample_key("one"), READY), Hit)
    assert not [path for path in snapshot(there) if ".tmp." in path]


def test_what_is_there_is_not_moved_again(root, url, command, tmp_path):
    there = tmp_path / "there"
    for words in (("push", "--root", root), ("pull", "--root", there)):
        command(*words, "--remote", url)
    before = snapshot(tmp_path / "remote"), snapshot(there)
    pushed = command("push", "--root", root, "--remote", url).document
    assert pushed["counts"]["present"] == 4
    assert (pushed["bytes_sent"], pushed["collection"]["added"]) == (0, 0)
    pulled = command("pull", "--root", there, "--remote", url).document
    assert pulled["counts"]["present"] == 4
    assert (snapshot(tmp_path / "remote"), snapshot(there)) == before


def test_pushing_reads_and_writes_nothing_below_the_root(root, url, command):
    before = snapshot(root)
    manifests = [os.path.join(row.path, "artifact_manifest.json") for row in iterate_entries(root)]
    for path in manifests:
        os.utime(path, (5, 10))
    assert command("push", "--root", root, "--remote", url).status == 0
    assert {os.stat(path).st_atime for path in manifests} == {5}  # no use of them
    assert snapshot(root) == before


def test_keys_choose_what_goes_and_what_comes(root, url, command, tmp_path):
    pushed = command("push", "--root", root, "--remote", url, KEY[:6])
    assert {key for key, _, _ in fates(pushed)} == {KEY} and len(fates(pushed)) == 3
    command("push", "--root", root, "--remote", url)
    pulled = command("pull", "--root", tmp_path / "there", "--remote", url, TWO[:9])
    assert fates(pulled) == {(TWO, "generated", None): "pulled"}
    for name in ("push", "pull"):
        absent = command(name, "--root", root, "--remote", url, "0123456789abcdef")
        assert (absent.status, absent.out) == (1, "")
        assert "0123456789abcdef" in absent.err
        both = command(name, "--root", root, "--remote", url, KEY[:6], "--kernel", "k")
        assert both.status == 2 and "not by both" in both.err


def test_kernels_are_found_by_their_names_on_the_list(root, url, command, writing, tmp_path):
    with writing(root) as store:
        source = sample_key("one").source
        inputs = (Input("function kernels:add", "text", "..."),)
        store.keep_evidence([EvidenceRecord.of("source", source, inputs, "kernels:add")])
    pushed = command("push", "--root", root, "--remote", url, "--kernel", "add")
    assert {key for key, _, _ in fates(pushed)} == {KEY}
    assert {entry["kernel"] for entry in pushed.document["entries"]} == {"kernels:add"}
    command("push", "--root", root, "--remote", url)
    pulled = command(
        "pull", "--root", tmp_path / "there", "--remote", url, "--kernel", "kernels:add"
    )
    assert {key for key, _, _ in fates(pulled)} == {KEY}
    for name in ("push", "pull"):
        done = command(name, "--root", root, "--remote", url, "--kernel", "other")
        assert (done.status, done.out) == (1, "") and "'other'" in done.err


def test_lists_have_names_and_grow(root, url, command, tmp_path):
    command("push", "--root", root, "--remote", url, "--as", "nightly", KEY[:6])
    grown = command("push", "--root", root, "--remote", url, "--as", "nightly", TWO[:6])
    assert grown.document["collection"]["entries"] == 4
    assert grown.document["collection"]["added"] == 1
    there = tmp_path / "there"
    none = command("pull", "--root", there, "--remote", url)
    assert (none.status, none.out) == (1, "")
    assert "no collection 'default'" in none.err and "--as" in none.err
    assert not (there / "artifacts").exists()
    pulled = command("pull", "--root", there, "--remote", url, "--as", "nightly")
    assert pulled.document["counts"]["pulled"] == 4
    for name in ("push", "pull"):
        done = command(name, "--root", root, "--remote", url, "--as", "a/b")
        assert done.status == 2 and "no name of a collection" in done.err


# -- bundles


def test_a_bundle_is_pushed_without_a_root(root, url, command, tmp_path):
    bundle = tmp_path / "b.tar.zst"
    command("export", "--root", root, "--all", "-o", bundle)
    environ = {"PYPTO_CACHE_DIR": str(tmp_path / "untouched"), "TMPDIR": str(tmp_path / "tmp")}
    (tmp_path / "tmp").mkdir()
    pushed = command("push", "--bundle", bundle, "--remote", url, environ=environ)
    assert (pushed.status, pushed.err) == (0, "")
    assert pushed.document["counts"]["sent"] == 4
    assert pushed.document["bundle"] == str(bundle)
    assert "root" not in pushed.document
    assert not (tmp_path / "untouched").exists()
    assert not list((tmp_path / "tmp").iterdir())
    command("pull", "--root", tmp_path / "there", "--remote", url)
    assert entries(tmp_path / "there") == entries(root)
    one = command(
        "push", "--bundle", bundle, "--remote", url, "--as", "x", KEY[:6], environ=environ
    )
    assert len(one.document["entries"]) == 3


def test_a_bundle_that_tells_kernels_is_chosen_from(root, url, command, writing, tmp_path):
    with writing(root) as store:
        source = sample_key("one").source
        inputs = (Input("function kernels:add", "text", "..."),)
        store.keep_evidence([EvidenceRecord.of("source", source, inputs, "kernels:add")])
    bundle = tmp_path / "b.tar.zst"
    command("export", "--root", root, "--all", "--with-evidence", "-o", bundle)
    pushed = command("push", "--bundle", bundle, "--remote", url, "--kernel", "add")
    assert {entry["kernel"] for entry in pushed.document["entries"]} == {"kernels:add"}
    other = command("push", "--bundle", bundle, "--remote", url, "--kernel", "other")
    assert other.status == 1 and "'other'" in other.err


def test_a_damaged_bundle_sends_nothing(root, url, place, command, tmp_path):
    bundle = tmp_path / "b.tar.zst"
    command("export", "--root", root, "--all", "-o", bundle)
    bundle.write_bytes(bundle.read_bytes()[:-9])
    done = command("push", "--bundle", bundle, "--remote", url)
    assert (done.status, done.out) == (2, "")
    assert str(bundle) in done.err
    assert not place.exists()


def test_a_list_is_pulled_into_a_bundle_without_a_root(root, url, command, tmp_path):
    command("push", "--root", root, "--remote", url)
    bundle, exported = tmp_path / "b.tar.zst", tmp_path / "e.tar.zst"
    environ = {"TMPDIR": str(tmp_path / "tmp")}
    (tmp_path / "tmp").mkdir()
    done = command("pull", "--bundle", bundle, "--remote", url, environ=environ)
    assert (done.status, done.err) == (0, "")
    assert done.document["bundle"] == str(bundle)
    assert done.document["bundle_size"] == bundle.stat().st_size
    assert not list((tmp_path / "tmp").iterdir())
    command("export", "--root", root, "--all", "-o", exported)
    assert bundle.read_bytes() == exported.read_bytes()
    with pytest.raises(SystemExit) as both:
        command("pull", "--bundle", bundle, "--root", root)
    assert both.value.code == 2


def test_no_bundle_is_written_where_nothing_arrives(root, url, place, command, tmp_path):
    command("push", "--root", root, "--remote", url, TWO[:6])
    os.unlink(
        entry_file(place, entry_name(sample_key("two", "elsewhere"), GENERATED).digest.sha256.hex)
    )
    done = command("pull", "--bundle", tmp_path / "b", "--remote", url)
    assert (done.status, done.out) == (1, "") and "no bundle" in done.err
    assert not (tmp_path / "b").exists()


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
    with pytest.raises(SystemExit) as closed:
        command("push", "--remote", "file:///x")
    assert closed.value.code == 2


# -- this side refuses


@pytest.mark.parametrize("name", ["push", "pull"])
def test_a_remote_has_to_be_named(command, name):
    done = command(name, "--root", "/absent")
    assert (done.status, done.out) == (2, "")
    assert "--remote URL" in done.err and "PYPTO_CACHE_REMOTE" in done.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--remote", "ftp://user:secret@host"], "--remote must start with"),
        (["--remote", "http://user:secret@host"], "--remote has a name"),
        (["--remote", "http://host", "--header", "X-Key secret"], "--header: a header is written"),
        (["--remote", "http://host", "--instance", "a"], "--instance is for grpc"),
        (["--remote", "http://host", "--tls-ca", "f"], "--tls-* is for https"),
        (["--remote", "https://host", "--tls-key", "f"], "--tls-key is of no use without --tls-c"),
        (["--remote", "https://host", "--tls-ca", "/absent"], "/absent"),
        (["--remote", "http://host", "--timeout", "0"], "--timeout must be more than 0"),
        (["--remote", "file:///x", "--trusted-key", "ed25519:x"], "--trusted-key"),
        (["--remote", "file:///x", "--trusted-keys", "/absent"], "--trusted-keys: /absent"),
    ],
)
@pytest.mark.parametrize("name", ["push", "pull"])
def test_a_remote_that_is_named_wrongly_is_said(tmp_path, command, name, words, told):
    ArtifactStore(tmp_path / "root").get_or_build(
        sample_key(), GENERATED, payload_builder(), private_parent=tmp_path / "p"
    )
    done = command(name, "--root", tmp_path / "root", *words)
    assert (done.status, done.out) == (2, "")
    assert told in done.err
    assert "secret" not in done.err and "RemoteConfig" not in done.err


def test_the_environment_names_the_remote_and_options_change_it(root, url, place, command):
    environ = {"PYPTO_CACHE_REMOTE": url, "PYPTO_CACHE_DIR": str(root)}
    assert command("push", environ=environ).document["remote"] == url
    wrong = command("push", environ={**environ, "PYPTO_CACHE_REMOTE_TIMEOUT": "soon"})
    assert wrong.status == 2 and "PYPTO_CACHE_REMOTE_TIMEOUT" in wrong.err
    # Another remote is not given what is meant for this one.
    secret = {**environ, "PYPTO_CACHE_REMOTE": "https://h", "PYPTO_CACHE_REMOTE_HEADERS": "A: b"}
    assert command("push", "--remote", url, environ=secret).status == 0
    readonly = {**environ, "PYPTO_CACHE_REMOTE_READONLY": "1"}
    for words in ((), ("--remote", url)):
        refused = command("push", *words, environ=readonly)
        assert (refused.status, refused.out) == (2, "") and "read only" in refused.err
    assert command("pull", environ=readonly).status == 0


def test_a_place_that_cannot_be_written_is_refused_before_anything_is_asked_for(
    root, url, command, tmp_path, monkeypatch
):
    command("push", "--root", root, "--remote", url)
    (tmp_path / "file").write_bytes(b"")
    asked = []
    monkeypatch.setattr(pull, "fetch_collection", lambda *a: asked.append(a))
    done = command("pull", "--root", tmp_path / "file" / "root", "--remote", url)
    assert (done.status, done.out) == (2, "")
    assert str(tmp_path / "file") in done.err
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "locks").write_bytes(b"")  # root may write anywhere else
    locked = command("pull", "--root", tmp_path / "there", "--remote", url)
    assert (locked.status, locked.out) == (2, "")
    assert "cannot lock" in locked.err and "--bundle" in locked.err
    nowhere = command("pull", "--bundle", tmp_path / "none" / "b", "--remote", url)
    assert nowhere.status == 2 and str(tmp_path / "none") in nowhere.err
    inside = command("pull", "--root", root, "--remote", url, "--scratch", root)
    assert inside.status == 2 and "--scratch" in inside.err
    assert asked == []


def test_a_root_of_another_layout_is_refused(url, command, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "STORE").write_bytes(b"pypto-store 99\n")
    for name in ("push", "pull"):
        done = command(name, "--root", tmp_path / "other", "--remote", url)
        assert done.status == 2 and "pypto-store 99" in done.err


def test_a_cleaning_is_not_waited_for_for_ever(root, url, command, monkeypatch, tmp_path):
    command("push", "--root", root, "--remote", url)
    monkeypatch.setattr(pull, "_LOCK_SECONDS", 0.05)
    with acquire(Layout(os.fspath(root)).store_lock, shared=False, timeout=1):
        done = command("pull", "--root", root, "--remote", url)
    assert (done.status, done.out) == (3, "")


def test_an_empty_root_has_nothing_to_send(url, command, tmp_path):
    (tmp_path / "empty").mkdir()
    done = command("push", "--root", tmp_path / "empty", "--remote", url)
    assert (done.status, done.out) == (1, "") and "no entry" in done.err


# -- who vouches


@pytest.fixture
def keys(tmp_path, command):
    """Names of two key pairs: the private file, and the text of the public key."""
    made = {}
    for name in ("a", "b"):
        file, public = tmp_path / f"{name}.pem", tmp_path / f"{name}.pub"
        assert command("keygen", file, "--public", public).status == 0
        made[name] = (file, public)
    return made


def test_signed_entries_are_what_trusted_keys_let_in(root, url, command, tmp_path, keys):
    (private, public), (_, other) = keys["a"], keys["b"]
    there = tmp_path / "there"
    signed = command("push", "--root", root, "--remote", url, "--signing-key", private)
    assert signed.document["collection"]["signed"]
    refused = command("pull", "--root", there, "--remote", url, "--trusted-keys", other)
    assert (refused.status, refused.out) == (2, "")
    assert not list(iterate_entries(there))
    taken = command("pull", "--root", there, "--remote", url, "--trusted-keys", public)
    assert (taken.status, taken.document["counts"]["pulled"]) == (0, 4)
    anybody = command("pull", "--root", tmp_path / "anybody", "--remote", url)
    assert anybody.document["counts"]["pulled"] == 4


def test_unsigned_entries_on_a_signed_list_are_rejected(root, url, command, tmp_path, keys):
    private, public = keys["a"]
    command("push", "--root", root, "--remote", url, "--as", "unsigned")
    engine = open_engine(RemoteConfig(url))
    found = fetch_collection(engine, url, "unsigned", ANYONE)
    signer = signer_of(RemoteConfig(url, signing_key=private))
    put_collection(engine, found.collection, signer)
    there = tmp_path / "there"
    words = ("--root", there, "--remote", url, "--as", "unsigned", "--trusted-keys", public)
    done = command("pull", *words)
    assert (done.status, done.document["counts"]["rejected"]) == (1, 4)
    assert "not signed" in done.document["entries"][0]["reason"]
    assert not list(iterate_entries(there))


def test_a_signed_list_is_not_replaced_by_an_unsigned_one(root, url, command, keys):
    private, _ = keys["a"]
    command("push", "--root", root, "--remote", url, "--signing-key", private, KEY[:6])
    done = command("push", "--root", root, "--remote", url)
    assert (done.status, done.out) == (2, "")
    assert "is signed" in done.err and "--signing-key" in done.err
    assert command("push", "--root", root, "--remote", url, "--as", "mine").status == 0
    again = command("push", "--root", root, "--remote", url, "--signing-key", private).document
    assert again["collection"] == {
        "name": "default", "entries": 4, "added": 1, "signed": True, "replaced": None,
    }  # fmt: skip


def test_who_demands_signatures_and_has_no_key_sends_nothing(root, url, place, command, keys):
    done = command("push", "--root", root, "--remote", url, "--trusted-keys", keys["a"][1])
    assert (done.status, done.out) == (2, "")
    assert "nothing is sent" in done.err and not place.exists()
    absent = command("push", "--root", root, "--remote", url, "--signing-key", "/absent.pem")
    assert absent.status == 2 and "/absent.pem" in absent.err and not place.exists()


def test_a_key_of_the_environment_is_asked_for_at_any_remote(root, url, command, tmp_path, keys):
    command("push", "--root", root, "--remote", url)
    environ = {"PYPTO_CACHE_REMOTE_TRUSTED_KEYS": str(keys["a"][1])}
    done = command("pull", "--root", tmp_path / "there", "--remote", url, environ=environ)
    assert (done.status, done.out) == (2, "") and "not signed" in done.err


# -- what is shown


def shown(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize("width", [80, 100])
def test_a_terminal_reads_what_became_of_the_entries(root, url, on_terminal, tmp_path, width):
    with open(f"{next(iterate_entries(root)).path}/artifact_manifest.json", "ab") as file:
        file.write(b" ")
    pushed = on_terminal("push", "--root", root, "--remote", url, width=width)
    told = shown(pushed.out)
    assert "4 entries" in told and "3 sent, 1 damaged" in told
    assert "collection default: 3 entries, 3 new" in told
    pulled = on_terminal("pull", "--root", tmp_path / "there", "--remote", url, width=width)
    assert "3 pulled" in shown(pulled.out)
    for done in (pushed, pulled):
        lines = [line for line in shown(done.out).splitlines() if "damaged:" not in line]
        assert max(map(len, lines)) <= width


def test_names_from_a_remote_move_no_cursor(root, url, command, on_terminal, tmp_path):
    evil = Listed(sample_key("no"), GENERATED, sample_key().digest, 1, "\x1b[2Jk")
    put_collection(open_engine(RemoteConfig(url)), Collection("default", (evil,)), None)
    done = on_terminal("pull", "--root", tmp_path / "there", "--remote", url)
    assert "\x1b[2J" not in done.out
    printed = command("pull", "--root", tmp_path / "there", "--remote", url)
    assert json.loads(printed.out)["entries"][0]["kernel"] == "\x1b[2Jk"
    assert "\x1b" not in printed.out


@pytest.mark.parametrize("name", ["push", "pull"])
def test_help_names_every_option(name, command, capsys):
    with pytest.raises(SystemExit):
        command(name, "--help")
    told = capsys.readouterr().out
    for option in ("--bundle", "--as", "--kernel", "--remote", "--instance", "--header", "--tls-ca",
                   "--timeout", "--credential-helper", "--trusted-key", "--scratch"):  # fmt: skip
        assert option in told
    assert ("--signing-key" in told) == (name == "push")


def test_files_keep_their_modes(root, url, command, tmp_path):
    def build(directory):
        for name, mode in (("a", 0o755), ("b", 0o644), ("kernel_config.json", 0o644)):
            (directory / name).write_bytes(b"same")
            (directory / name).chmod(mode)

    there = tmp_path / "there"
    ArtifactStore(tmp_path / "own").get_or_build(
        sample_key(), READY, build, private_parent=tmp_path / "p"
    )
    command("push", "--root", tmp_path / "own", "--remote", url)
    command("pull", "--root", there, "--remote", url)
    found = ArtifactStore(there).lookup(sample_key(), READY)
    modes = {name: os.stat(found.entry.path / name).st_mode & stat.S_IXUSR for name in ("a", "b")}
    assert (bool(modes["a"]), bool(modes["b"])) == (True, False)


def test_a_remote_that_needs_a_package_says_which(root):
    environ = {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"}
    code = (
        "import sys; sys.modules['grpc'] = None;"
        "from pypto_store.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    for name in ("push", "pull"):
        done = subprocess.run(
            [sys.executable, "-c", code, name, "--root", str(root), "--remote", "grpc://127.0.0.1:1"],
            capture_output=True, text=True, env=environ, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (2, "")
        assert "pypto[remote]" in done.stderr and "Traceback" not in done.stderr
    assert Path(root).is_dir()


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
