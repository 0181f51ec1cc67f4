"""What the simulation of a small fleet says: who builds, who fetches, who asks nobody."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pypto_store
import pytest

SCRIPT = Path(__file__).absolute().parents[2] / "benchmarks" / "fleet.py"
KERNELS = 3


@pytest.mark.parametrize("server", ["casd", "nginx"])
def test_a_fleet_of_two_shares_everything(programs: dict[str, Path], server: str) -> None:
    assert {"casd", "nginx"} <= programs.keys()
    if server == "casd":
        pytest.importorskip("grpc", reason="pypto[remote] is not installed")
    # Where Python takes no path from a script, too.
    roots = [Path(str(pypto_store.__file__)).absolute().parents[1], SCRIPT.parent]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--clients=2", f"--kernels={KERNELS}", f"--servers={server}"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, roots))},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    fleet, roots, warm = json.loads(done.stdout)
    assert [row["phase"] for row in (fleet, roots, warm)] == [
        "cold fleet",
        "cold roots",
        "warm roots",
    ]
    assert KERNELS <= fleet["builds"] <= 2 * KERNELS
    assert fleet["builds"] + fleet["fetched"] == 2 * KERNELS
    assert fleet["stored_bytes"] < fleet["content_bytes"]
    assert (roots["builds"], roots["fetched"], roots["up_bytes"]) == (0, 2 * KERNELS, 0)
    assert (warm["builds"], warm["fetched"], warm["requests"]) == (0, 0, 0)
    # An entry is one exchange and its blobs are one of REAPI; of HTTP each blob is one.
    files = 15
    blobs = 2 if server == "casd" else files
    opened = 1 if server == "casd" else 0
    assert roots["requests"] == 2 * (opened + KERNELS * (2 + blobs))
