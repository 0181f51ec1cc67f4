"""Real requests under the `content` policy: hits, misses and bypasses of whole processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mutations import PACKAGES
from private_toolchain import PrivateToolchain

IMPORT_ROOTS = [str(Path(str(module.__file__)).absolute().parents[1]) for module in PACKAGES]

_PROGRAM = """
import dataclasses, json, os, sys
started = []
sys.addaudithook(
    lambda event, detail: started.append(str(detail[0]))
    if event in {"subprocess.Popen", "os.posix_spawn", "os.exec", "os.system"}
    else None
)
import pypto
import kernels
compiled = kernels.kernel.warmup()
stats = dataclasses.asdict(pypto.cache_stats())
print(json.dumps({"key": compiled.artifact_key, "started": started, "stats": stats}))
"""
_KERNELS = """
import pypto.language as pl


@pl.jit
def kernel(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="twice"):
        out = pl.store(pl.mul(pl.load(x, [0, 0], [16, 64]), 2.0), [0, 0], out)
    return out
"""


class Processes:
    """Processes of one user with one cache, and a compiler whose files may be changed."""

    def __init__(self, top: Path) -> None:
        self.top = top
        (top / "kernels.py").write_text(_KERNELS)
        self.toolchain = PrivateToolchain(top / "toolchain")
        self.toolchain.add_own_headers()
        self.environ = {
            "PATH": f"{self.toolchain.bin}:{os.environ['PATH']}",
            "HOME": str(top),
            "PYTHONPATH": os.pathsep.join([*IMPORT_ROOTS, str(top)]),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYPTO_CACHE": "1",
            "PYPTO_CACHE_DIR": str(top / "cache"),
        }

    def run(self, policy: str, **variables: str) -> dict[str, Any]:
        """What one process reports that needs the kernel ready."""
        environ = {**self.environ, "PYPTO_CACHE_IDENTITY": policy, **variables}
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            cwd=self.top,
            env=environ,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return report


@pytest.fixture
def processes(tmp_path: Path) -> Processes:
    return Processes(tmp_path)


@pytest.mark.conforms("cache.97", "cache.98")
def test_the_policies_live_beside_each_other_in_one_root(processes: Processes) -> None:
    built, identified = (processes.run(policy) for policy in ("build", "content"))
    for first in (built, identified):
        assert first["stats"]["bypasses"] == 0, first["stats"]
        assert first["stats"]["generation_builds"] == first["stats"]["binary_builds"] == 1
    assert built["key"] != identified["key"]
    for policy, first in (("build", built), ("content", identified)):
        again = processes.run(policy)
        assert again["key"] == first["key"]
        assert again["stats"]["ready_hits"] == 1
        assert again["stats"]["generation_builds"] == again["stats"]["binary_builds"] == 0
        assert again["started"] == []
    # A header that a compile reads: only one of the two looks at it.
    with (processes.toolchain.own_include / "stddef.h").open("a") as file:
        file.write("\n")
    assert processes.run("build")["stats"]["ready_hits"] == 1
    patched = processes.run("content")
    assert patched["stats"]["ready_hits"] == 0
    assert patched["stats"]["binary_builds"] == 1
    assert patched["key"] not in (built["key"], identified["key"])


@pytest.mark.conforms("cache.99")
@pytest.mark.parametrize(
    ("name", "value"), [("CPATH", "/nowhere"), ("LD_PRELOAD", ""), ("LIBRARY_PATH", "/nowhere")]
)
def test_a_bypass_says_why(processes: Processes, name: str, value: str) -> None:
    report = processes.run("content", **{name: value})
    assert report["key"] is None
    assert report["stats"]["bypasses"] >= 1
    assert report["stats"]["last_bypass_reason"].startswith(f"toolchain: {name} ")
    assert not list((processes.top / "cache").glob("artifacts/v1/*/*"))
    assert processes.run("build", **{name: value})["stats"]["bypasses"] == 0
