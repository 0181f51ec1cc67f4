"""Requests for an onboard platform: found again where a toolkit is known, private without one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from compilers import build_program, debian_compilers
from doubling_kernel import KERNELS
from mutations import PACKAGES

IMPORT_ROOTS = [str(Path(str(module.__file__)).absolute().parents[1]) for module in PACKAGES]

_PROGRAM = """
import dataclasses, json, sys
started = []
sys.addaudithook(
    lambda event, detail: started.append(str(detail[0])) if event == "subprocess.Popen" else None
)
import pypto, kernels
from pypto.backend import BackendType
from pypto.runtime.run_config import ExecutionMode, RunConfig
config = RunConfig(arch=BackendType.Ascend910B, execution_mode=ExecutionMode.ONBOARD)
report = {"started": started, "error": None}
try:
    report["key"] = getattr(kernels.kernel, sys.argv[1])(config=config).artifact_key
except Exception as error:
    report["error"] = f"{type(error).__name__}: {error}"
report["stats"] = dataclasses.asdict(pypto.cache_stats())
print(json.dumps(report))
"""


def request(top: Path, step: str, environ: dict[str, str]) -> dict[str, Any]:
    """What one process reports of `step` of the kernel."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, step],
        cwd=top,
        env={
            "HOME": str(top),
            "PYTHONPATH": os.pathsep.join([*IMPORT_ROOTS, str(top)]),
            "PYPTO_CACHE": "1",
            "PYPTO_CACHE_DIR": str(top / "cache"),
            **environ,
        },
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@pytest.fixture
def top(tmp_path: Path) -> Path:
    (tmp_path / "kernels.py").write_text(KERNELS)
    return tmp_path


@pytest.fixture
def cross() -> dict[str, str]:
    """An environment with a cross compiler for the device's host."""
    return {"PATH": f"{debian_compilers()['aarch64_gcc'].parent}:{os.environ['PATH']}"}


def test_an_identified_toolkit_lets_sources_be_found_again(
    top: Path, cross: dict[str, str]
) -> None:
    tools = top / "cann/compiler/ccec_compiler/bin"
    build_program(tools / "ccec")
    build_program(tools / "ld.lld")
    info = top / "cann/compiler/version.info"
    info.write_text("Version=7.6\n")
    environ = {**cross, "ASCEND_HOME_PATH": str(top / "cann")}
    first = request(top, "compile", environ)
    assert first["error"] is None
    assert first["stats"]["bypasses"] == 0
    assert first["stats"]["generation_builds"] == 1
    second = request(top, "compile", environ)
    assert second["key"] == first["key"] is not None
    assert second["stats"]["generated_hits"] == 1
    assert second["stats"]["generation_builds"] == 0
    assert second["started"] == []
    # There is no recipe here for kernels of the device itself.
    warmed = request(top, "warmup", environ)
    assert "need the CANN toolkit" in warmed["error"]
    info.write_text("Version=7.7\n")
    assert request(top, "compile", environ)["key"] != first["key"]


def test_without_a_toolkit_the_request_is_private(top: Path, cross: dict[str, str]) -> None:
    for _ in range(2):
        report = request(top, "compile", cross)
        assert report["error"] is None
        assert report["stats"]["bypasses"] == 1
        assert "set ASCEND_HOME_PATH" in report["stats"]["last_bypass_reason"]
        assert report["stats"]["generation_builds"] == 1
