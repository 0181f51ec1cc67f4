"""A directory with a module of kernels and a configuration, and the cache's actions run on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pypto
import pypto_store
import pypto_toolchains
import pytest

ROOT = next(
    parent
    for parent in Path(__file__).parents
    if (parent / "build_tools" / "kernel_cache" / "generate_sources.py").exists()
)
SCRIPTS = ROOT / "build_tools" / "kernel_cache"
LABEL = "//serving:ready_kernels"

KERNELS = """
import pypto.language as pl

SCALE = 2.0
SHIFT = 1.0


@pl.jit
def scale(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        tile = pl.load(x, [0, 0], [16, 64])
        out = pl.store(pl.mul(tile, SCALE), [0, 0], out)
    return out


@pl.jit
def shift(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        tile = pl.load(x, [0, 0], [16, 64])
        out = pl.store(pl.add(tile, SHIFT), [0, 0], out)
    return out
"""


@dataclass
class Workshop:
    """What an action gets: a module, a configuration, an environment; and where its output goes."""

    top: Path
    environ: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.modules = self.top / "modules"
        self.modules.mkdir(parents=True)
        self.config = self.top / "kernels.json"
        self.write(KERNELS)
        self.request("scale", "shift")
        roots = [Path(str(m.__file__)).parents[1] for m in (pypto, pypto_store, pypto_toolchains)]
        self.environ = {
            "PATH": os.environ.get("PATH", os.defpath),
            "PYPTO_TOOL_PATH": "/usr/bin:/bin",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": os.pathsep.join(map(str, [self.modules, SCRIPTS, *roots])),
            "PYTHONSAFEPATH": "1",
            "TMPDIR": os.environ.get("TMPDIR", "/tmp"),
            **self.environ,
        }

    def write(self, text: str) -> None:
        """Replace the module."""
        (self.modules / "kernels.py").write_text(text)

    def request(self, *kernels: str, **more: Any) -> None:
        """Replace the configuration by plain requests, and other fields."""
        requests = [{"kernel": kernel} for kernel in kernels]
        self.config.write_text(json.dumps({"schema_version": 1, "requests": requests, **more}))

    def run(self, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run an action's script."""
        return subprocess.run(
            [sys.executable, str(SCRIPTS / script), *arguments],
            cwd=self.top,
            env=self.environ,
            capture_output=True,
            text=True,
            check=False,
        )

    def generate(
        self, *trees: str, module: str = "kernels", config: str = "kernels.json"
    ) -> subprocess.CompletedProcess[str]:
        """The action KernelSources; a tree is `kernel=directory`, or `=directory` for all."""
        given = [word for tree in trees or ["=sources"] for word in ("--tree", tree)]
        return self.run(
            "generate_sources.py", "--label", LABEL, "--module", module, "--config", config, *given
        )

    def compile(self, sources: str, out: str, *levels: str) -> subprocess.CompletedProcess[str]:
        """The action KernelBinaries."""
        wanted = [word for level in levels or ["x86-64"] for word in ("--cpu-level", level)]
        return self.run(
            "compile_binaries.py", "--label", LABEL, "--sources", sources, "--out", out, *wanted
        )

    def files(self, tree: str) -> dict[str, bytes]:
        """Every file of an output, by its path in it."""
        top = self.top / tree
        return {
            str(path.relative_to(top)): path.read_bytes()
            for path in top.rglob("*")
            if path.is_file()
        }


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    """A workshop with two kernels."""
    return Workshop(tmp_path / "workshop")
