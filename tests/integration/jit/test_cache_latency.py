"""The benchmark of first hits: what it measures, and when it refuses to give a figure."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

PROGRAMS = (Path(__file__).parents[2] / "benchmarks").resolve()

SERVED = {
    "first_s": 0.02,
    "next_s": 0.01,
    "ready_hits": 2,
    "builds": 0,
    "bypasses": 0,
    "reason": None,
}


@pytest.fixture
def latency(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The benchmark as a module; its neighbours are found as from its script's directory."""
    monkeypatch.syspath_prepend(str(PROGRAMS))
    before = set(sys.modules)
    yield importlib.import_module("jit_cache_latency")
    for name in set(sys.modules) - before:
        if str(PROGRAMS) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.mark.conforms("cache.113")
@pytest.mark.timeout(280)
def test_a_run_fills_the_root_measures_and_writes_its_figures(house: Any) -> None:
    figures = house.top / "build" / "latency.json"
    command = [sys.executable, str(PROGRAMS / "jit_cache_latency.py")]
    # Bazel sets it for its tests; with it a script does not find the modules beside it.
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    result = subprocess.run(
        [*command, "--cache-root", str(house.root), "--runs", "2", "--output", str(figures)],
        cwd=house.work,
        env={
            **inherited,
            "PYTHONPATH": os.pathsep.join(house.import_roots),
            "HOME": str(house.top),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    first, following = json.loads(figures.read_text())
    assert first["runs"] == following["runs"] == 2
    assert first["ours_s"] > 0 and following["ours_s"] > 0
    assert len(house.slots("ready")) == 2


@pytest.mark.conforms("cache.113")
@pytest.mark.parametrize("lie", [{"ready_hits": 1}, {"builds": 1}, {"bypasses": 1}])
def test_a_process_that_was_not_served_fails_the_run(
    latency: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lie: dict[str, int]
) -> None:
    monkeypatch.setattr(latency, "_run", lambda *_: SERVED)
    assert latency.measured(tmp_path) == SERVED
    monkeypatch.setattr(latency, "_run", lambda *_: {**SERVED, **lie})
    with pytest.raises(SystemExit, match="not served"):
        latency.measured(tmp_path)


@pytest.mark.conforms("cache.113")
def test_the_process_that_fills_the_root_comes_first_and_is_not_measured(
    latency: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    children = 0

    def run(*arguments: str) -> dict[str, Any]:
        nonlocal children
        if "--child" not in arguments:
            return {"first_s": 0.001, "repeat_s": 0.001}
        children += 1
        if children == 1:
            return {**SERVED, "first_s": 99.0, "next_s": 99.0, "ready_hits": 0, "builds": 4}
        return SERVED

    monkeypatch.setattr(latency, "_run", run)
    monkeypatch.setattr(latency.subprocess, "run", lambda *_, **__: None)
    rows = latency.compare(tmp_path / "root", 3)
    assert children == 4
    assert [row.ours_s for row in rows] == [0.02, 0.01]


@pytest.mark.conforms("cache.113")
def test_the_interval_is_from_the_first_request_to_a_callable_object(
    latency: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    """No import, no tensor and no execution lies between the readings of the clock."""
    import torch

    events: list[str] = []

    class Kernel:
        def __init__(self, name: str) -> None:
            self.name = name

        def warmup(self, *_: Any, **__: Any) -> Any:
            events.append(f"{self.name} warmed")
            return SimpleNamespace(load=lambda: events.append(f"{self.name} loaded"))

        def __call__(self, _first: Any, _second: Any, out: Any, **_: Any) -> None:
            events.append(f"{self.name} run")
            out.fill_(2)

    def clock() -> float:
        events.append("clock")
        return float(len(events))

    def tensor(*shape: int) -> Any:
        events.append("tensor")
        return torch.zeros(*shape)

    kernels = SimpleNamespace(add=Kernel("add"), scale=Kernel("scale"))
    monkeypatch.setitem(sys.modules, "sample_kernels", kernels)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(ones=tensor, empty=tensor))
    monkeypatch.setattr(latency.time, "perf_counter", clock)
    latency.child(tmp_path)
    capsys.readouterr()
    begin = events.index("clock")
    assert "tensor" in events[:begin]
    assert events[begin : begin + 7] == [
        "clock",
        "add warmed",
        "add loaded",
        "clock",
        "scale warmed",
        "scale loaded",
        "clock",
    ]
