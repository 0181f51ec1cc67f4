"""zstd on the way to and from servers of REAPI, and servers that make something else of it."""

from __future__ import annotations

import io
import random
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pypto_store import Digest, RemoteConfig
from pypto_store.remote import reapi
from pypto_store.remote.blob_store import (
    BlobDigest,
    CorruptBlob,
    Engine,
    RemoteProtocolError,
    RemoteUnavailable,
    source_of,
)
from pypto_store.remote.engines import open_engine
from pypto_store.remote.reapi_coding import WORTHWHILE
from pypto_store.remote.reapi_protocol import BATCH_READ, READ, WRITE
from pypto_store.remote.testing import LARGE, SMALL, EngineContract, fetch, put

grpc = pytest.importorskip("grpc", reason="pypto[remote] is not installed")
zstandard = pytest.importorskip("zstandard", reason="pypto[bundles] is not installed")
from compressing_reapi import CompressingReapi, packed, pieces  # noqa: E402 - needs both
from scripted_reapi import message  # noqa: E402 - needs grpc

TEXT = b"a kernel's source repeats itself\n" * 1000
NOISE = random.Random(5).randbytes(20_000)
BLOB = BlobDigest.of(TEXT)
BIG = BlobDigest.of(LARGE)


@pytest.fixture
def server() -> Iterator[CompressingReapi]:
    server = CompressingReapi()
    yield server
    server.stop()


@pytest.fixture
def engine(server: CompressingReapi) -> Iterator[Engine]:
    with closing(open_engine(RemoteConfig(f"grpc://{server.address}", timeout=30))) as engine:
        yield engine


class TestContract(EngineContract):
    """What every engine promises, with everything of a kilobyte or more compressed."""

    server: CompressingReapi

    @pytest.fixture(autouse=True)
    def _serving(self, server: CompressingReapi) -> None:
        self.server = server

    def make_engine(self, tmp_path: Path, *, readonly: bool = False) -> Engine:
        return open_engine(RemoteConfig(f"grpc://{self.server.address}", readonly=readonly))

    def plant_blob(self, tmp_path: Path, digest: BlobDigest, data: bytes) -> None:
        self.server.blobs[digest.sha256.hex] = data

    def plant_entry(self, tmp_path: Path, name: BlobDigest, entry: bytes) -> None:
        self.server.entries[name.sha256.hex] = entry


def test_what_pays_is_compressed_in_every_way(server: CompressingReapi, engine: Engine) -> None:
    blobs = {BlobDigest.of(data): data for data in (TEXT, LARGE)}
    engine.blobs.put_many(blobs)
    assert engine.blobs.get_many(blobs) == blobs
    assert fetch(engine.blobs, BLOB, 1000) == TEXT
    put(engine.blobs, TEXT)
    assert server.ways == [
        "put batch zstd",
        "put stream zstd",
        "get batch zstd",
        "get stream zstd",
        "get stream zstd",
        "put stream zstd",
    ]


def test_what_does_not_pay_is_not(server: CompressingReapi, engine: Engine) -> None:
    small, limit = TEXT[: WORTHWHILE - 1], TEXT[:WORTHWHILE]
    engine.blobs.put_many({BlobDigest.of(data): data for data in (small, limit, NOISE)})
    assert sorted(server.ways) == ["put batch", "put batch", "put batch zstd"]
    server.ways.clear()
    engine.blobs.get_many([BlobDigest.of(small)])
    fetch(engine.blobs, BlobDigest.of(small))
    put(engine.blobs, small)
    assert server.ways == ["get batch", "get stream", "put stream"]


@pytest.mark.parametrize("why", ["no package", "not offered", "only other codings"])
def test_it_goes_without(
    server: CompressingReapi, engine: Engine, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    cache = server.capabilities.cache_capabilities
    if why == "no package":
        monkeypatch.setattr(reapi, "installed_zstd", lambda: None)
    else:
        others = [2, 3] if why == "only other codings" else []
        cache.supported_compressors[:] = others
        cache.supported_batch_update_compressors[:] = others
    blobs = {BlobDigest.of(data): data for data in (TEXT, LARGE)}
    engine.blobs.put_many(blobs)
    assert engine.blobs.get_many(blobs) == blobs
    assert server.ways == ["put batch", "put stream", "get batch", "get stream"]


def test_batches_that_a_server_does_not_unpack_are_sent_as_they_are(
    server: CompressingReapi, engine: Engine
) -> None:
    server.capabilities.cache_capabilities.supported_batch_update_compressors[:] = []
    engine.blobs.put_many({BLOB: TEXT, BIG: LARGE})
    assert server.ways == ["put batch", "put stream zstd"]


def test_a_stream_that_breaks_is_resumed_where_it_is_in_the_blob(
    server: CompressingReapi, engine: Engine
) -> None:
    # Nothing of it is the same twice: what is left is not in the first piece.
    data = random.Random(7).randbytes(1_000_000)
    digest = BlobDigest.of(data)
    offsets = []

    def breaking(request: Any, context: Any) -> Iterator[Any]:
        offsets.append(request.read_offset)
        yield from list(pieces(packed(data[request.read_offset :])))[:1]
        if len(offsets) < 3:
            context.abort(grpc.StatusCode.UNAVAILABLE, "broken")
        yield from list(pieces(packed(data[request.read_offset :])))[1:]

    server.answer(READ, breaking)
    assert fetch(engine.blobs, digest) == data
    assert len(offsets) == 3 and offsets[0] == 0 < offsets[1] < offsets[2]


def test_what_a_source_raises_goes_through(server: CompressingReapi, engine: Engine) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            if data := super().read(size):
                return data
            raise OSError("the source broke")

    with pytest.raises(OSError, match="the source broke"):
        engine.blobs.put(BIG, lambda: Broken(LARGE[:-1]))
    assert server.blobs == {}


@pytest.mark.parametrize(("committed", "accepted"), [(-1, True), (len(LARGE), True), (5, False)])
def test_what_a_server_says_that_it_took(
    server: CompressingReapi, engine: Engine, committed: int, accepted: bool
) -> None:
    server.answer(
        WRITE, lambda stream, context: message(WRITE.response or "", committed_size=committed)
    )
    if accepted:
        engine.blobs.put(BIG, source_of(LARGE))
    else:
        with pytest.raises(RemoteProtocolError, match="took 5 bytes"):
            engine.blobs.put(BIG, source_of(LARGE))


def test_several_frames_are_one_blob(server: CompressingReapi, engine: Engine) -> None:
    frames = packed(TEXT[:1000]) + packed(b"") + packed(TEXT[1000:])

    def batch(request: Any, context: Any) -> Any:
        answer = message(BATCH_READ.response or "")
        answer.responses.add(digest=request.digests[0], data=frames, compressor=1)
        return answer

    server.answer(BATCH_READ, batch)
    server.answer(READ, lambda request, context: pieces(frames))
    assert engine.blobs.get_many([BLOB]) == {BLOB: TEXT}
    assert fetch(engine.blobs, BLOB, 100) == TEXT


def _claiming(size: int, data: bytes) -> bytes:
    """A frame whose header says that its content has `size` bytes."""
    magic, window = b"\x28\xb5\x2f\xfd", b"\x58"  # 2 MiB of history
    return magic + b"\xc0" + window + size.to_bytes(8, "little") + packed(data)[6:]


_BOMB = packed(bytes(100_000_000))
_HOSTILE = {
    "a bomb": _BOMB,
    "bombs": _BOMB * 3,
    "one byte too many": packed(TEXT + b"x"),
    "one byte too few": packed(TEXT[:-1]),
    "other content": packed(b"x" + TEXT[1:]),
    "nothing": b"",
    "an empty frame": packed(b""),
    "garbage": NOISE,
    "a frame and garbage": packed(TEXT[:-1]) + NOISE,
    "cut off": packed(NOISE + TEXT)[:-10_000],
    # 128 MiB, which the library would still take; but for it, it is the right content.
    "a huge window": b"\x28\xb5\x2f\xfd\x00\x88" + packed(TEXT)[6:],
    "a huge claim": _claiming(1 << 62, TEXT),
    "skippable frames alone": b"\x50\x2a\x4d\x18\x04\x00\x00\x00skip" * 1000,
    "a dictionary that nobody has": b"\x28\xb5\x2f\xfd\x03\x58\x01\x02\x03\x04" + packed(TEXT)[6:],
}


@pytest.mark.parametrize("what", _HOSTILE)
def test_hostile_frames_are_damage_and_take_no_memory(
    server: CompressingReapi, engine: Engine, what: str
) -> None:
    data = _HOSTILE[what]

    def batch(request: Any, context: Any) -> Any:
        answer = message(BATCH_READ.response or "")
        answer.responses.add(digest=request.digests[0], data=data, compressor=1)
        return answer

    server.answer(BATCH_READ, batch)
    server.answer(READ, lambda request, context: pieces(data))
    tracemalloc.start()
    try:
        with pytest.raises(CorruptBlob):
            engine.blobs.get_many([BLOB])
        with pytest.raises(CorruptBlob):
            fetch(engine.blobs, BLOB)
        assert tracemalloc.get_traced_memory()[1] < 16_000_000
    finally:
        tracemalloc.stop()


def test_a_stream_of_bombs_is_left_after_the_size(server: CompressingReapi, engine: Engine) -> None:
    def endless(request: Any, context: Any) -> Iterator[Any]:
        while context.is_active():
            yield message(READ.response or "", data=_BOMB)

    server.answer(READ, endless)
    with pytest.raises(CorruptBlob, match="goes on"):
        fetch(engine.blobs, BIG)


def test_frames_with_nothing_in_them_do_not_hold_anybody_up(server: CompressingReapi) -> None:
    def endless(request: Any, context: Any) -> Iterator[Any]:
        while context.is_active():
            yield message(READ.response or "", data=packed(b"") * 100)

    server.answer(READ, endless)
    config = RemoteConfig(f"grpc://{server.address}", timeout=0.5)
    with closing(open_engine(config)) as engine, pytest.raises(RemoteUnavailable, match="DEADLINE"):
        fetch(engine.blobs, BLOB)


@pytest.mark.parametrize(
    ("asked", "answers", "reason"),
    [
        (BLOB, [(BLOB, TEXT, 2)], r"compressed \(2\)"),
        (BlobDigest.of(SMALL), [(BlobDigest.of(SMALL), packed(SMALL), 1)], r"compressed \(1\)"),
        (BLOB, [(BlobDigest(Digest("0" * 64), 1 << 62), _BOMB, 1)], "was not asked for"),
        (BLOB, [(BLOB, packed(TEXT), 1)] * 2, "or twice"),
    ],
)
def test_batches_say_what_they_were_asked_for(
    server: CompressingReapi,
    engine: Engine,
    asked: BlobDigest,
    answers: list[tuple[BlobDigest, bytes, int]],
    reason: str,
) -> None:
    def batch(request: Any, context: Any) -> Any:
        answer = message(BATCH_READ.response or "")
        for digest, data, compressor in answers:
            response = answer.responses.add(data=data, compressor=compressor)
            response.digest.hash, response.digest.size_bytes = digest.sha256.hex, digest.size
        return answer

    server.answer(BATCH_READ, batch)
    with pytest.raises(RemoteProtocolError, match=reason):
        engine.blobs.get_many([asked])
