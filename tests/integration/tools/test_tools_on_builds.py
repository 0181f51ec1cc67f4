"""The tools that show builds and runs, as commands, on what a kernel's compilation and run left."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pypto.language as pl
import pytest
import torch
from pypto.backend import BackendType, ExecutionMode
from pypto.runtime import RunConfig

ROWS, COLS, BAND = 64, 64, 16


@pl.jit
def scaled_product(
    a: pl.Tensor[[ROWS, COLS], pl.FP32],
    b: pl.Tensor[[COLS, COLS], pl.FP32],
    out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
):
    for row in pl.range(0, ROWS, BAND):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="product_band"):
            left = pl.load(a, [row, 0], [BAND, COLS], target_memory=pl.Mem.Mat)
            right = pl.load(b, [0, 0], [COLS, COLS], target_memory=pl.Mem.Mat)
            out = pl.store(pl.matmul(left, right), [row, 0], out)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="scale_all"):
        out[:] = pl.mul(out, 0.5)
    return out


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tools") / "build"
    config = RunConfig(
        arch=BackendType.Ascend910B,
        execution_mode=ExecutionMode.SIM,
        dump_passes=True,
        compile_profiling=True,
        enable_chip_swimlane=True,
        save_kernels_dir=str(directory),
    )
    a, b = torch.rand(ROWS, COLS), torch.rand(COLS, COLS)
    out = torch.empty(ROWS, COLS)
    scaled_product(a, b, out, config=config)
    torch.testing.assert_close(out, a @ b * 0.5)
    return directory


def command(module, *arguments):
    words = [sys.executable, "-m", f"pypto.tools.{module}", *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_the_memory_map_has_each_tile_with_its_line(build):
    done = command("memory_map", build, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    kernels = {function["name"]: function for function in document["functions"]}
    assert set(kernels) == {"product_band", "scale_all"}
    product = kernels["product_band"]
    assert product["peaks"].keys() == {"Mat", "Left", "Right", "Acc"}
    (left,) = [t for t in product["tiles"] if (t["name"], t["space"]) == ("left", "Mat")]
    assert left["bytes"] == BAND * COLS * 4
    unit, line = left["place"]
    file, first = document["sources"][unit]
    assert file == __file__
    text = Path(file).read_text(encoding="utf-8").splitlines()[first + line - 2]
    assert "left = pl.load(a" in text


def test_the_trace_has_each_pass_with_its_time(build):
    done = command("ir_trace", build, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    passes = json.loads(done.stdout)["passes"]
    assert passes[0]["name"] == "frontend"
    assert passes[0]["seconds"] is None
    assert all(one["seconds"] > 0 for one in passes[1:])
    assert passes[-1]["functions"] == ["product_band", "scale_all", "scaled_product"]


def test_the_run_has_each_task_on_its_core(build):
    done = command("clean_sim_trace", build, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    (run,) = json.loads(done.stdout)["runs"]
    assert run["platform"] == "a2a3sim"
    kernels = {kernel["name"]: kernel for kernel in run["kernels"]}
    assert kernels["product_band"]["tasks"] == ROWS // BAND
    assert {core.rstrip("0123456789") for core in kernels["product_band"]["cores"]} == {"aic"}
    assert {core.rstrip("0123456789") for core in kernels["scale_all"]["cores"]} == {"aiv"}
    assert run["span_ns"] > 0


def test_the_trace_of_a_run_says_what_waited(build, tmp_path):
    done = command("clean_sim_trace", build, "-o", tmp_path / "trace.json")
    assert done.returncode == 0
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    ends = {e["id"]: e["ts"] for e in events if e["ph"] == "s"}
    starts = {e["id"]: e["ts"] for e in events if e["ph"] == "f"}
    assert len(ends) == ROWS // BAND, "the last kernel waits for every product"
    assert all(ends[arrow] <= starts[arrow] for arrow in ends)


@pytest.mark.parametrize("module", ["memory_map", "ir_trace", "clean_sim_trace"])
def test_on_a_terminal_there_is_a_table(build, module):
    main, terminal = pty.openpty()
    words = [sys.executable, "-m", f"pypto.tools.{module}", str(build)]
    status = subprocess.run(words, stdout=terminal, stderr=terminal, check=False).returncode
    os.close(terminal)
    said = b""
    while True:
        try:
            part = os.read(main, 1 << 16)
        except OSError:  # the other end is closed
            break
        said += part
        if not part:
            break
    os.close(main)
    assert status == 0
    text = said.decode()
    assert "wrote " in text
    assert "product" in text or "plan_memory" in text


@pytest.mark.parametrize("module", ["memory_map", "ir_trace", "clean_sim_trace"])
def test_help_and_a_bad_path(module, tmp_path):
    helped = command(module, "--help")
    assert helped.returncode == 0
    assert "Exit status" in helped.stdout
    wrong = command(module, tmp_path / "nowhere")
    assert wrong.returncode == 2
    assert wrong.stderr.count("\n") == 1
    assert wrong.stderr.startswith("error: ")
