"""Requests with an assembler of the user's: used where it works, and replaced in the open else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mutations import PACKAGES
from ptoas_programs import FAILING, ONLY_THE_SAMPLE, make_program
from ptoas_wheels import assembler_wheel, make_environment, numpy_wheel

IMPORT_ROOTS = [str(Path(str(module.__file__)).absolute().parents[1]) for module in PACKAGES]

# Runs in a process of its own; the step is its argument.
_PROGRAM = """
import dataclasses, json, sys
started = []
sys.addaudithook(
    lambda event, detail: started.append(str(detail[0]))
    if event in {"subprocess.Popen", "os.posix_spawn", "os.exec", "os.system"}
    else None
)
import pypto
import kernels
import torch
report = {"started": started, "error": None}
x = torch.arange(16 * 64, dtype=torch.float32).reshape(16, 64)
try:
    exec(sys.argv[1])
except Exception as error:
    report["error"] = f"{type(error).__name__}: {error}"
report["stats"] = dataclasses.asdict(pypto.cache_stats())
print(json.dumps(report))
"""
_KERNELS = """
import pypto.language as pl


@pl.jit
def kernel(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="twice"):
        out = pl.store(pl.mul(pl.load(x, [0, 0], [16, 64]), 2.0), [0, 0], out)
    return out


@pl.jit
def other(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="thrice"):
        out = pl.store(pl.mul(pl.load(x, [0, 0], [16, 64]), 3.0), [0, 0], out)
    return out
"""
RUN = """
out = torch.zeros(16, 64)
kernels.kernel(x, out)
report["correct"] = torch.equal(out, x * 2)
"""
WARM = """
report["key"] = kernels.kernel.warmup().artifact_key
"""
COMPILE_BOTH = """
for kernel in (kernels.kernel, kernels.other):
    report["key"] = kernel.compile().artifact_key
"""


class Processes:
    """Processes of one user, with a cache of their own."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.root = top / "cache"
        (top / "kernels.py").write_text(_KERNELS)
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(top),
            "PYTHONPATH": os.pathsep.join([str(top), *IMPORT_ROOTS]),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYPTO_CACHE": "1",
            "PYPTO_CACHE_DIR": str(self.root),
        }

    def run(self, step: str, **variables: str) -> dict[str, Any]:
        """What a process that does `step` reports, with its log."""
        result = subprocess.run(
            [sys.executable, "-c", _PROGRAM, step],
            cwd=self.top,
            env={**self.environ, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        report: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
        return {**report, "log": result.stderr}


@pytest.fixture
def processes(tmp_path: Path) -> Processes:
    """A user with an empty cache."""
    return Processes(tmp_path)


@pytest.mark.conforms("cache.88")
def test_an_assembler_from_a_wheel_fills_the_cache_and_is_not_needed_again(
    processes: Processes,
) -> None:
    top = processes.top
    environment = make_environment(top / "env", assembler_wheel(top), numpy_wheel(top))
    root = str(environment)
    script = str(environment / "bin" / "ptoas")

    first = processes.run(RUN, PTOAS_ROOT=root)
    assert first["error"] is None
    assert first["correct"]
    assert first["stats"]["last_bypass_reason"] is None
    assert first["stats"]["generation_builds"] == first["stats"]["binary_builds"] == 1
    assert script in first["started"]

    second = processes.run(RUN, PTOAS_ROOT=root)
    assert second["correct"]
    assert second["stats"]["ready_hits"] == 1
    assert second["started"] == []

    # What is known of the wheel outlives the identity as a whole.
    third = processes.run(WARM, PTOAS_ROOT=root, PYPTO_CACHE_EPOCH="2")
    assert third["stats"]["misses"] == 1
    assert third["started"].count(script) == 1  # to translate
    assert not any(program.startswith(f"{root}/bin/python") for program in third["started"])

    bundled = processes.run(WARM)
    assert bundled["key"] not in (None, third["key"])
    assert bundled["stats"]["misses"] == 1


@pytest.mark.conforms("cache.89")
def test_an_assembler_that_fails_is_replaced_with_one_warning(processes: Processes) -> None:
    root = str(make_program(FAILING, processes.top / "assembler").parent)
    report = processes.run(COMPILE_BOTH + RUN, PTOAS_ROOT=root)
    assert report["error"] is None
    assert report["correct"]
    assert report["key"] is None
    assert report["stats"]["bypasses"] == report["stats"]["requests"] == 3
    assert "error: unknown operation" in report["stats"]["last_bypass_reason"]
    assert report["log"].count("the bundled assembler is used") == 1
    assert f"{root}/ptoas" in report["log"]
    # Mended, it is used, and what was made in its place was never stored.
    make_program(ONLY_THE_SAMPLE.replace("ptoas_sample", ""), processes.top / "assembler")
    mended = processes.run(RUN, PTOAS_ROOT=root)
    assert mended["stats"]["misses"] == 1
    assert mended["stats"]["bypasses"] == 0
    assert f"{root}/ptoas" in mended["started"]


@pytest.mark.parametrize("cached", ["0", "1"])
def test_without_a_cache_it_is_replaced_too(processes: Processes, cached: str) -> None:
    root = str(make_program(FAILING, processes.top / "assembler").parent)
    report = processes.run(RUN, PTOAS_ROOT=root, PYPTO_CACHE=cached)
    assert report["correct"]
    assert report["log"].count("the bundled assembler is used") == 1


def test_what_is_stored_is_what_the_identified_assembler_made(processes: Processes) -> None:
    """Nothing else may fill its entries, so that it fails later is an error."""
    root = str(make_program(ONLY_THE_SAMPLE, processes.top / "assembler").parent)
    report = processes.run(WARM, PTOAS_ROOT=root)
    assert report["stats"]["misses"] == 1
    assert report["error"] is not None
    assert "not in the mood" in report["error"]
    assert "the bundled assembler is used" not in report["log"]


@pytest.mark.parametrize("cached", ["0", "1"])
def test_a_place_without_an_assembler_is_an_error(processes: Processes, cached: str) -> None:
    report = processes.run(WARM, PTOAS_ROOT="/nowhere", PYPTO_CACHE=cached)
    assert report["error"] is not None
    assert "PTOAS_ROOT=/nowhere holds no executable" in report["error"]
