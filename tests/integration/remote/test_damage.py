"""Real servers whose files were damaged, that end in the middle, or that come back.

What comes of it is a miss or a fault, and after it the server that is back is used again.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import servers
from pypto_store import RemoteConfig
from pypto_store.entry import Entry
from pypto_store.manifest import Manifest
from pypto_store.remote.blob_store import (
    BlobDigest,
    CorruptBlob,
    Engine,
    RejectedEntry,
    RemoteProtocolError,
    RemoteUnavailable,
)
from pypto_store.remote.engines import open_engine
from pypto_store.remote.entry_name import entry_name
from pypto_store.remote.entry_testing import URL, fetched, publish
from pypto_store.remote.messages import ActionResult
from pypto_store.remote.sending import send_entry
from pypto_store.remote.testing import SMALL, fetch, put
from pypto_store.remote.trust import ANYONE
from pypto_store.testing import GENERATED, PAYLOAD, sample_key
from reapi_contract import object_file

pytest.importorskip("grpc", reason="pypto[remote] is not installed")

HUGE = bytes(range(256)) * (48 << 12)  # 48 MiB: more than is under way at once
_PATH = "prebuilt/kernel_0.bin"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of server: how it is started at an address, who uses it, and where it has a blob."""

    program: str
    start: Callable[[Path, Path, str], AbstractContextManager[str]]
    configure: Callable[[str], RemoteConfig]
    place: Callable[[Path, BlobDigest], Path]


def _start_buildgrid(program: Path, directory: Path, address: str) -> AbstractContextManager[str]:
    return servers.running_buildgrid(program, directory, address=address)


def _start_nginx(program: Path, directory: Path, address: str) -> AbstractContextManager[str]:
    return servers.running_nginx(program, directory, address=address)


KINDS: Mapping[str, Kind] = {
    "casd": Kind(
        "casd",
        servers.running_casd,
        lambda address: RemoteConfig(f"grpc://{address}", timeout=20),
        lambda directory, digest: object_file(directory / "casd", digest),
    ),
    "buildgrid": Kind(
        "buildgrid",
        _start_buildgrid,
        lambda address: RemoteConfig(f"grpc://{address}", timeout=20),
        lambda directory, digest: object_file(directory / "nameless", digest),
    ),
    "nginx": Kind(
        "nginx",
        _start_nginx,
        lambda address: RemoteConfig(f"http://{address}/pypto", timeout=20),
        lambda directory, digest: directory / "data" / "pypto" / "cas" / digest.sha256.hex,
    ),
}

_QUICK = ("casd", "nginx")  # to start; what is tried with these alone is the client's own


class Remote:
    """A server that can be ended and started again at the same address with what it has."""

    def __init__(self, kind: Kind, program: Path, directory: Path, address: str) -> None:
        self._kind = kind
        self._program = program
        self._directory = directory
        self._address = address
        self._running = ExitStack()
        self.config = kind.configure(address)

    def start(self) -> None:
        """Start it."""
        server = self._kind.start(self._program, self._directory, self._address)
        self._running.enter_context(server)

    def end(self) -> None:
        """Kill it; nothing if it is dead."""
        self._running.close()

    def place(self, digest: BlobDigest) -> Path:
        """The file in which it has a blob."""
        return self._kind.place(self._directory, digest)


@pytest.fixture(scope="module", params=KINDS)
def remote(
    request: pytest.FixtureRequest,
    programs: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Remote]:
    """Each kind of server, running, for all tests."""
    kind = KINDS[request.param]
    with servers.reserved_address() as address:
        directory = tmp_path_factory.mktemp(request.param)
        remote = Remote(kind, programs[kind.program], directory, address)
        remote.start()
        yield remote
        remote.end()


@pytest.fixture
def engine(remote: Remote) -> Iterator[Engine]:
    """A client."""
    with closing(open_engine(remote.config)) as engine:
        yield engine


@pytest.fixture
def entry(engine: Engine, tmp_path: Path) -> Entry:
    """An entry that the server has, whose blobs it has for no other."""
    payload = {**PAYLOAD, _PATH: PAYLOAD[_PATH] + str(tmp_path).encode()}
    key = sample_key(str(tmp_path))
    entry = publish(tmp_path / "root", key, GENERATED, payload)
    assert send_entry(engine, URL, entry, ANYONE, None).entry_sent
    return entry


def _blob(entry: Entry) -> BlobDigest:
    return BlobDigest.of(entry.read(_PATH))


def _fetched(engine: Engine, entry: Entry, place: Path) -> Manifest | None:
    return fetched(engine, entry.key, GENERATED, place)


def _replace(path: Path, data: bytes) -> None:
    """As a file of its own: the server may have it linked elsewhere."""
    path.unlink()
    path.write_bytes(data)


def test_a_blob_with_other_bytes_is_a_fault(
    remote: Remote, engine: Engine, entry: Entry, tmp_path: Path
) -> None:
    place = remote.place(_blob(entry))
    data = place.read_bytes()
    _replace(place, data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(CorruptBlob):
        _fetched(engine, entry, tmp_path / "fetched")


def test_a_blob_that_lost_its_end_is_a_miss_or_a_fault(
    remote: Remote, engine: Engine, entry: Entry, tmp_path: Path
) -> None:
    place = remote.place(_blob(entry))
    _replace(place, place.read_bytes()[:-100])
    # casd removes it when it sees that, and may say of this request that it failed.
    with suppress(RemoteProtocolError):
        assert _fetched(engine, entry, tmp_path / "fetched") is None


def test_a_blob_that_was_evicted_is_a_miss_until_it_is_sent_again(
    remote: Remote, engine: Engine, entry: Entry, tmp_path: Path
) -> None:
    remote.place(_blob(entry)).unlink()
    assert _fetched(engine, entry, tmp_path / "missed") is None
    assert send_entry(engine, URL, entry, ANYONE, None).blobs_sent == 1
    assert _fetched(engine, entry, tmp_path / "fetched") == entry.manifest


def test_what_stands_for_an_entry_is_an_entry_of_the_key_or_a_fault(
    remote: Remote, engine: Engine, entry: Entry, tmp_path: Path
) -> None:
    name = entry_name(entry.key, GENERATED).digest
    right = engine.entries.get(name)
    assert right is not None
    other = publish(tmp_path / "other", sample_key("replayed"), GENERATED, PAYLOAD)
    send_entry(engine, URL, other, ANYONE, None)
    replayed = engine.entries.get(entry_name(other.key, GENERATED).digest)
    assert replayed is not None and replayed != right
    wrongs = [replayed, b"", ActionResult(()).encode()]
    if remote.config.scheme == "http":  # the others take messages alone
        wrongs += [right[:-1], b"<html>404</html>", right * 2]
    for number, wrong in enumerate(wrongs):
        engine.entries.put(name, wrong)
        with pytest.raises(RejectedEntry):
            _fetched(engine, entry, tmp_path / f"fetched{number}")
    engine.entries.put(name, right)
    assert _fetched(engine, entry, tmp_path / "fetched") == entry.manifest


def test_a_server_that_was_away_is_spoken_to_again(
    remote: Remote, engine: Engine, entry: Entry, tmp_path: Path
) -> None:
    assert _fetched(engine, entry, tmp_path / "before") == entry.manifest
    remote.end()
    with pytest.raises(RemoteUnavailable):
        _fetched(engine, entry, tmp_path / "meanwhile")
    remote.start()
    found = _fetched(engine, entry, tmp_path / "after")
    if found is None:  # it has entries in memory, and blobs on disk
        sent = send_entry(engine, URL, entry, ANYONE, None)
        assert (sent.blobs_sent, sent.entry_sent) == (0, True)
        found = _fetched(engine, entry, tmp_path / "again")
    assert found == entry.manifest


@pytest.mark.parametrize("remote", _QUICK, indirect=True)
def test_a_connection_that_the_server_lost_is_replaced(
    remote: Remote, engine: Engine, entry: Entry, tmp_path: Path
) -> None:
    """Also where it was not used while the server was away."""
    digest = _blob(entry)
    assert engine.blobs.find_missing([digest]) == frozenset()
    remote.end()
    remote.start()
    assert fetch(engine.blobs, digest) == entry.read(_PATH)
    assert fetch(engine.blobs, put(engine.blobs, SMALL)) == SMALL


@pytest.mark.parametrize("remote", _QUICK, indirect=True)
def test_a_server_that_ends_while_it_gives_a_blob(remote: Remote, engine: Engine) -> None:
    stream = engine.blobs.get(put(engine.blobs, HUGE))
    assert stream is not None
    with closing(stream):
        read = bytearray(stream.read(1 << 16))

        def read_on() -> None:
            while piece := stream.read(1 << 20):
                read.extend(piece)

        remote.end()
        try:
            with pytest.raises(RemoteUnavailable):
                read_on()
        finally:
            remote.start()
    assert len(read) < len(HUGE) and HUGE.startswith(read)
    assert fetch(engine.blobs, BlobDigest.of(HUGE), 1 << 20) == HUGE


@pytest.mark.parametrize("remote", _QUICK, indirect=True)
def test_a_server_that_ends_while_it_is_given_a_blob(remote: Remote, engine: Engine) -> None:
    digest = BlobDigest.of(HUGE[1:])

    class Ending(io.BytesIO):
        """Ends the server when a part was read."""

        def read(self, size: int | None = -1, /) -> bytes:
            if self.tell() > len(HUGE) // 2:
                remote.end()
            return super().read(size)

    try:
        with pytest.raises(RemoteUnavailable):
            engine.blobs.put(digest, lambda: Ending(HUGE[1:]))
    finally:
        remote.end()
        remote.start()
    assert engine.blobs.find_missing([digest]) == {digest}
    assert fetch(engine.blobs, put(engine.blobs, HUGE[1:]), 1 << 20) == HUGE[1:]
