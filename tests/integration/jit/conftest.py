"""Requests made in fresh processes, each reporting what it saw as JSON."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pypto
import pypto_store
import pypto_toolchains
import pytest

IMPORT_ROOTS = [
    str(Path(str(module.__file__)).absolute().parents[1])
    for module in (pypto, pypto_store, pypto_toolchains)
]

KERNELS = """
import pypto.language as pl

SCALE = 2.0


@pl.jit.incore
def helper(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    tile = pl.load(x, [0, 0], [16, 64])
    out = pl.store(pl.mul(tile, SCALE), [0, 0], out)
    return out


@pl.jit
def kernel(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    out = helper(x, out)
    return out
"""

# Runs in the child: imports the kernels, runs the step, reports.
_CHILD = """
import dataclasses, importlib, json, os, sys
started = []
sys.addaudithook(
    lambda event, detail: started.append(str(detail[0]))
    if event in {"subprocess.Popen", "os.posix_spawn", "os.exec", "os.system"}
    else None
)
job = json.loads(sys.argv[1])
sys.path.insert(0, job["modules"])
import pypto
from pathlib import Path
if job["root"] is not None:
    pypto.configure_cache(
        pypto.CacheConfig(enabled=True, root=Path(job["root"]), **job["cache"])
    )
kernels = importlib.import_module("kernels")
report = {}
exec(job["step"])
report.setdefault("error", None)
report["started"] = started
report["stats"] = dataclasses.asdict(pypto.cache_stats())
print(json.dumps(report))
"""

_COMPILE = """
compiled = kernels.kernel.compile()
report["key"] = compiled.artifact_key
report["has_program"] = compiled.program is not None
"""
_WARM = """
compiled = kernels.kernel.warmup()
report["key"] = compiled.artifact_key
report["has_program"] = compiled.program is not None
import time
for _ in range(200):  # the thread that helped to hash sources ends by itself; a worker stays
    report["threads"] = sorted(os.listdir("/proc/self/task")) == [str(os.getpid())]
    if report["threads"]:
        break
    time.sleep(0.05)
"""
_RUN = """
import torch
x = torch.arange(16 * 64, dtype=torch.float32).reshape(16, 64)
out = torch.zeros(16, 64)
kernels.kernel(x, out)
report["correct"] = torch.equal(out, x * kernels.SCALE)
"""
_FAIL = """
try:
    kernels.kernel.compile()
except Exception as error:
    report["error"] = {"type": type(error).__name__, "text": str(error)}
"""


@dataclass
class House:
    """A directory with a module of kernels, a cache root and a working directory."""

    # Steps for `run`; they may be joined.
    COMPILE: ClassVar[str] = _COMPILE
    WARM: ClassVar[str] = _WARM
    RUN: ClassVar[str] = _RUN
    FAIL: ClassVar[str] = _FAIL
    KERNELS: ClassVar[str] = KERNELS

    top: Path
    root: Path | None = None
    import_roots: Sequence[str] = field(default_factory=lambda: list(IMPORT_ROOTS))

    def __post_init__(self) -> None:
        self.modules = self.top / "modules"
        self.work = self.top / "work"
        for directory in (self.modules, self.work):
            directory.mkdir(parents=True, exist_ok=True)
        if self.root is None:
            self.root = self.top / "cache"
        self.write(KERNELS)

    def write(self, text: str) -> None:
        """Replace the module."""
        (self.modules / "kernels.py").write_text(text)

    def start(
        self,
        step: str,
        *,
        cached: bool = True,
        cache: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> subprocess.Popen[str]:
        """Start a child that does `step`."""
        job = {
            "modules": str(self.modules),
            "root": str(self.root) if cached else None,
            "cache": {
                name: [str(item) for item in value] if isinstance(value, tuple) else value
                for name, value in (cache or {}).items()
            },
            "step": step,
        }
        environ = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(self.import_roots),
            "PYTHONDONTWRITEBYTECODE": "1",
            "HOME": str(self.top),
            **(env or {}),
        }
        return subprocess.Popen(
            [sys.executable, "-c", _CHILD, json.dumps(job)],
            cwd=cwd or self.work,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, step: str, **options: Any) -> dict[str, Any]:
        """Do `step` in a child; gives its report."""
        return self.finish(self.start(step, **options))

    def slots(self, state: str) -> list[Path]:
        """The directories of all entries of a state."""
        assert self.root is not None
        depth = "*/*/generated" if state == "generated" else "*/*/ready/*"
        return sorted((self.root / "artifacts" / "v1").glob(depth))

    @staticmethod
    def finish(child: subprocess.Popen[str]) -> dict[str, Any]:
        """Wait for a child's report."""
        out, err = child.communicate(timeout=300)
        assert child.returncode == 0, err
        report: dict[str, Any] = json.loads(out.splitlines()[-1])
        return report

    @staticmethod
    def tree(root: Path) -> dict[str, bytes | str]:
        """Every path below `root` with its content, for comparison."""
        found: dict[str, bytes | str] = {}
        for path in sorted(root.rglob("*")):
            name = str(path.relative_to(root))
            found[name] = path.read_bytes() if path.is_file() else "directory"
        return found


@pytest.fixture
def house(tmp_path: Path) -> House:
    """A house with an empty cache."""
    return House(tmp_path)


@pytest.fixture(scope="session")
def _filled(tmp_path_factory: pytest.TempPathFactory) -> House:
    house = House(tmp_path_factory.mktemp("filled"))
    report = house.run(house.WARM)
    assert report["stats"]["bypasses"] == 0, report
    assert report["stats"]["generation_builds"] == report["stats"]["binary_builds"] == 1
    return house


@pytest.fixture
def filled(_filled: House, tmp_path: Path) -> House:
    """A house whose cache has the kernel, GENERATED and READY; its own copy."""
    assert _filled.root is not None
    shutil.copytree(_filled.root, tmp_path / "cache", symlinks=True)
    return House(tmp_path)
