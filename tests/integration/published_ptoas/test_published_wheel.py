"""The assembler of the package index as a user installs it. This version of it does not start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pypto
import pypto_store
import pypto_toolchains
import pytest
from pypto_toolchains.elf import read_build_id

WHEEL = os.environ.get("PYPTO_TEST_PTOAS_WHEEL")
IMPORT_ROOTS = [
    str(Path(str(module.__file__)).absolute().parents[1])
    for module in (pypto, pypto_store, pypto_toolchains)
]

pytestmark = pytest.mark.skipif(WHEEL is None, reason="the published wheel is not here")

_PROGRAM = """
import dataclasses, json
import pypto
import pypto.language as pl
import torch


@pl.jit
def kernel(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="twice"):
        out = pl.store(pl.mul(pl.load(x, [0, 0], [16, 64]), 2.0), [0, 0], out)
    return out


x = torch.arange(16 * 64, dtype=torch.float32).reshape(16, 64)
for _ in range(2):
    out = torch.zeros(16, 64)
    kernel(x, out)
    assert torch.equal(out, x * 2)
print(json.dumps(dataclasses.asdict(pypto.cache_stats())))
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment that pip installed the wheel into."""
    assert WHEEL is not None
    directory = tmp_path_factory.mktemp("published") / "env"
    # What pip and venv are told by the environment of the tests is none of theirs.
    environ = {"PATH": os.environ["PATH"], "HOME": str(directory.parent)}
    subprocess.run(
        [sys.executable, "-I", "-m", "venv", "--without-pip", str(directory)],
        env=environ,
        check=True,
    )
    subprocess.run(
        [
            sys.executable, "-I", "-m", "pip", "--quiet", "--disable-pip-version-check",
            "--python", str(directory / "bin" / "python"),
            "install", "--no-index", "--no-deps", "--no-compile", str(Path(WHEEL).resolve()),
        ],
        env=environ, check=True,
    )  # fmt: skip
    return directory


def requests(environment: Path, top: Path, cache: str) -> tuple[dict[str, Any], str]:
    """The statistics and the log of a process that runs a kernel twice."""
    program = top / "program.py"
    program.write_text(_PROGRAM)
    result = subprocess.run(
        [sys.executable, str(program)],
        cwd=top,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(top),
            "PYTHONPATH": os.pathsep.join(IMPORT_ROOTS),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PTOAS_ROOT": str(environment),
            "PYPTO_CACHE": cache,
            "PYPTO_CACHE_DIR": str(top / "cache"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    statistics: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return statistics, result.stderr


@pytest.mark.conforms("cache.89")
def test_it_is_bypassed_with_a_reason_and_a_right_result(environment: Path, tmp_path: Path) -> None:
    program = environment / "bin" / "ptoas"
    assert read_build_id(str(program)) is not None  # it is identified, and does not work
    statistics, log = requests(environment, tmp_path, "1")
    assert statistics["bypasses"] == statistics["requests"] == 2
    assert statistics["misses"] == statistics["storage_errors"] == 0
    reason = statistics["last_bypass_reason"]
    assert f"{program} cannot be used" in reason
    assert "cannot open shared object file" in reason
    assert log.count("the bundled assembler is used") == 1


def test_without_a_cache_the_result_is_right_too(environment: Path, tmp_path: Path) -> None:
    statistics, log = requests(environment, tmp_path, "0")
    assert statistics["bypasses"] == 0
    assert log.count("cannot open shared object file") == 1
