"""Having what another machine published: from a cache server into the store (row 11).

One entry of four files (249 KB) and one of a single file (8 MiB) are fetched from a server of the
Remote Execution API (buildbox-casd) and from one of Bazel's HTTP protocol (nginx). Ours is a whole
request that finds nothing in its store: the miss, the lock, the fetch, the verification of every
byte, the durable publication and the entry that is handed out. The base is the least that is done
with the same packages: the same blobs, fetched by bare stubs of grpcio or by http.client into
memory and neither checked nor written, and then a build with the same content published (row 7).

The servers are those of tests/integration/remote on the loopback interface, whose programs bazelw
makes: PYPTO_TEST_CACHE_SERVERS names their servers.json, or the newest one below bazelw's cache
directory is taken. Without one there are no figures, and that is said.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from measure import Comparison, interleave, parser, report
from pypto_store import (
    ArtifactKey,
    ArtifactSpec,
    ArtifactStore,
    Digest,
    Fetched,
    RemoteConfig,
    State,
)
from pypto_store.layout import Layout
from pypto_store.publication import publish
from pypto_store.remote.blob_store import BlobDigest
from pypto_store.remote.engines import open_engine
from pypto_store.remote.entry_name import entry_name
from pypto_store.remote.messages import ActionResult
from pypto_store.remote.sending import send_entry
from pypto_store.remote.tier import RemoteTier
from pypto_store.remote.trust import ANYONE

# Servers are started as the tests start them.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration" / "remote"))
import remotes

RUNS = 24

# What is stored: name of a file -> bytes.
PAYLOADS = {
    "4 files": {"kernel.so": 120_000, "host.so": 90_000, "a/table": 38_000, "config": 1_000},
    "8 MiB": {"kernel.so": 8 << 20},
}
SERVERS = {"casd": "grpc", "nginx": "http"}
_LARGE_SHARE = 3  # the large entry is measured so many times less often: it fills disks
_BATCH_LIMIT = 4_000_000  # bytes; what is larger goes as a stream


def programs() -> dict[str, Path] | None:
    """Server programs by name, or None where nobody made them."""
    listing = os.environ.get("PYPTO_TEST_CACHE_SERVERS")
    if not listing:
        cache = Path.home() / ".cache" / "pypto-bazelw" / "cache-servers"
        found = sorted(cache.glob("*/servers.json"), key=lambda path: path.stat().st_mtime)
        if not found:
            return None
        listing = str(found[-1])
    named = json.loads(Path(listing).read_text(encoding="utf-8"))
    return {name: Path(path) for name, path in named.items()}


class Uncounted:
    """An observer of a tier; a remote that fails is no figure."""

    def hit(self, size: int, ns: int) -> None:
        """As it should be."""

    def miss(self, ns: int) -> None:
        """The entry was stored before."""
        raise SystemExit("the server has lost an entry")

    def fault(self, reason: str, ns: int) -> None:
        """Say what happened."""
        raise SystemExit(reason)

    def uploaded(self, size: int, ns: int) -> None:
        """Nothing is offered."""


class BareGrpc:
    """The calls of one fetch on one channel, and nothing around them."""

    def __init__(self, url: str) -> None:
        from pypto_store.remote import reapi_protocol

        loaded = reapi_protocol.load_protocol()
        self._channel = loaded.grpc.insecure_channel(urlsplit(url).netloc)
        self._message = loaded.message

        def stub(method: reapi_protocol.Method, kind: str) -> Any:
            return getattr(self._channel, kind)(
                method.path,
                request_serializer=loaded.message(method.request).SerializeToString,
                response_deserializer=method.response
                and loaded.message(method.response).FromString,
            )

        self._methods = reapi_protocol
        self._get_entry = stub(reapi_protocol.GET_ENTRY, "unary_unary")
        self._read_batch = stub(reapi_protocol.BATCH_READ, "unary_unary")
        self._read = stub(reapi_protocol.READ, "unary_stream")

    def fetch(self, name: BlobDigest, blobs: list[BlobDigest]) -> int:
        """Get the entry and its blobs; how many bytes came."""
        request = self._message(self._methods.GET_ENTRY.request)()
        request.action_digest.hash, request.action_digest.size_bytes = name.sha256.hex, name.size
        self._get_entry(request)
        if sum(digest.size for digest in blobs) > _BATCH_LIMIT:
            return sum(self._stream(digest) for digest in blobs)
        asked = self._message(self._methods.BATCH_READ.request)()
        for digest in blobs:
            asked.digests.add(hash=digest.sha256.hex, size_bytes=digest.size)
        return sum(len(response.data) for response in self._read_batch(asked).responses)

    def _stream(self, digest: BlobDigest) -> int:
        request = self._message(self._methods.READ.request)(resource_name=f"blobs/{digest}")
        return len(b"".join(answer.data for answer in self._read(request)))

    def close(self) -> None:
        """Close the channel."""
        self._channel.close()


class BareHttp:
    """The requests of one fetch on one connection, and nothing around them."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._connection = http.client.HTTPConnection(parts.netloc)
        self._prefix = parts.path

    def fetch(self, name: BlobDigest, blobs: list[BlobDigest]) -> int:
        """Get the entry and its blobs; how many bytes came."""
        self._get(f"ac/{name.sha256}")
        return sum(self._get(f"cas/{digest.sha256}") for digest in blobs)

    def _get(self, place: str) -> int:
        self._connection.request("GET", f"{self._prefix}/{place}")
        response = self._connection.getresponse()
        assert response.status == 200, place
        return len(response.read())

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


_BARE: dict[str, Callable[[str], BareGrpc | BareHttp]] = {"grpc": BareGrpc, "http": BareHttp}


def _key(number: int) -> ArtifactKey:
    blank = Digest("0" * 64)
    return ArtifactKey(blank, blank, blank, blank, Digest(f"{number:064x}"))


def _fill(directory: Path, files: dict[str, int]) -> Path:
    for name, size in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(size))
    return directory


class _Trial:
    """One kind of entry at one server: entries there, of which every measurement takes a new one.

    Nothing is deleted meanwhile: that slows new files down for long.
    """

    def __init__(self, config: RemoteConfig, files: dict[str, int], scratch: Path) -> None:
        self._files = files
        self._spec = ArtifactSpec(State.READY, "program", tuple(files), ("a2a3sim",), "x86-64")
        self._scratch = scratch
        self._origin = ArtifactStore(scratch / "origin")
        self._store = ArtifactStore(scratch / "root", remote=RemoteTier(config, Uncounted()))
        self._layout = Layout(str(scratch / "plain"))
        self._config = config
        self._bare = _BARE[config.scheme](config.url)
        self._numbers = iter(range(10**6))
        for side in (self.ours, self.base):
            side()  # connects, and marks its root

    def _stored(self) -> tuple[ArtifactKey, list[BlobDigest]]:
        """A new entry at the server."""
        key = _key(next(self._numbers))
        made = self._origin.get_or_build(
            key,
            self._spec,
            lambda build: _fill(build, self._files) and None,
            private_parent=self._scratch / "builds",
        )
        with closing(open_engine(self._config)) as engine:
            send_entry(engine, self._config.shown_url, made.entry, ANYONE, None)
            held = engine.entries.get(entry_name(key, self._spec).digest)
        assert held is not None
        listed = ActionResult.decode(held).output_files
        return key, [file.digest for file in listed if file.path in self._files]

    def ours(self) -> float:
        """Seconds of a request that finds its entry at the server."""
        key, _ = self._stored()
        os.sync()  # what is dirty from making the entry belongs to neither side
        begin = time.perf_counter()
        found = self._store.get_or_build(
            key, self._spec, _nothing_to_build, private_parent=self._scratch / "private"
        )
        took = time.perf_counter() - begin
        assert type(found) is Fetched and not found.private
        return took

    def base(self) -> float:
        """Seconds of the bare fetch, and of publishing a build of the same content."""
        key, blobs = self._stored()
        build = _fill(self._scratch / f"build{key.specialization.hex[-8:]}", self._files)
        name = entry_name(key, self._spec).digest
        os.sync()
        begin = time.perf_counter()
        moved = self._bare.fetch(name, blobs)
        publish(self._layout, key, self._spec, str(build))
        took = time.perf_counter() - begin
        assert moved == sum(self._files.values())
        return took

    def close(self) -> None:
        """Close the connection of the base."""
        self._bare.close()


def _nothing_to_build(directory: Path) -> None:
    raise SystemExit("the entry did not come from the server")


@contextmanager
def _trial(kind: str, files: dict[str, int], made: dict[str, Path]) -> Iterator[_Trial]:
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        with (
            remotes.RUNNING[kind](made, place / "server") as config,
            closing(_Trial(config, files, place)) as trial,
        ):
            yield trial


def compare(runs: int) -> list[Comparison]:
    """Time both sides in turn, for every server and payload."""
    made = programs()
    if made is None:
        sys.stderr.write(
            "row 11: no cache servers; ./bazelw build //tests/integration/remote/...\n"
        )
        return []
    done = []
    for kind, scheme in SERVERS.items():
        for payload, files in PAYLOADS.items():
            turns = runs if len(files) > 1 else max(runs // _LARGE_SHARE, 1)
            with _trial(kind, files, made) as trial:
                ours_s, base_s = interleave(trial.ours, trial.base, turns)
            what, base = f"fetch an entry, {payload}, {kind}", f"bare {scheme} and publish"
            done.append(Comparison("11", what, ours_s, base, base_s, turns, 1.5))
    return done


if __name__ == "__main__":
    chosen = parser(__doc__, RUNS).parse_args()
    report(compare(chosen.runs), chosen)
