"""Blobs behind a good entry that lie, break or are lost, and directories that are no good.

What is fetched then is a miss or one fault, and leaves the directory empty.
"""

from __future__ import annotations

import errno
import io
import os
from typing import TYPE_CHECKING

import pytest
from entry_faults import Breaking, Endless, FailingEngine, RecordingEngine, losing, lying
from forged_entries import CONTENT, KEY, LARGE, NAME, Truth
from pypto_store import ArtifactStore, Published
from pypto_store.paths import MANIFEST_NAME
from pypto_store.remote import arrival
from pypto_store.remote.arrival import fetch_entry
from pypto_store.remote.batches import SMALL_BLOB
from pypto_store.remote.blob_store import (
    BlobDigest,
    CorruptBlob,
    RejectedEntry,
    RemoteFault,
    RemoteUnavailable,
)
from pypto_store.remote.entry_testing import fetched, publish
from pypto_store.remote.memory import MemoryRemote
from pypto_store.remote.sending import send_entry
from pypto_store.remote.trust import ANYONE
from pypto_store.testing import PAYLOAD, READY, payload_builder, sample_key, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


SMALL_PATH, LARGE_PATH = "prebuilt/kernel_0.bin", "large"
LIES: dict[str, Callable[[bytes], object]] = {
    "other bytes": lambda data: lambda: io.BytesIO(data[:-1] + b"?"),
    "fewer bytes": lambda data: lambda: io.BytesIO(data[:-1]),
    "no bytes": lambda data: io.BytesIO,
    "more bytes": lambda data: lambda: io.BytesIO(data + b"?"),
    "bytes without end": lambda data: lambda: Endless(data),
    "a connection that breaks": lambda data: lambda: Breaking(data[:-1]),
    "a connection that breaks at the end": lambda data: lambda: Breaking(data),
}


@pytest.mark.parametrize("path", [SMALL_PATH, LARGE_PATH])
@pytest.mark.parametrize("lie", LIES)
def test_wrong_bytes_of_a_file_are_one_fault(
    lie: str, path: str, remote: MemoryRemote, truth: Truth, tmp_path: Path
) -> None:
    engine = lying(remote.open(), {truth.of(path).digest: LIES[lie](CONTENT[path])})
    before = snapshot(tmp_path)
    with pytest.raises((CorruptBlob, RemoteUnavailable)) as caught:
        fetched(engine, KEY, READY, tmp_path / "got")
    assert isinstance(caught.value, CorruptBlob) == ("breaks" not in lie)
    (tmp_path / "got").rmdir()
    assert snapshot(tmp_path) == before


def test_no_more_is_read_than_a_blob_should_have(
    remote: MemoryRemote, truth: Truth, tmp_path: Path
) -> None:
    for path in (SMALL_PATH, LARGE_PATH):
        endless = Endless(CONTENT[path])
        engine = lying(remote.open(), {truth.of(path).digest: lambda stream=endless: stream})
        with pytest.raises(CorruptBlob):
            fetched(engine, KEY, READY, tmp_path / path.replace("/", "-"))
        assert endless.given == len(CONTENT[path]) + 1


@pytest.mark.parametrize("path", [path for path, data in CONTENT.items() if data])
def test_a_lost_blob_is_a_miss(
    path: str, remote: MemoryRemote, truth: Truth, tmp_path: Path
) -> None:
    digest = truth.of(path).digest
    # It goes after the remote has said that it is there, or it has gone long ago.
    engine = losing(remote.open(), digest)
    assert not engine.blobs.find_missing([digest])
    assert fetched(engine, KEY, READY, tmp_path / "got") is None
    del remote.held[digest]
    assert fetched(remote.open(), KEY, READY, tmp_path / "too") is None


def test_the_empty_blob_is_not_asked_for(remote: MemoryRemote, tmp_path: Path) -> None:
    remote.held.pop(BlobDigest.of(b""), None)
    engine = RecordingEngine(remote.open())
    assert fetched(engine, KEY, READY, tmp_path / "got") is not None
    assert BlobDigest.of(b"") not in engine.read


@pytest.mark.parametrize("operation", ["get_entry", "get", "get_many"])
def test_a_remote_that_goes_away_is_its_fault(
    operation: str, remote: MemoryRemote, tmp_path: Path
) -> None:
    engine = FailingEngine(remote.open(), operation)
    with pytest.raises(RemoteUnavailable):
        fetched(engine, KEY, READY, tmp_path / "got")


def test_equal_contents_are_fetched_once_and_many_are_in_one_request(
    remote: MemoryRemote, truth: Truth, tmp_path: Path
) -> None:
    engine = RecordingEngine(remote.open())
    assert fetched(engine, KEY, READY, tmp_path / "got") is not None
    large = truth.of("large").digest
    assert engine.operations() == ["get_entry", "get_many", "get"]
    assert engine.asked("get") == [large]
    assert len(engine.read) == len(set(engine.read)) == len(set(CONTENT.values()) - {b""})
    assert (tmp_path / "got" / "large too").read_bytes() == LARGE


def test_a_request_for_many_blobs_has_a_bounded_size(tmp_path: Path) -> None:
    remote, key = MemoryRemote(), sample_key("many")
    pieces = {f"{n:02}": bytes([n]) * (SMALL_BLOB - n) for n in range(10)}
    entry = publish(tmp_path / "root", key, READY, {"kernel_config.json": b"{}", **pieces})
    engine = RecordingEngine(remote.open())
    send_entry(engine, "memory:", entry, ANYONE, None)
    assert fetched(engine, key, READY, tmp_path / "got") == entry.manifest
    requests = [digests for name, digests in engine.calls if name in ("get_many", "put_many")]
    assert len(requests) >= 6
    for digests in requests:
        assert sum(digest.size for digest in digests) <= 4_000_000


def test_other_fields_of_an_entry_change_nothing(
    remote: MemoryRemote, truth: Truth, tmp_path: Path
) -> None:
    def field(number: int, value: bytes) -> bytes:
        return bytes([number << 3 | 2, len(value)]) + value

    # What servers add, and what would be links and directories to others.
    link = field(1, b"large/../..") + field(2, b"/etc")
    directory = field(1, b"etc") + field(3, truth.of("large").digest.sha256.hex.encode())
    output = b"".join(
        [
            field(3, directory),
            field(5, b"stdout"),
            field(10, link),
            field(11, link),
            field(12, link),
        ]
    )
    remote.entries[NAME] = output + truth.result.encode() + output
    assert fetched(remote.open(), KEY, READY, tmp_path / "got") is not None
    assert not any(path.is_symlink() for path in (tmp_path / "got").rglob("*"))


@pytest.mark.parametrize("there", ["file", "link", "directory"])
def test_only_an_empty_directory_is_filled(
    there: str, remote: MemoryRemote, tmp_path: Path
) -> None:
    place, outside = tmp_path / "got", tmp_path / "outside"
    place.mkdir()
    outside.mkdir()
    {
        "file": lambda: (place / "large").write_bytes(b"mine"),
        "link": lambda: (place / "kernels").symlink_to(outside),
        "directory": lambda: (place / "kernels").mkdir(),
    }[there]()
    before = snapshot(tmp_path)
    engine = RecordingEngine(remote.open())
    with pytest.raises(OSError, match="not empty") as caught:
        fetch_entry(engine, "memory:", KEY, READY, str(place), ANYONE)
    assert caught.value.errno == errno.ENOTEMPTY
    assert snapshot(tmp_path) == before
    assert engine.operations() == ["get_entry"]


def test_links_that_appear_meanwhile_are_not_followed(
    remote: MemoryRemote, truth: Truth, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"precious")
    place = tmp_path / "got"

    def plant() -> io.BytesIO:
        (place / "large too").symlink_to(outside)
        return io.BytesIO(LARGE)

    engine = lying(remote.open(), {truth.of("large").digest: plant})
    with pytest.raises(FileExistsError):
        fetched(engine, KEY, READY, place)
    assert outside.read_bytes() == b"precious"


def test_a_full_disk_is_not_the_remotes_fault(
    remote: MemoryRemote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []

    def write_all(descriptor: int, data: bytes) -> None:
        written.append(data)
        if len(written) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.write(descriptor, data)

    monkeypatch.setattr(arrival, "write_all", write_all)
    descriptors = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="No space left") as caught:
        fetched(remote.open(), KEY, READY, tmp_path / "got")
    assert not isinstance(caught.value, RemoteFault)
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_payload_names_may_be_odd(tmp_path: Path) -> None:
    remote, key = MemoryRemote(), sample_key("odd")
    names = ["-rf", "a b", "\n", "\x01", "ü/漢", "~", "$HOME", "*", "con", "..x", "x..", ".hidden",
             f"below/{MANIFEST_NAME}", "d/" * 100 + "e", "l" * 255]  # fmt: skip
    payload = {name: name.encode() for name in names}
    entry = publish(tmp_path / "root", key, READY, {**payload, "kernel_config.json": b""})
    send_entry(remote.open(), "memory:", entry, ANYONE, None)
    assert fetched(remote.open(), key, READY, tmp_path / "got") == entry.manifest
    for name in names:
        assert (tmp_path / "got" / name).read_bytes() == name.encode()


@pytest.mark.parametrize("spelled", [None, b"\xe9.txt"])
def test_names_that_are_others_here_are_rejected_before_payload_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, spelled: bytes | None
) -> None:
    def fill(directory: Path) -> None:
        payload_builder(PAYLOAD)(directory)
        (directory / "\xe9.txt").write_bytes(b"x")

    key, remote = sample_key(), MemoryRemote()
    store = ArtifactStore(tmp_path / "root")
    made = store.get_or_build(key, READY, fill, private_parent=tmp_path / "private")
    assert isinstance(made, Published)
    send_entry(remote.open(), "file:///there", made.entry, ANYONE, None)
    real = os.fsencode

    def fsencode(name: str) -> bytes:
        """As in a locale of ASCII, or of Latin-1."""
        if name.isascii():
            return real(name)
        if spelled is None:
            raise UnicodeEncodeError("ascii", name, 0, 1, "ordinal not in range")
        return spelled

    engine = RecordingEngine(remote.open())
    (tmp_path / "place").mkdir()
    with monkeypatch.context() as locale:
        locale.setattr(os, "fsencode", fsencode)
        with pytest.raises(RejectedEntry, match=r"'\\xe9.txt' is no name of a file here"):
            fetch_entry(engine, "file:///there", key, READY, str(tmp_path / "place"), ANYONE)
    assert not os.listdir(tmp_path / "place")
    assert engine.read == []
