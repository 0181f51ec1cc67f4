"""What is sent, in which order, and what is left alone, mended or replaced at the remote."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from entry_faults import EngineOf, FailingEngine, RecordingEngine, losing, unavailable
from forged_entries import CONTENT, KEY, LARGE, NAME, Truth, entry_of
from pypto_store import Digest
from pypto_store.entry import Entry, EntryChanged
from pypto_store.manifest import FileRecord, Manifest
from pypto_store.paths import MANIFEST_NAME, SIGNATURE_NAME
from pypto_store.remote.afresh import AfreshEngine
from pypto_store.remote.blob_store import (
    BlobDigest,
    CorruptBlob,
    RejectedEntry,
    RemoteProtocolError,
    RemoteUnavailable,
)
from pypto_store.remote.entry_name import entry_name
from pypto_store.remote.entry_testing import Stamp, fetched, publish
from pypto_store.remote.inventory import FILES_LIMIT, PAYLOAD_LIMIT
from pypto_store.remote.memory import MemoryRemote
from pypto_store.remote.messages import Action, ActionResult, Command, OutputFile
from pypto_store.remote.sending import Sent, send_entry
from pypto_store.remote.trust import ANYONE
from pypto_store.testing import GENERATED, READY, sample_key

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pypto_store.remote.blob_store import Engine

NOTHING = Sent(0, 0, False)


@pytest.fixture
def remote() -> MemoryRemote:
    """An empty remote."""
    return MemoryRemote()


@pytest.fixture
def entry(tmp_path: Path) -> Entry:
    """An entry of a store of the test's own, which it may damage."""
    return publish(tmp_path / "root", KEY, READY, CONTENT)


def send(engine: Engine, entry: Entry) -> Sent:
    return send_entry(engine, "memory:", entry, ANYONE, None)


def test_the_name_is_an_action_that_says_what_was_asked_for() -> None:
    name = entry_name(KEY, READY)
    command = Command.decode(name.command)
    assert command.arguments == (
        "pypto-artifact", "v1",
        *(f"{component}={digest.hex}" for component, digest in KEY.components()),
        "state=ready", "cpu_level=x86-64-v3",
    )  # fmt: skip
    assert Action.decode(name.action) == Action(BlobDigest.of(name.command), BlobDigest.of(b""))
    assert name.digest == BlobDigest.of(name.action)
    # Of other bytes every entry that is at a remote today would be a miss.
    assert name.digest.sha256.hex == (
        "16c93bb782682548cc27aa38f9e0a35a850e3a4e452ec13986d7aa516113413e"
    )
    generated = Command.decode(entry_name(KEY, GENERATED).command)
    assert generated.arguments == (*command.arguments[:-2], "state=generated")


def test_names_are_of_the_key_the_state_and_the_level_alone() -> None:
    assert entry_name(KEY, replace(READY, build_kind="other")) == entry_name(KEY, READY)
    others = [
        entry_name(key, spec).digest
        for key in (KEY, sample_key("two"), sample_key("one", "there"))
        for spec in (READY, GENERATED, replace(READY, cpu_level=None))
    ]
    assert len(set(others)) == len(others)


def test_the_entry_is_sent_last_and_everything_else_once(
    remote: MemoryRemote, entry: Entry
) -> None:
    engine = RecordingEngine(remote.open())
    sent = send(engine, entry)
    assert engine.operations() == ["get_entry", "find_missing", "put_many", "put", "put_entry"]
    assert engine.asked("put") == [BlobDigest.of(LARGE)]
    assert len(engine.written) == len(set(engine.written)) == sent.blobs_sent
    name = entry_name(KEY, READY)
    documents = {name.action, name.command, entry.manifest.encode()}
    assert set(remote.held.values()) == (set(CONTENT.values()) - {b""}) | documents
    assert sent.bytes_sent == sum(map(len, remote.held.values())) + len(remote.entries[NAME])
    assert sent.entry_sent


def test_what_the_remote_has_is_not_sent_again(remote: MemoryRemote, entry: Entry) -> None:
    for data in (LARGE, CONTENT["prebuilt/kernel_0.bin"]):
        remote.held[BlobDigest.of(data)] = data
    engine = RecordingEngine(remote.open())
    assert send(engine, entry).entry_sent
    assert not {BlobDigest.of(LARGE), BlobDigest.of(CONTENT["prebuilt/kernel_0.bin"])} & set(
        engine.written
    )
    again = RecordingEngine(remote.open())
    assert send(again, entry) == NOTHING
    assert again.operations() == ["get_entry", "find_missing"]


@pytest.mark.parametrize("operation", ["get_entry", "find_missing", "put_many", "put", "put_entry"])
def test_without_every_blob_there_is_no_entry(
    operation: str, remote: MemoryRemote, entry: Entry, tmp_path: Path
) -> None:
    with pytest.raises(RemoteUnavailable):
        send(FailingEngine(remote.open(), operation), entry)
    assert not remote.entries
    assert fetched(remote.open(), KEY, READY, tmp_path / "before") is None
    engine = RecordingEngine(remote.open())
    before = set(remote.held)
    assert send(engine, entry).entry_sent
    assert not before & set(engine.written)
    assert fetched(remote.open(), KEY, READY, tmp_path / "after") == entry.manifest


def other_manifest(truth: Truth) -> bytes:
    """The entry of another specification with the same name."""
    manifest = Manifest(KEY, replace(READY, execution=()), truth.records).encode()
    return truth.changed(MANIFEST_NAME, digest=BlobDigest.of(manifest))


USELESS: dict[str, Callable[[Truth], bytes]] = {
    "nothing": lambda truth: b"",
    "garbage": lambda truth: b"<html>404</html>",
    "a failure": lambda truth: entry_of(*truth.files, exit_code=1),
    "half of it": lambda truth: entry_of(*truth.files[2:]),
    "another executable bit": lambda truth: truth.changed("empty", executable=True),
    "another specification": other_manifest,
    "signatures that are lost": lambda truth: entry_of(
        *truth.files, OutputFile(SIGNATURE_NAME, BlobDigest.of(b"lost"))
    ),
}


@pytest.mark.parametrize("case", USELESS)
def test_what_nobody_can_use_is_replaced(
    case: str, remote: MemoryRemote, entry: Entry, tmp_path: Path
) -> None:
    send(remote.open(), entry)
    right = remote.entries[NAME]
    remote.entries[NAME] = USELESS[case](Truth(ActionResult.decode(right)))
    assert send(remote.open(), entry) == Sent(len(right), 0, True)
    assert remote.entries[NAME] == right


def test_an_entry_that_cannot_even_be_read_is_replaced(remote: MemoryRemote, entry: Entry) -> None:
    class Nonsense:
        put = remote.open().entries.put

        def get(self, name: BlobDigest) -> bytes | None:
            raise RemoteProtocolError(url="", operation="get", reason="nonsense", remedy="")

    assert send(EngineOf(remote.open().blobs, Nonsense()), entry).entry_sent
    assert NAME in remote.entries


def test_an_entry_whose_blobs_are_lost_is_mended(
    remote: MemoryRemote, entry: Entry, tmp_path: Path
) -> None:
    stamp = Stamp("theirs")
    send_entry(remote.open(), "memory:", entry, ANYONE, stamp)
    standing = remote.entries[NAME]
    lost = [BlobDigest.of(LARGE), BlobDigest.of(entry.manifest.encode())]
    for digest in lost:
        del remote.held[digest]
    sent = send(remote.open(), entry)
    assert sent == Sent(sum(digest.size for digest in lost), 2, False)
    # With the signatures, which this sender could not have made.
    assert remote.entries[NAME] == standing
    assert fetched(remote.open(), KEY, READY, tmp_path / "got", stamp) == entry.manifest


def test_an_entry_that_lacks_what_nobody_here_has_is_replaced(
    remote: MemoryRemote, entry: Entry, tmp_path: Path
) -> None:
    other = publish(tmp_path / "other", KEY, READY, {**CONTENT, "empty": b"not at all"})
    send(remote.open(), other)
    assert send(remote.open(), entry) == NOTHING
    del remote.held[BlobDigest.of(b"not at all")]
    assert send(remote.open(), entry).entry_sent
    assert fetched(remote.open(), KEY, READY, tmp_path / "got") == entry.manifest


def test_what_is_damaged_there_is_repaired_by_sending_afresh(
    remote: MemoryRemote, entry: Entry, tmp_path: Path
) -> None:
    send(remote.open(), entry)
    remote.held[BlobDigest.of(LARGE)] = LARGE[::-1]
    with pytest.raises(CorruptBlob):
        fetched(remote.open(), KEY, READY, tmp_path / "no")
    assert send(remote.open(), entry) == NOTHING  # the remote says that it has all of it
    sent = send(AfreshEngine(remote.open()), entry)
    assert sent.entry_sent and sent.bytes_sent > len(LARGE)
    assert fetched(remote.open(), KEY, READY, tmp_path / "yes") == entry.manifest


def test_a_remote_that_loses_what_it_has_is_no_fault_of_the_sender(
    remote: MemoryRemote, entry: Entry, tmp_path: Path
) -> None:
    engine = losing(remote.open(), BlobDigest.of(LARGE))
    assert send(engine, entry).entry_sent
    assert fetched(engine, KEY, READY, tmp_path / "got") is None


def rewrite(place: str, data: bytes) -> None:
    os.chmod(place, 0o600)
    with open(place, "wb") as file:
        file.write(data)


# How a file of a store is no longer what it was; each of a small and of a large file.
CHANGES: dict[str, Callable[[str, bytes], object]] = {
    "other bytes": lambda place, data: rewrite(place, data[::-1]),
    "one byte": lambda place, data: rewrite(place, data[:-1] + b"?"),
    "fewer bytes": lambda place, data: rewrite(place, data[:-1]),
    "more bytes": lambda place, data: rewrite(place, data + b"?"),
    "no bytes": lambda place, data: rewrite(place, b""),
    "a pipe": lambda place, data: (os.unlink(place), os.mkfifo(place)),
    "nothing": lambda place, data: os.unlink(place),
    "a link": lambda place, data: (os.unlink(place), os.symlink("/etc/hostname", place)),
    "a directory": lambda place, data: (os.unlink(place), os.mkdir(place)),
}


@pytest.mark.parametrize("path", ["prebuilt/kernel_0.bin", "large"])
@pytest.mark.parametrize("change", CHANGES)
def test_of_a_payload_that_changed_no_entry_is_sent(
    change: str, path: str, remote: MemoryRemote, entry: Entry
) -> None:
    CHANGES[change](f"{entry.directory}/{path}", CONTENT[path])
    for record in entry.manifest.files:
        if record.sha256 == Digest.of(LARGE).hex and record.path != path:
            CHANGES[change](f"{entry.directory}/{record.path}", LARGE)
    descriptors = len(os.listdir("/proc/self/fd"))
    gone = change in ("nothing", "a link")
    with pytest.raises(OSError if gone else EntryChanged):
        send(remote.open(), entry)
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert not remote.entries
    assert all(BlobDigest.of(data) == digest for digest, data in remote.held.items())


def test_a_payload_that_changes_on_the_way_sends_no_entry(
    remote: MemoryRemote, entry: Entry
) -> None:
    engine = RecordingEngine(remote.open())
    inner = engine.blobs.put

    def put(digest: BlobDigest, source: Callable[[], object]) -> None:
        def changing() -> object:
            stream = source()
            for path in ("large", "large too"):
                rewrite(f"{entry.directory}/{path}", LARGE[::-1])
            return stream

        inner(digest, changing)

    engine.blobs.put = put
    with pytest.raises(EntryChanged, match="do not write into a store"):
        send(engine, entry)
    assert not remote.entries
    assert BlobDigest.of(LARGE) not in remote.held


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ([FileRecord(f"{n:05}", 0, Digest.of(b"").hex, False) for n in range(10_000)], FILES_LIMIT),
        ([FileRecord("huge", PAYLOAD_LIMIT + 1, "0" * 64, False)], PAYLOAD_LIMIT),
        ([FileRecord("/".join(["n" * 250] * 4), 0, Digest.of(b"").hex, False)], 1000),
        (
            [FileRecord(f"{n:0250}/{n:0250}", 0, Digest.of(b"").hex, False) for n in range(8000)],
            4_000_000,
        ),
    ],
    ids=["too many files", "too many bytes", "a long path", "a long entry"],
)
def test_what_no_reader_would_take_is_not_sent(
    files: list[FileRecord], reason: int, remote: MemoryRemote
) -> None:
    spec = replace(GENERATED, required_files=())
    entry = Entry("/nowhere", Manifest(KEY, spec, tuple(files)))
    engine = RecordingEngine(remote.open())
    with pytest.raises(RejectedEntry, match=f"{reason} (is the limit|bytes)") as caught:
        send(engine, entry)
    assert "stays on this machine" in caught.value.remedy
    assert engine.calls == []


def test_a_fault_of_the_remote_while_it_is_judged_is_not_taken_for_a_bad_entry(
    remote: MemoryRemote, entry: Entry
) -> None:
    send_entry(remote.open(), "memory:", entry, ANYONE, Stamp("theirs"))

    class Gone:
        def get_many(self, digests: object) -> dict[BlobDigest, bytes]:
            raise unavailable("get_many")

    standing = dict(remote.entries)
    with pytest.raises(RemoteUnavailable):
        send(EngineOf(Gone(), remote.open().entries), entry)
    assert remote.entries == standing
