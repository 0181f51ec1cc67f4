"""Whole processes: policies share no entry, and selected checkouts are what is compiled with."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from described_toolchains import declare, edit
from doubling_kernel import KERNELS
from mutations import PACKAGES, make_writable
from pypto.runtime.sdk import default_sdk_root

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None or shutil.which("git") is None, reason="needs g++ and git"
)

IMPORT_ROOTS = [str(Path(str(module.__file__)).absolute().parents[1]) for module in PACKAGES]

PROGRAM = """
import dataclasses, json, sys
import pypto, kernels, torch
started = []
sys.addaudithook(
    lambda event, detail: started.append(str(detail[0])) if event == "subprocess.Popen" else None
)
compiled = kernels.kernel.warmup()
out = torch.zeros(16, 64)
compiled(torch.ones(16, 64), out)
print(json.dumps({
    "key": compiled.artifact_key, "value": float(out[0, 0]), "started": started,
    "stats": dataclasses.asdict(pypto.cache_stats()),
}))
"""


class Processes:
    """Processes of one user with one cache."""

    def __init__(self, top: Path) -> None:
        self.top = top
        (top / "kernels.py").write_text(KERNELS)
        dropped = ("PYPTO_", "PTO", "GIT_", "PYTHON", "LD_")
        self.environ = {
            **{n: v for n, v in os.environ.items() if not n.startswith(dropped)},
            "HOME": str(top),
            "PYTHONPATH": os.pathsep.join([*IMPORT_ROOTS, str(top)]),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYPTO_CACHE": "1",
            "PYPTO_CACHE_DIR": str(top / "cache"),
        }

    def run(self, **variables: str) -> dict[str, Any]:
        """What one process reports that needs the kernel ready, and runs it."""
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            cwd=self.top,
            env={**self.environ, **variables},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        assert report["value"] == 2.0
        return report


@pytest.fixture
def processes(tmp_path: Path) -> Processes:
    return Processes(tmp_path)


def built(report: dict[str, Any]) -> bool:
    """Whether a request found nothing and published what it built."""
    stats = report["stats"]
    assert report["key"] is not None, stats["last_bypass_reason"]
    assert stats["misses"] == stats["generation_builds"] == stats["binary_builds"]
    assert stats["misses"] + stats["ready_hits"] == 1
    return bool(stats["misses"])


def declared_compiler(top: Path) -> Path:
    """The description of a toolchain whose compiler is this machine's, behind a script."""
    found = shutil.which("g++")
    assert found is not None
    top.mkdir()
    compiler = top / "cxx"
    compiler.write_text(f'#!/bin/sh\nPATH={os.defpath} exec {os.path.realpath(found)} "$@"\n')
    compiler.chmod(0o755)
    description = declare(top, default_sdk_root())
    tool = {"argv": ["cxx"], "dialect": "gcc"}
    edit(description, lambda said: said.update(tools={"host_cxx": tool}))
    return description


@pytest.mark.conforms("cache.97")
def test_three_policies_share_a_root_and_no_entry(processes: Processes, tmp_path: Path) -> None:
    declared = declared_compiler(tmp_path / "toolchain")
    policies = {
        "build": {},
        "content": {},
        "hermetic": {"PYPTO_TOOLCHAIN": str(declared)},
    }
    keys = set()
    for policy, variables in policies.items():
        report = processes.run(PYPTO_CACHE_IDENTITY=policy, **variables)
        assert built(report), policy
        keys.add(report["key"])
    assert len(keys) == len(policies)
    for policy, variables in policies.items():
        report = processes.run(PYPTO_CACHE_IDENTITY=policy, **variables)
        assert not built(report), policy
        assert report["key"] in keys
        assert not report["started"]
    assert processes.run()["key"] in keys
    assert built(processes.run(PYPTO_CACHE_EPOCH="2"))


def checkout(path: Path) -> str:
    """A checkout of the SDK's sources; its commit."""
    shutil.copytree(default_sdk_root(), path)
    make_writable(path)
    metadata = json.loads((path / "sdk.json").read_text())
    del metadata["revision"]
    (path / "sdk.json").write_text(json.dumps(metadata))
    git(path, "init", "-q")
    return commit(path)


def commit(path: Path) -> str:
    git(path, "add", "-A")
    git(path, "-c", "user.name=n", "-c", "user.email=e@x", "commit", "-q", "-m", "x")
    return git(path, "rev-parse", "HEAD")


def git(path: Path, *words: str) -> str:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    told = subprocess.run(
        ["git", *words], cwd=path, env=environ, check=True, capture_output=True, text=True
    )
    return told.stdout.strip()


@pytest.mark.conforms("cache.86")
@pytest.mark.parametrize("variable", ["PYPTO_RUNTIME_ROOT", "PTO_ISA_ROOT"])
def test_a_selected_checkout_is_what_kernels_are_compiled_with(
    processes: Processes, tmp_path: Path, variable: str
) -> None:
    path = tmp_path / "checkout"
    checkout(path)
    selected = {variable: str(path)}
    first = processes.run(**selected)
    assert built(first)
    assert not built(processes.run(**selected))
    assert processes.run()["key"] != first["key"]

    header = path / "include/pto/sim/transfer.hpp"
    text = header.read_text()
    header.write_text(text + '\nstatic_assert(false, "this is read");\n')
    dirty = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path, env={**processes.environ, **selected}, capture_output=True, text=True,
    )  # fmt: skip
    assert dirty.returncode != 0
    assert "this is read" in dirty.stderr

    header.write_text(text + "\n// harmless\n")
    bypassed = processes.run(**selected)
    assert bypassed["key"] is None
    assert "has uncommitted changes (include/pto/sim/transfer.hpp)" in str(
        bypassed["stats"]["last_bypass_reason"]
    )
    commit(path)
    second = processes.run(**selected)
    assert built(second)
    assert second["key"] != first["key"]
