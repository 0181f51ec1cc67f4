"""Installations with a hermetic toolchain, whose requests are made in processes of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pypto
import pypto_store
import pypto_toolchains
import torch

PACKAGES = (pypto, pypto_store, pypto_toolchains)
PLATFORMS = ("a2a3sim", "a5sim")

# A vector kernel, a matrix kernel, and one in C++ that includes the standard library.
KERNELS = """
import pypto.language as pl


@pl.jit
def doubled(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="twice"):
        out = pl.store(pl.mul(pl.load(x, [0, 0], [16, 64]), 2.0), [0, 0], out)
    return out


@pl.jit
def product(
    a: pl.Tensor[[16, 32], pl.FP32],
    b: pl.Tensor[[32, 16], pl.FP32],
    out: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="block"):
        left = pl.load(a, [0, 0], [16, 32], target_memory=pl.Mem.Mat)
        right = pl.load(b, [0, 0], [32, 16], target_memory=pl.Mem.Mat)
        out = pl.store(pl.matmul(left, right), [0, 0], out)
    return out


@pl.jit.extern(core_type="aiv", source="cpp/clamp.cpp")
def clamp(x: pl.Tensor, out: pl.Out[pl.Tensor]): ...


@pl.jit
def clamped(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    out = clamp(x, out)
    return out
"""

# __FILE__ and a header of the toolchain's that names itself bring directories into the output.
CLAMP = """
#include "pypto_rt/kernel_abi.h"
#include <algorithm>
#include <cmath>

__attribute__((used)) static const char* const here = __FILE__;

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  const auto* x = reinterpret_cast<const ChipTensor*>(args[0]);
  const auto* out = reinterpret_cast<const ChipTensor*>(args[1]);
  for (int64_t i = 0; i < x->shapes[0] * x->shapes[1]; ++i) {
    tensor_data<float>(out)[i] = std::clamp(tensor_data<float>(x)[i], 3.0f, 40.5f);
  }
}
"""

# Runs in the child. What the results should be is worked out by plain arithmetic.
_CHILD = """
import dataclasses, json, os, sys
job = json.loads(sys.argv[1])
os.umask(job["umask"])
sys.path.insert(0, job["modules"])
sys.dont_write_bytecode = True
import torch, pypto, kernels
from pypto.runtime import RunConfig
config = RunConfig(platform=job["platform"])
report = {"keys": {}, "wrong": []}
values = [float(i % 97) for i in range(1024)]

def run(name, expected, *inputs):
    kernel = getattr(kernels, name)
    out = torch.zeros(expected["shape"])
    report["keys"][name] = kernel.compile(*inputs, out, config=config).artifact_key
    kernel(*inputs, out, config=config)
    if out.flatten().tolist() != expected["values"]:
        report["wrong"].append(name)

x = torch.tensor(values).reshape(16, 64)
run("doubled", {"shape": (16, 64), "values": [2 * v for v in values]}, x)
run("clamped", {"shape": (16, 64), "values": [min(max(v, 3.0), 40.5) for v in values]}, x)
a, b = values[:512], values[512:]
product = [
    sum(a[32 * i + k] * b[16 * k + j] for k in range(32)) for i in range(16) for j in range(16)
]
run(
    "product", {"shape": (16, 16), "values": product},
    torch.tensor(a).reshape(16, 32), torch.tensor(b).reshape(32, 16),
)
report["stats"] = dataclasses.asdict(pypto.cache_stats())
report["uid"] = os.getuid()
print(json.dumps(report))
"""

_NO_SOURCES = shutil.ignore_patterns("__pycache__", "BUILD.bazel")


@dataclass(frozen=True)
class Shell:
    """How a user happens to start a process."""

    environ: Mapping[str, str]
    umask: int = 0o022


class Place:
    """An installation in `top`, beside a copy of a toolchain and a module of kernels.

    It is what is installed here, or the same as `another`, whatever is edited here meanwhile.
    """

    def __init__(self, top: Path, toolchain: Path, another: Place | None = None) -> None:
        self.top = top
        self.site = top / "site"
        for module in PACKAGES:
            source = Path(str(module.__file__)).parent
            if another is not None:
                source = another.site / source.name
            shutil.copytree(source, self.site / source.name, ignore=_NO_SOURCES)
        self.toolchain = top / "tools"
        _copy_with_links(toolchain, self.toolchain)
        self.modules = top / "modules"
        (self.modules / "cpp").mkdir(parents=True)
        (self.modules / "kernels.py").write_text(KERNELS)
        (self.modules / "cpp/clamp.cpp").write_text(CLAMP)
        self.root = top / "cache"
        self.work = top / "work"
        self.work.mkdir()

    @property
    def description(self) -> Path:
        """What PYPTO_TOOLCHAIN names."""
        return self.toolchain / "identity.json"

    def environ(self, shell: Shell) -> dict[str, str]:
        """The environment of the place's processes."""
        return {
            "PYTHONPATH": os.pathsep.join([str(self.site), str(Path(torch.__file__).parents[1])]),
            "PYPTO_CACHE": "1",
            "PYPTO_CACHE_DIR": str(self.root),
            "PYPTO_CACHE_IDENTITY": "hermetic",
            "PYPTO_TOOLCHAIN": str(self.description),
            **shell.environ,
        }

    def run(
        self, shell: Shell, *, platform: str = "a2a3sim", confined: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Run every kernel in a child, started by the command `confined`; gives its report."""
        job = {"modules": str(self.modules), "platform": platform, "umask": shell.umask}
        report = self.do(_CHILD, json.dumps(job), shell=shell, confined=confined)
        assert report["wrong"] == []
        return report

    def do(
        self, code: str, *arguments: str, shell: Shell, confined: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Run Python code in a child; gives the JSON that it prints last."""
        done = subprocess.run(
            [*confined, sys.executable, "-c", code, *arguments],
            cwd=self.work,
            env=self.environ(shell),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return report

    def entries(self) -> dict[str, bytes]:
        """The content of every file of every entry, but for what is there for readers alone."""
        artifacts = self.root / "artifacts"
        return {
            str(path.relative_to(artifacts)): path.read_bytes()
            for path in sorted(artifacts.rglob("*"))
            if path.is_file()
        }


def _copy_with_links(source: Path, target: Path) -> None:
    """Give a tree a second place. Its files keep their inodes if the file system allows."""
    for directory, _, names in os.walk(source, followlinks=True):
        here = target / os.path.relpath(directory, source)
        here.mkdir(parents=True)
        for name in names:
            content = os.path.realpath(os.path.join(directory, name))
            try:
                os.link(content, here / name)
            except OSError:
                shutil.copy(content, here / name)
