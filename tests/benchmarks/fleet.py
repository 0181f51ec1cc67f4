"""A fleet of clients, each with a root of its own, at one cache server.

    python tests/benchmarks/fleet.py --clients 1,2,4,8,16 --servers casd,nginx

Every client is a process that asks for the same kernels, each in an order of its own, as pods of
one deployment do. Three times: when neither the server nor their roots have anything (cold fleet),
with new roots at the server as it is then (cold roots), and again with these roots (warm roots). A
compile is a pause: what is measured is sharing, and the clients have the cores of this one machine.

An entry has as many files, as large and as often shared as those of dedupe.py on the average: 9
of sources and 6 of binaries, 13 and 46 KiB. The kernels of a fleet differ from those of another.

    requests    at the server. REAPI: calls; of many blobs one. HTTP: one for each blob
    builds      of binaries, in the whole fleet: at best one for each kernel, in a cold fleet
    fetched     binaries that came from the server
    down, up    content that moved
    kept        what the server stores, of the content of all entries that were built
    first       from the start until a client has its first kernel, of all clients

The servers are those of remote_fetch.py. On a terminal there is a table, elsewhere JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from counted_engine import CountedEngine, Traffic
from pypto_store import (
    ArtifactKey,
    ArtifactSpec,
    ArtifactStore,
    Digest,
    Fetched,
    Hit,
    Published,
    RemoteConfig,
    State,
)
from pypto_store.remote.engines import open_engine
from pypto_store.remote.tier import RemoteTier

# Seconds of a compile, by the state that it makes.
COMPILE = {State.GENERATED: 0.02, State.READY: 0.2}
# Files of one entry, by its state: name -> bytes. Those of SHARED are equal in kernels of a family.
FILES = {
    State.GENERATED: {
        "kernel_config.json": 1_100,
        "program.json": 2_200,
        "compiled_meta.json": 700,
        "orchestration/host.cpp": 1_900,
        "orchestration/tables.h": 1_300,
        "kernels/aiv/first.cpp": 1_900,
        "kernels/aiv/first.pto": 1_500,
        "kernels/aiv/second.cpp": 1_900,
        "kernels/aiv/second.pto": 1_300,
    },
    State.READY: {
        "kernel_config.json": 1_100,
        "binaries.json": 900,
        "compiled_meta.json": 700,
        "orchestration/host.so": 17_000,
        "kernels/first.so": 14_000,
        "kernels/second.so": 13_000,
    },
}
SHARED = ("orchestration/tables.h", "orchestration/host.so")
FAMILY = 3  # kernels
SERVERS = ("casd", "nginx")
_FLUSH = 120.0  # seconds
_PATIENCE = 300.0  # seconds for a client to start or to end


class _Faults:
    """An observer of a tier that keeps what went wrong."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def hit(self, size: int, ns: int) -> None:
        """Counted by what the store says."""

    def miss(self, ns: int) -> None:
        """Counted by what the store says."""

    def fault(self, reason: str, ns: int) -> None:
        """A fleet with faults is no figure."""
        self.reasons.append(reason)

    def uploaded(self, size: int, ns: int) -> None:
        """Counted by the engine."""


def content(name: str, size: int, fleet: int, kernel: int) -> bytes:
    """A file of a kernel: half of it like any other, as libraries and sources are."""
    whose = f"family {kernel // FAMILY}" if name in SHARED else f"kernel {kernel}"
    half = random.Random(f"{fleet} {whose} {name}").randbytes(size // 2)
    return half + bytes(size - len(half))


def spec_of(state: State) -> ArtifactSpec:
    """The specification of either state."""
    if state is State.GENERATED:
        return ArtifactSpec(state, "l2", ("kernel_config.json",))
    return ArtifactSpec(state, "l2", tuple(FILES[state]), ("a2a3sim",), "x86-64")


@dataclass(frozen=True, slots=True)
class Job:
    """What one client does: the kernels of `fleet`, in the order that `seed` gives."""

    url: str
    root: str
    fleet: int
    kernels: int
    seed: int


def client(job: Job) -> dict[str, object]:
    """Ask for every kernel once somebody says so on standard input."""
    traffic, faults = Traffic(), _Faults()
    config = RemoteConfig(job.url)
    batched = config.scheme == "grpc"
    # What it imports is there before the start: machines do that each for itself.
    open_engine(config).close()
    tier = RemoteTier(
        config,
        faults,
        open_engine=lambda chosen: CountedEngine(open_engine(chosen), traffic, batched=batched),
    )
    order = list(range(job.kernels))
    random.Random(job.seed).shuffle(order)
    outcomes = {Published: 0, Fetched: 0, Hit: 0}
    first = 0.0
    with closing(tier):
        store = ArtifactStore(Path(job.root), remote=tier)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        begun = time.perf_counter()
        for kernel in order:
            for state in (State.GENERATED, State.READY):
                outcome = _ask(store, job, kernel, state)
            outcomes[outcome] += 1  # of READY, the last
            first = first or time.perf_counter() - begun
        done = time.perf_counter() - begun
        if not tier.flush(_FLUSH):
            faults.reasons.append("not everything was sent")
    if faults.reasons:
        raise SystemExit(faults.reasons[0])
    return {
        "builds": outcomes[Published],
        "fetched": outcomes[Fetched],
        "first": first,
        "done": done,
        **asdict(traffic),
    }


def _ask(store: ArtifactStore, job: Job, kernel: int, state: State) -> type:
    def build(directory: Path) -> None:
        time.sleep(COMPILE[state])
        for name, size in FILES[state].items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content(name, size, job.fleet, kernel))

    blank = Digest("0" * 64)
    key = ArtifactKey(blank, blank, Digest(f"{job.fleet:064x}"), blank, Digest(f"{kernel:064x}"))
    private = Path(job.root).with_suffix(".private")
    return type(store.get_or_build(key, spec_of(state), build, private_parent=private))


@dataclass(frozen=True, slots=True)
class Row:
    """One fleet in one phase; bytes of all its clients, seconds."""

    server: str
    phase: str
    clients: int
    kernels: int
    builds: int
    fetched: int
    requests: int
    down_bytes: int
    up_bytes: int
    stored_bytes: int
    content_bytes: int
    first_p50_s: float
    first_p99_s: float
    all_s: float


def run_clients(jobs: Sequence[Job]) -> list[dict[str, float]]:
    """What each of them measured; they start together."""
    command = [sys.executable, os.path.abspath(__file__), "--client"]
    with contextlib.ExitStack() as stack:
        running = []
        for job in jobs:
            process = subprocess.Popen(
                [*command, json.dumps(asdict(job))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            stack.callback(_end, process)
            running.append(process)
        for process in running:
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                raise SystemExit("a client did not start; see what it wrote")
        for process in running:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        return [_answer(process) for process in running]


def _answer(process: subprocess.Popen[str]) -> dict[str, float]:
    said, _ = process.communicate(timeout=_PATIENCE)
    if process.returncode:
        raise SystemExit(f"a client ended with status {process.returncode}; see what it wrote")
    measured: dict[str, float] = json.loads(said)
    return measured


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def measure(
    server: str, sizes: Sequence[int], kernels: int, made: Mapping[str, Path]
) -> Iterator[Row]:
    """Fleets of every size at one server, a fleet after the other."""
    # Servers are started as the tests start them.
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration" / "remote"))
    import remotes

    with tempfile.TemporaryDirectory(prefix="pypto-fleet-") as scratch:
        place = Path(scratch)
        with remotes.RUNNING[server](made, place / "server") as config:
            for fleet, clients in enumerate(sizes):
                before = _stored(place / "server")
                for phase, roots in (("cold fleet", "a"), ("cold roots", "b"), ("warm roots", "b")):
                    sys.stderr.write(f"{server}, {clients} clients, {phase} ...\n")
                    jobs = [
                        Job(config.url, f"{place}/{fleet}{roots}{number}", fleet, kernels, number)
                        for number in range(clients)
                    ]
                    found = run_clients(jobs)
                    kept = _stored(place / "server") - before
                    yield _row(server, phase, clients, kernels, found, kept)


def _stored(directory: Path) -> int:
    """Bytes of all files that the server keeps, each once."""
    found = {}
    for path in directory.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            status = path.stat(follow_symlinks=False)
            if path.is_file():
                found[status.st_ino] = status.st_size
    return sum(found.values())


def _row(
    server: str,
    phase: str,
    clients: int,
    kernels: int,
    found: Sequence[Mapping[str, float]],
    kept: int,
) -> Row:
    def total(name: str) -> int:
        return int(sum(client[name] for client in found))

    first = sorted(client["first"] for client in found)
    return Row(
        server=server,
        phase=phase,
        clients=clients,
        kernels=kernels,
        builds=total("builds"),
        fetched=total("fetched"),
        requests=total("requests"),
        down_bytes=total("down"),
        up_bytes=total("up"),
        stored_bytes=kept,
        content_bytes=kernels * sum(sum(files.values()) for files in FILES.values()),
        first_p50_s=_percentile(first, 0.5),
        first_p99_s=_percentile(first, 0.99),
        all_s=max(client["done"] for client in found),
    )


def _percentile(ascending: Sequence[float], part: float) -> float:
    return ascending[min(len(ascending) - 1, int(len(ascending) * part))]


def table(rows: Sequence[Row]) -> str:
    """At most 100 columns."""
    lines = [
        f"{'server':<7}{'phase':<11}{'clients':>8}{'builds':>8}{'fetched':>8}{'requests':>9}"
        f"{'down MB':>9}{'up MB':>7}{'kept MB':>8}{'first p50':>11}{'p99 ms':>8}{'all':>6}"
    ]
    lines += [
        f"{row.server:<7}{row.phase:<11}{row.clients:>8}{row.builds:>8}{row.fetched:>8}"
        f"{row.requests:>9}{row.down_bytes / 1e6:>9.2f}{row.up_bytes / 1e6:>7.2f}"
        f"{row.stored_bytes / 1e6:>8.2f}{row.first_p50_s * 1e3:>11.0f}{row.first_p99_s * 1e3:>8.0f}"
        f"{row.all_s:>6.1f}"
        for row in rows
    ]
    return "\n".join(lines)


def _numbers(text: str) -> tuple[int, ...]:
    sizes = tuple(int(part) for part in text.split(","))
    if not all(1 <= size <= 64 for size in sizes):
        raise argparse.ArgumentTypeError("a fleet here has 1 to 64 clients, each of them a process")
    return sizes


def main() -> None:
    """Run as a script."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--clients", type=_numbers, default=(1, 2, 4, 8, 16), help="1,2,4,8,16")
    options.add_argument("--kernels", type=int, default=24, help="%(default)s")
    options.add_argument("--servers", default=",".join(SERVERS), help="%(default)s")
    options.add_argument("--json", action="store_true", help="print JSON also on a terminal")
    options.add_argument("--client", metavar="JOB", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.client is not None:
        sys.stdout.write(json.dumps(client(Job(**json.loads(chosen.client)))) + "\n")
        return
    from remote_fetch import programs

    made = programs()
    if made is None:
        raise SystemExit("no cache servers; ./bazelw build //tests/integration/remote/...")
    rows = [
        row
        for server in chosen.servers.split(",")
        for row in measure(server, chosen.clients, chosen.kernels, made)
    ]
    if sys.stdout.isatty() and not chosen.json:
        sys.stdout.write(table(rows) + "\n")
    else:
        sys.stdout.write(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
