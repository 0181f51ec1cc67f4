"""The contract of an engine, as tests that any engine can run.

Subclass `EngineContract` in a test module, override its three hooks, and a pytest-like runner
collects the tests. Each test takes a fresh directory as `tmp_path`, which stands for one remote
that is empty at first: engines made for the same directory see the same remote. Needs nothing but
the standard library.
"""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from typing import TYPE_CHECKING, TypeVar

from pypto_store.remote.blob_store import (
    BLOB_LIMIT,
    ENTRY_LIMIT,
    BlobDigest,
    BlobStore,
    BlobStream,
    CorruptBlob,
    Engine,
    RemoteProtocolError,
    RemoteRefused,
    source_of,
)
from pypto_store.remote.messages import Action, ActionResult, Command, OutputFile
from pypto_store.remote.verifying import SourceChanged

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_Fault = TypeVar("_Fault", bound=BaseException)

SMALL = b"int add;\n"
LARGE = bytes(range(256)) * (5 << 12)  # 5 MiB: more than a chunk, and than a message of gRPC
_COMMAND = Command(("test",)).encode()
# Servers may read the action that an entry is of.
_ACTION = Action(BlobDigest.of(_COMMAND), BlobDigest.of(b"")).encode()
ACTION = BlobDigest.of(_ACTION)


def fetch(blobs: BlobStore, digest: BlobDigest, piece: int = 1 << 16) -> bytes | None:
    """All of a blob, read in pieces; None when it is not there."""
    stream = blobs.get(digest)
    if stream is None:
        return None
    with closing(stream):
        pieces = []
        while data := stream.read(piece):
            assert len(data) <= piece
            pieces.append(data)
        assert stream.read(piece) == b""
    return b"".join(pieces)


def put(blobs: BlobStore, data: bytes) -> BlobDigest:
    """Store a blob under its own name."""
    digest = BlobDigest.of(data)
    blobs.put(digest, source_of(data))
    return digest


def put_action(blobs: BlobStore) -> None:
    """Store the action that ACTION names, and its command."""
    blobs.put_many({BlobDigest.of(data): data for data in (_COMMAND, _ACTION)})


def raised(kind: type[_Fault], step: Callable[[], object]) -> _Fault:
    """The exception of that kind which `step` must raise."""
    try:
        result = step()
    except kind as fault:
        return fault
    raise AssertionError(f"no {kind.__name__} was raised, but {result!r} returned")


class EngineContract:
    """What `open_engine` promises of every engine."""

    def make_engine(self, tmp_path: Path, *, readonly: bool = False) -> Engine:
        """A new engine for the remote of `tmp_path`."""
        raise NotImplementedError

    def plant_blob(self, tmp_path: Path, digest: BlobDigest, data: bytes) -> None:
        """Have the remote give `data` for `digest`, behind the back of every engine."""
        raise NotImplementedError

    def plant_entry(self, tmp_path: Path, name: BlobDigest, entry: bytes) -> None:
        """Have the remote give `entry` for `name`, behind the back of every engine."""
        raise NotImplementedError

    def test_what_was_never_stored_is_absent(self, tmp_path: Path) -> None:
        with closing(self.make_engine(tmp_path)) as engine:
            digest = BlobDigest.of(SMALL)
            assert engine.blobs.get(digest) is None
            assert engine.blobs.get_many([digest]) == {}
            assert engine.blobs.find_missing([digest, ACTION]) == {digest, ACTION}
            assert engine.entries.get(ACTION) is None

    def test_a_stored_blob_is_there_for_every_engine(self, tmp_path: Path) -> None:
        with closing(self.make_engine(tmp_path)) as engine:
            digest = put(engine.blobs, SMALL)
            assert fetch(engine.blobs, digest) == SMALL
            assert fetch(engine.blobs, digest, 1) == SMALL
            assert engine.blobs.find_missing([digest, ACTION]) == {ACTION}
        with closing(self.make_engine(tmp_path, readonly=True)) as other:
            assert fetch(other.blobs, digest) == SMALL
            assert other.blobs.get_many([ACTION, digest]) == {digest: SMALL}

    def test_a_large_blob_goes_in_pieces(self, tmp_path: Path) -> None:
        with closing(self.make_engine(tmp_path)) as engine:
            digest = put(engine.blobs, LARGE)
            assert fetch(engine.blobs, digest) == LARGE
            assert fetch(engine.blobs, digest, BLOB_LIMIT) == LARGE
            assert engine.blobs.get_many([digest]) == {digest: LARGE}

    def test_many_blobs_are_stored_and_read_at_once(self, tmp_path: Path) -> None:
        blobs = {BlobDigest.of(data): data for data in (b"%d" % n * n for n in range(60))}
        blobs[BlobDigest.of(LARGE)] = LARGE
        with closing(self.make_engine(tmp_path)) as engine:
            engine.blobs.put_many(blobs)
            assert engine.blobs.find_missing(blobs) == frozenset()
            assert engine.blobs.get_many(blobs) == blobs
            engine.blobs.put_many({})
            assert engine.blobs.get_many([]) == {}
            assert engine.blobs.find_missing([]) == frozenset()

    def test_the_empty_blob_is_always_there(self, tmp_path: Path) -> None:
        empty = BlobDigest.of(b"")
        with closing(self.make_engine(tmp_path)) as engine:
            assert fetch(engine.blobs, empty) == b""
            assert engine.blobs.get_many([empty]) == {empty: b""}
            assert engine.blobs.find_missing([empty, ACTION]) == {ACTION}
            put(engine.blobs, b"")
            engine.blobs.put_many({empty: b""})
            assert fetch(engine.blobs, empty) == b""

    def test_a_blob_can_be_stored_again(self, tmp_path: Path) -> None:
        with closing(self.make_engine(tmp_path)) as engine:
            assert put(engine.blobs, SMALL) == put(engine.blobs, SMALL)
            assert fetch(engine.blobs, BlobDigest.of(SMALL)) == SMALL

    def test_entries_are_kept_apart_from_blobs_and_replaced(self, tmp_path: Path) -> None:
        entry, other = encoded_entry(b"one"), encoded_entry(b"two")
        with closing(self.make_engine(tmp_path)) as engine:
            engine.blobs.put_many({BlobDigest.of(data): data for data in (b"one", b"two")})
            put_action(engine.blobs)
            assert engine.entries.get(ACTION) is None
            engine.entries.put(ACTION, entry)
            assert engine.entries.get(ACTION) == entry
            engine.entries.put(ACTION, other)
            assert engine.entries.get(ACTION) == other
            assert fetch(engine.blobs, ACTION) == _ACTION
        with closing(self.make_engine(tmp_path, readonly=True)) as reader:
            assert reader.entries.get(ACTION) == other

    def test_an_entry_of_more_bytes_than_the_limit_is_not_sent(self, tmp_path: Path) -> None:
        with closing(self.make_engine(tmp_path)) as engine:
            raised(ValueError, lambda: engine.entries.put(ACTION, bytes(ENTRY_LIMIT + 1)))
            assert engine.entries.get(ACTION) is None

    def test_a_reader_stores_nothing(self, tmp_path: Path) -> None:
        with closing(self.make_engine(tmp_path, readonly=True)) as engine:
            digest = BlobDigest.of(SMALL)
            raised(RemoteRefused, lambda: put(engine.blobs, SMALL))
            raised(RemoteRefused, lambda: engine.blobs.put_many({digest: SMALL}))
            raised(RemoteRefused, lambda: engine.entries.put(ACTION, b""))
            engine.blobs.put_many({})
        with closing(self.make_engine(tmp_path)) as engine:
            assert engine.blobs.find_missing([digest]) == {digest}
            assert engine.entries.get(ACTION) is None

    def test_a_source_that_is_another_one_is_not_stored(self, tmp_path: Path) -> None:
        with closing(self.make_engine(tmp_path)) as engine:
            for data in (SMALL, LARGE):
                digest = BlobDigest.of(data)
                for wrong in (data[:-1], data + b"x", b"x" + data[1:], b""):
                    source = source_of(wrong)
                    raised(SourceChanged, lambda d=digest, s=source: engine.blobs.put(d, s))  # type: ignore[misc]
                    raised(SourceChanged, lambda d=digest, w=wrong: engine.blobs.put_many({d: w}))  # type: ignore[misc]
                assert engine.blobs.find_missing([digest]) == {digest}
                assert fetch(engine.blobs, put(engine.blobs, data)) == data

    def test_an_error_of_a_source_is_its_own(self, tmp_path: Path) -> None:
        with closing(self.make_engine(tmp_path)) as engine:
            digest = BlobDigest.of(LARGE)
            for broken in (_broken_at_once, _broken_after_a_while):
                fault = raised(OSError, lambda b=broken: engine.blobs.put(digest, b))  # type: ignore[misc]
                assert str(fault) == "the source broke"
            assert engine.blobs.find_missing([digest]) == {digest}

    def test_sources_are_closed(self, tmp_path: Path) -> None:
        opened: list[io.BytesIO] = []

        def source() -> BlobStream:
            opened.append(io.BytesIO(SMALL))
            return opened[-1]

        with closing(self.make_engine(tmp_path)) as engine:
            engine.blobs.put(BlobDigest.of(SMALL), source)
            raised(SourceChanged, lambda: engine.blobs.put(BlobDigest.of(LARGE), source))
        assert len(opened) >= 2 and all(stream.closed for stream in opened)

    def test_a_stream_may_be_left_and_several_may_be_open(self, tmp_path: Path) -> None:
        with closing(self.make_engine(tmp_path)) as engine:
            digest = put(engine.blobs, LARGE)
            left, read = engine.blobs.get(digest), engine.blobs.get(digest)
            assert left is not None and read is not None
            assert left.read(10)
            with closing(read):
                assert read.read(10)
                left.close()
                left.close()
                assert fetch(engine.blobs, digest) == LARGE
            assert fetch(engine.blobs, put(engine.blobs, SMALL)) == SMALL

    def test_threads_share_an_engine(self, tmp_path: Path) -> None:
        def round_trip(number: int) -> None:
            data = b"%d " % number * (1 + number * 2000)
            assert fetch(engine.blobs, put(engine.blobs, data)) == data
            assert fetch(engine.blobs, put(engine.blobs, SMALL)) == SMALL

        with closing(self.make_engine(tmp_path)) as engine, ThreadPoolExecutor(8) as pool:
            assert list(pool.map(round_trip, range(32))) == [None] * 32

    def test_wrong_bytes_are_never_handed_on(self, tmp_path: Path) -> None:
        for data in (SMALL, LARGE):
            digest = BlobDigest.of(data)
            wrongs = (data[:-1], data + b"x", data[:-1] + b"x", b"", data * 2)
            for wrong in wrongs:
                self.plant_blob(tmp_path, digest, wrong)
                with closing(self.make_engine(tmp_path)) as engine:
                    _expect_damage(data, lambda e=engine, d=digest: fetch(e.blobs, d))  # type: ignore[misc]
                    _expect_damage(data, lambda e=engine, d=digest: e.blobs.get_many([d]).get(d))  # type: ignore[misc]

    def test_what_is_damaged_can_be_stored_again(self, tmp_path: Path) -> None:
        """Where a server keeps what it has, override this by what becomes of such a blob there."""
        for data in (SMALL, LARGE):
            self.plant_blob(tmp_path, BlobDigest.of(data), data[:-1] + b"x")
            with closing(self.make_engine(tmp_path)) as engine:
                assert fetch(engine.blobs, put(engine.blobs, data)) == data

    def test_a_fault_keeps_being_one(self, tmp_path: Path) -> None:
        digest = BlobDigest.of(SMALL)
        self.plant_blob(tmp_path, digest, b"x" + SMALL[1:])
        with closing(self.make_engine(tmp_path)) as engine:
            stream = engine.blobs.get(digest)
            if stream is not None:
                with closing(stream):
                    for _ in range(3):
                        raised(CorruptBlob, lambda: stream.read(1 << 16))

    def test_an_entry_is_what_the_remote_says(self, tmp_path: Path) -> None:
        entry = encoded_entry(b"one")
        self.plant_blob(tmp_path, BlobDigest.of(b"one"), b"one")
        self.plant_entry(tmp_path, ACTION, entry)
        with closing(self.make_engine(tmp_path)) as engine:
            assert engine.entries.get(ACTION) == entry

    def test_an_engine_can_be_closed_twice(self, tmp_path: Path) -> None:
        engine = self.make_engine(tmp_path)
        put(engine.blobs, SMALL)
        engine.close()
        engine.close()


def encoded_entry(data: bytes) -> bytes:
    """An entry of one file; servers that check entries want its blob to be there."""
    return ActionResult((OutputFile("file", BlobDigest.of(data)),)).encode()


def _broken_at_once() -> BlobStream:
    raise OSError("the source broke")


class _Broken(io.BytesIO):
    def read(self, size: int | None = -1, /) -> bytes:
        if data := super().read(size):
            return data
        raise OSError("the source broke")


def _broken_after_a_while() -> BlobStream:
    return _Broken(LARGE[:-1])


def _expect_damage(right: bytes, step: Callable[[], bytes | None]) -> None:
    """A fault, or nothing, or the right bytes: a server may notice by itself what it has."""
    with suppress(RemoteProtocolError):
        assert step() in (None, right)
