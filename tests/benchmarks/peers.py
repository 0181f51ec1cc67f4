"""First and next warm hits of other caches, for the column beside rows 1 and 3.

    python tests/benchmarks/peers.py           all that are installed, each in processes of its own
    python tests/benchmarks/peers.py numba     one of them

None of these validates what it loads. As in row 1, imports are outside the interval: a process
imports, then asks for a small function that an earlier process left in the peer's cache, and for a
second one. Peers that are not installed are skipped, and said to be.
"""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

RUNS = 5

# Each prints the seconds of a first and of a next hit; argv[1] is its cache.
_TIMED = """
import json, sys, time
cache = sys.argv[1]
{imports}
begin = time.perf_counter()
{first}
middle = time.perf_counter()
{second}
end = time.perf_counter()
print(json.dumps([middle - begin, end - middle]))
"""


@dataclass(frozen=True, slots=True)
class Peer:
    """Another cache: its name, the module it needs, and the program that asks it twice."""

    name: str
    module: str
    imports: str
    first: str
    second: str

    @property
    def program(self) -> str:
        """The whole program."""
        return _TIMED.format(imports=self.imports, first=self.first, second=self.second)


PEERS = (
    Peer(
        "JAX",
        "jax",
        """
import os
os.environ["JAX_PLATFORMS"] = "cpu"
import jax, jax.numpy as jnp
jax.config.update("jax_compilation_cache_dir", cache)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
a = jnp.ones((64, 64))
jax.block_until_ready(a)
""",
        "jax.block_until_ready(jax.jit(lambda x, y: x + y)(a, a))",
        "jax.block_until_ready(jax.jit(lambda x: x * 2.5)(a))",
    ),
    Peer(
        "numba",
        "numba",
        """
import os
os.environ["NUMBA_CACHE_DIR"] = cache
import numpy, numba
sys.path.insert(0, cache)
import peer_kernels
a = numpy.ones((64, 64), numpy.float32)
""",
        "peer_kernels.add(a, a, a)",
        "peer_kernels.scale(a, 2.5, a)",
    ),
    Peer(
        "cpp_extension",
        "torch",
        """
import os, torch, torch.utils.cpp_extension as extension
def load(name, body):
    place = os.path.join(cache, name)  # two extensions in one directory overwrite each other
    os.makedirs(place, exist_ok=True)
    source = "#include <torch/extension.h>\\nvoid %s(at::Tensor a, at::Tensor out) { %s }" % (
        name, body)
    return extension.load_inline(name, source, functions=[name], build_directory=place)
a, out = torch.ones(64, 64), torch.ones(64, 64)
""",
        'load("peer_add", "at::add_out(out, a, a);").peer_add(a, out)',
        'load("peer_scale", "at::mul_out(out, a, a);").peer_scale(a, out)',
    ),
)
_NUMBA_MODULE = """
import numba

@numba.njit(cache=True)
def add(a, b, out):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] = a[i, j] + b[i, j]

@numba.njit(cache=True)
def scale(a, factor, out):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] = a[i, j] * factor
"""


def seconds(peer: Peer, runs: int) -> tuple[float, float] | None:
    """Medians of a first and of a next hit; None if the peer is not installed."""
    if importlib.util.find_spec(peer.module) is None:
        return None
    with tempfile.TemporaryDirectory() as cache:
        Path(cache, "peer_kernels.py").write_text(_NUMBA_MODULE, encoding="utf-8")
        rows = [_ask(peer, cache) for _ in range(runs + 1)]
    return (
        statistics.median(first for first, _ in rows[1:]),
        statistics.median(following for _, following in rows[1:]),
    )


def _ask(peer: Peer, cache: str) -> tuple[float, float]:
    environ = {**os.environ, "PYTHONPYCACHEPREFIX": f"{cache}/bytecode"}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    result = subprocess.run(
        [sys.executable, "-c", peer.program, cache],
        env=environ,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    first, following = json.loads(result.stdout.splitlines()[-1])
    return first, following


def lines(runs: int, told: Callable[[str], object], names: frozenset[str]) -> list[str]:
    """A line for each peer of `names`, all of them if that is empty; `told` hears of progress."""
    found = []
    for peer in PEERS:
        if names and peer.name not in names:
            continue
        told(f"{peer.name} ...\n")
        row = seconds(peer, runs)
        if row is None:
            found.append(f"{peer.name:<15}skipped: {peer.module} is not installed in this Python")
        else:
            found.append(
                f"{peer.name:<15}first {row[0] * 1e3:8.2f} ms   next {row[1] * 1e3:8.2f} ms"
            )
    return found


def main() -> None:
    """Run as a script."""
    names = frozenset(sys.argv[1:])
    if unknown := names.difference(peer.name for peer in PEERS):
        raise SystemExit(f"no peer {min(unknown)!r}; there are {', '.join(p.name for p in PEERS)}")
    sys.stdout.write("\n".join(lines(RUNS, sys.stderr.write, names)) + "\n")


if __name__ == "__main__":
    main()
