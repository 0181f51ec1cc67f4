"""The contract of entries at a remote, as tests that any engine can run.

Subclass `EntryContract` in a test module, override `make_engine`, and a pytest-like runner collects
the tests. Each test takes a fresh directory as `tmp_path`, and has a key and payloads that no other
test has: the remote may be shared. Needs nothing but the standard library.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import closing
from typing import TYPE_CHECKING

from pypto_store.keys import State
from pypto_store.outcomes import Published
from pypto_store.remote.arrival import fetch_entry
from pypto_store.remote.blob_store import Engine, RejectedEntry, RemoteRefused
from pypto_store.remote.entry_name import entry_name
from pypto_store.remote.messages import ActionResult
from pypto_store.remote.sending import Sent, send_entry
from pypto_store.remote.testing import raised
from pypto_store.remote.trust import ANYONE, Trust
from pypto_store.store import ArtifactStore
from pypto_store.testing import (
    GENERATED,
    PAYLOAD,
    READY,
    payload_builder,
    ready_spec,
    sample_key,
    snapshot,
)
from pypto_store.validation import validate_payload

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pypto_store.entry import Entry
    from pypto_store.keys import ArtifactKey, ArtifactSpec
    from pypto_store.manifest import Manifest

URL = "test://remote"


def publish(
    root: Path, key: ArtifactKey, spec: ArtifactSpec, payload: Mapping[str, bytes]
) -> Entry:
    """A new entry of a local store."""
    store = ArtifactStore(root)
    private = root.parent / "private"
    result = store.get_or_build(key, spec, payload_builder(payload), private_parent=private)
    assert isinstance(result, Published), result
    return result.entry


def fetched(
    engine: Engine, key: ArtifactKey, spec: ArtifactSpec, place: Path, trust: Trust = ANYONE
) -> Manifest | None:
    """What `fetch_entry` says of a new directory, after the directory was seen to be so."""
    place.mkdir()
    try:
        manifest = fetch_entry(engine, URL, key, spec, str(place), trust)
    except BaseException:
        assert not os.listdir(place)
        raise
    if manifest is None:
        assert not os.listdir(place)
        return None
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        validate_payload(descriptor, manifest.files)
    finally:
        os.close(descriptor)
    return manifest


class Stamp:
    """Signs and trusts by a word, as far from cryptography as a test may be."""

    def __init__(self, word: str) -> None:
        self._word = word

    @property
    def own(self) -> Trust:
        return self

    def sign(self, manifest: bytes) -> bytes:
        return f"{self._word} {hashlib.sha256(manifest).hexdigest()}".encode()

    def fault(self, manifest: bytes, signatures: bytes | None) -> str | None:
        return None if signatures == self.sign(manifest) else f"it is not stamped {self._word}"


class EntryContract:
    """What sending and fetching promise over every engine."""

    def make_engine(self, tmp_path: Path, *, readonly: bool = False) -> Engine:
        """A new engine for a remote that both sides of a test see."""
        raise NotImplementedError

    def _payload(self, tmp_path: Path) -> dict[str, bytes]:
        """A payload with contents of this test's own, of many sizes, some of them twice."""
        own = str(tmp_path).encode()
        large = own * (2_500_000 // len(own))
        return {
            **{path: data and own + data for path, data in PAYLOAD.items()},
            "large/one": large,
            "large/two": large,
            "kernels/aiv/copy.cpp": own + PAYLOAD["kernels/aiv/add.cpp"],
            "kernels/also empty": b"",
            "names/ü-漢 \x01.txt": own,
        }

    def _check(self, tmp_path: Path, payload: Mapping[str, bytes]) -> None:
        """Send a payload from one root, and fetch it with another engine."""
        key = sample_key(str(tmp_path))
        entry = publish(tmp_path / "root", key, READY, payload)
        with closing(self.make_engine(tmp_path)) as engine:
            sent = send_entry(engine, URL, entry, ANYONE, None)
            assert sent.entry_sent
        with closing(self.make_engine(tmp_path, readonly=True)) as reader:
            assert fetched(reader, key, READY, tmp_path / "got") == entry.manifest
        arrived = snapshot(tmp_path / "got")
        assert {path: found[2] for path, found in arrived.items() if path in payload} == payload
        for record in entry.manifest.files:
            assert arrived[record.path][0] & 0o777 == (0o700 if record.executable else 0o600)

    def test_an_entry_comes_back_byte_for_byte(self, tmp_path: Path) -> None:
        self._check(tmp_path, self._payload(tmp_path))

    def test_a_payload_may_have_no_bytes(self, tmp_path: Path) -> None:
        self._check(tmp_path, {"kernel_config.json": b"", "a/b/c": b""})

    def test_a_payload_may_have_many_files(self, tmp_path: Path) -> None:
        many = {f"{n % 7}/{n}": b"%d of %s" % (n, str(tmp_path).encode()) for n in range(300)}
        self._check(tmp_path, {**many, "kernel_config.json": b"{}"})

    def test_what_was_never_sent_is_a_miss(self, tmp_path: Path) -> None:
        with closing(self.make_engine(tmp_path, readonly=True)) as engine:
            assert fetched(engine, sample_key(str(tmp_path)), READY, tmp_path / "got") is None

    def test_what_is_there_is_not_sent_again(self, tmp_path: Path) -> None:
        key, payload = sample_key(str(tmp_path)), self._payload(tmp_path)
        entry = publish(tmp_path / "root", key, READY, payload)
        with closing(self.make_engine(tmp_path)) as engine:
            first = send_entry(engine, URL, entry, ANYONE, None)
            assert first.blobs_sent and first.bytes_sent > sum(map(len, set(payload.values())))
            assert send_entry(engine, URL, entry, ANYONE, None) == Sent(0, 0, False)
            # Another build of the same is as good.
            other = publish(tmp_path / "other", key, READY, {**payload, "empty": b"not so"})
            assert send_entry(engine, URL, other, ANYONE, None) == Sent(0, 0, False)
            assert fetched(engine, key, READY, tmp_path / "got") == entry.manifest

    def test_states_levels_and_keys_have_entries_of_their_own(self, tmp_path: Path) -> None:
        names = [str(tmp_path), f"{tmp_path} too"]
        wanted = [
            (sample_key(name), spec, {"kernel_config.json": f"{name} {number}".encode()})
            for name in names
            for number, spec in enumerate((GENERATED, ready_spec("v1"), ready_spec("v2")))
        ]
        with closing(self.make_engine(tmp_path)) as engine:
            for number, (key, spec, payload) in enumerate(wanted):
                entry = publish(tmp_path / f"root{number}", key, spec, payload)
                assert send_entry(engine, URL, entry, ANYONE, None).entry_sent
            for number, (key, spec, payload) in enumerate(wanted):
                place = tmp_path / f"got{number}"
                manifest = fetched(engine, key, spec, place)
                assert manifest is not None
                assert manifest.key == key and manifest.spec == spec
                assert (place / "kernel_config.json").read_bytes() == payload["kernel_config.json"]

    def test_what_is_no_entry_is_refused_and_replaced(self, tmp_path: Path) -> None:
        key = sample_key(str(tmp_path))
        entry = publish(tmp_path / "root", key, READY, self._payload(tmp_path))
        with closing(self.make_engine(tmp_path)) as engine:
            assert send_entry(engine, URL, entry, ANYONE, None).entry_sent
            name = entry_name(key, READY).digest
            right = engine.entries.get(name)
            assert right is not None
            failed = ActionResult(ActionResult.decode(right).output_files, exit_code=1)
            engine.entries.put(name, failed.encode())
            raised(RejectedEntry, lambda: fetched(engine, key, READY, tmp_path / "got"))
            sent = send_entry(engine, URL, entry, ANYONE, None)
            assert sent == Sent(sent.bytes_sent, 0, True)  # no blob had gone
            assert fetched(engine, key, READY, tmp_path / "again") == entry.manifest

    def test_who_trusts_a_signer_takes_nothing_else(self, tmp_path: Path) -> None:
        key, stamp = sample_key(str(tmp_path)), Stamp("mine")
        entry = publish(tmp_path / "root", key, READY, self._payload(tmp_path))
        with closing(self.make_engine(tmp_path)) as engine:
            send_entry(engine, URL, entry, ANYONE, None)
            raised(RejectedEntry, lambda: fetched(engine, key, READY, tmp_path / "no", stamp))
            # Who signs replaces what nobody signed, and sends no more than that takes.
            signed = send_entry(engine, URL, entry, ANYONE, stamp)
            assert signed.entry_sent and signed.blobs_sent == 1
            assert send_entry(engine, URL, entry, stamp, stamp) == Sent(0, 0, False)
            assert send_entry(engine, URL, entry, ANYONE, None) == Sent(0, 0, False)
            assert fetched(engine, key, READY, tmp_path / "yes", stamp) == entry.manifest
            assert fetched(engine, key, READY, tmp_path / "also") == entry.manifest
            other = Stamp("yours")
            raised(RejectedEntry, lambda: fetched(engine, key, READY, tmp_path / "not", other))
            assert send_entry(engine, URL, entry, other, other).entry_sent
            assert fetched(engine, key, READY, tmp_path / "now", other) == entry.manifest

    def test_a_reader_sends_nothing(self, tmp_path: Path) -> None:
        key = sample_key(str(tmp_path))
        entry = publish(tmp_path / "root", key, READY, self._payload(tmp_path))
        with closing(self.make_engine(tmp_path, readonly=True)) as reader:
            raised(RemoteRefused, lambda: send_entry(reader, URL, entry, ANYONE, None))
            assert fetched(reader, key, READY, tmp_path / "got") is None

    def test_generated_is_found_by_its_state(self, tmp_path: Path) -> None:
        key = sample_key(str(tmp_path))
        entry = publish(tmp_path / "root", key, GENERATED, self._payload(tmp_path))
        assert entry.spec.state is State.GENERATED
        with closing(self.make_engine(tmp_path)) as engine:
            send_entry(engine, URL, entry, ANYONE, None)
            assert fetched(engine, key, READY, tmp_path / "ready") is None
            assert fetched(engine, key, GENERATED, tmp_path / "generated") == entry.manifest
