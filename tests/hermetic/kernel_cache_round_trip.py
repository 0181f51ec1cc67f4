"""Lets one clone compile kernels, and another start a program with them by a remote cache alone.

    ./bazelw run //tests/hermetic:kernel_cache_round_trip [-- --hermetic]

Two clones of the last commit, two output bases, no disk cache; between them an HTTP cache on the
loopback interface, which this script starts and stops. What has to hold:

1. the first side compiles each kernel once, and its program finds all of them ready;
2. an edit of one kernel compiles that one again and no other, and taking it back compiles none;
3. the second side compiles none and runs no action of the cache, and its program finds them ready;
4. an empty second cache, that is building everything again, gives the same bytes.

Exit status 1 where one does not. With --hermetic the second side has another PATH as well.
"""

from __future__ import annotations

import argparse
import hashlib
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_TARGET = "//docs/examples/prewarmed_cache:serve"
_PROGRAM = "bazel-bin/docs/examples/prewarmed_cache/serve"
_ROOT = "bazel-bin/docs/examples/prewarmed_cache/ready_kernels.root"
_KERNELS = "docs/examples/prewarmed_cache/serving_kernels.py"
_OURS = ("KernelSources", "KernelBinaries", "KernelCache")


class NotSo(Exception):
    """Something that has to hold does not."""


class _CacheServer(http.server.ThreadingHTTPServer):
    """Bazel's HTTP cache protocol: GET and PUT of /ac/<digest> and /cas/<digest>."""

    daemon_threads = True

    def __init__(self, directory: Path) -> None:
        super().__init__(("127.0.0.1", 0), _CacheHandler)
        self.directory = directory

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _CacheHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _CacheServer

    def _place(self) -> Path:
        kind, _, digest = self.path.strip("/").partition("/")
        if kind not in {"ac", "cas"} or not re.fullmatch("[0-9a-f]{64}", digest):
            raise ValueError(self.path)
        return self.server.directory / f"{kind}-{digest}"

    def do_GET(self) -> None:
        try:
            content = self._place().read_bytes()
        except (OSError, ValueError):
            self._answer(404, b"")
        else:
            self._answer(200, content)

    def do_PUT(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        place = self._place()
        fresh = place.with_name(f"{place.name}.{threading.get_ident()}")
        fresh.write_bytes(content)
        fresh.replace(place)
        self._answer(200, b"")

    def _answer(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing of each request."""


@contextmanager
def _cache(directory: Path) -> Iterator[str]:
    """The address of a cache that keeps what it gets in `directory`, for as long as the block."""
    directory.mkdir()
    server = _CacheServer(directory)
    thread = threading.Thread(target=server.serve_forever, name="http-cache")
    thread.start()
    try:
        yield server.url
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Side:
    """A clone with an output base of its own, as a machine of its own would have them."""

    def __init__(self, workspace: Path, directory: Path, options: list[str]) -> None:
        self.clone = directory / "clone"
        self._log = directory / "actions.json"
        self._bazelw: list[str | Path] = [
            self.clone / "bazelw",
            f"--output_base={directory / 'output'}",
        ]
        self._options = options
        directory.mkdir(parents=True)
        subprocess.run(["git", "clone", "--quiet", workspace, self.clone], check=True)

    def build(self, cache: str) -> Counter[str]:
        """Build the program; how often each kind of our actions was run, not fetched."""
        subprocess.run(
            [
                *self._bazelw,
                "build",
                "--disk_cache=",
                f"--remote_cache={cache}",
                f"--execution_log_json_file={self._log}",
                "--noshow_progress",
                *self._options,
                _TARGET,
            ],
            cwd=self.clone,
            check=True,
        )
        ours = [action for action in _actions(self._log) if action["mnemonic"] in _OURS]
        return Counter(action["mnemonic"] for action in ours if not action["cacheHit"])

    def serve(self, **environ: str) -> dict[str, Any]:
        """Run the program, in the clone's own directory; what it reports."""
        done = subprocess.run(
            [self.clone / _PROGRAM],
            cwd=self.clone,
            env={**os.environ, **environ},
            check=True,
            stdout=subprocess.PIPE,
        )
        report: dict[str, Any] = json.loads(done.stdout)
        return report

    def root(self) -> dict[str, str]:
        """The digest of every file of the cache root."""
        top = self.clone / _ROOT
        return {
            str(path.relative_to(top)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in top.rglob("*")
            if path.is_file()
        }

    def expunge(self) -> None:
        """Forget every output, and end the server."""
        subprocess.run([*self._bazelw, "clean", "--expunge"], cwd=self.clone, check=True)


def _actions(log: Path) -> Iterator[dict[str, Any]]:
    """The entries of an execution log: JSON objects, one after the other."""
    text, decoder, at = log.read_text(encoding="utf-8"), json.JSONDecoder(), 0
    while at < len(text):
        entry, at = decoder.raw_decode(text, at)
        yield entry
        while at < len(text) and text[at].isspace():
            at += 1


def _expect(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise NotSo(f"{what}: {found} in place of {wanted}")
    print(f"{what}: {found}", flush=True)


def _ready(who: str, report: dict[str, Any]) -> None:
    names = ("ready_hits", "misses", "bypasses", "generation_builds", "binary_builds")
    told = {name: report[name] for name in names}
    _expect(f"{who}'s program", told, dict(zip(names, (3, 0, 0, 0, 0), strict=True)))
    _expect(f"{who}'s program started", report["programs_started"], [])


def _edited(side: Side) -> str:
    path = side.clone / _KERNELS
    text = path.read_text(encoding="utf-8")
    path.write_text("# A line more.\n" + text.replace("pl.mul(", "pl.add("), encoding="utf-8")
    return text


def _round_trip(scratch: Path, workspace: Path, options: list[str]) -> None:
    with _cache(scratch / "cache") as cache:
        first = Side(workspace, scratch / "one", options)
        second = Side(workspace, scratch / "another" / "place", options)
        try:
            everything = {"KernelSources": 1, "KernelBinaries": 3, "KernelCache": 1}
            _expect("the first side ran", dict(first.build(cache)), everything)
            _ready("the first side", first.serve())
            made = first.root()

            text = _edited(first)
            edited = {"KernelSources": 1, "KernelBinaries": 1, "KernelCache": 1}
            _expect("after an edit of one kernel it ran", dict(first.build(cache)), edited)
            (first.clone / _KERNELS).write_text(text, encoding="utf-8")
            _expect("after taking it back it ran", dict(first.build(cache)), {})

            _expect("the second side ran", dict(second.build(cache)), {})
            _ready("the second side", second.serve(PATH="/usr/local/bin:/usr/bin:/bin"))
            _expect("their roots are equal", second.root() == made, True)
            second.expunge()
            with _cache(scratch / "empty") as empty:
                _expect("without the cache it ran", dict(second.build(empty)), everything)
            _expect("and made the same bytes", second.root() == made, True)
        finally:
            for side in (first, second):
                side.expunge()


def main() -> int:
    """Go both ways; 1 if something is not as it has to be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--hermetic", action="store_true", help="with the compiler of the build")
    options = ["--config=hermetic"] if parser.parse_args().hermetic else []
    workspace = Path(os.environ["BUILD_WORKSPACE_DIRECTORY"])
    with tempfile.TemporaryDirectory(prefix="pypto-round-trip-") as scratch:
        try:
            _round_trip(Path(scratch), workspace, options)
        except NotSo as error:
            print(f"NOT SO: {error}", file=sys.stderr)
            return 1
        finally:
            # Bazel's outputs are read-only, directories too.
            subprocess.run(["chmod", "-R", "u+w", scratch], check=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
