"""Damage in a cache that the JIT uses: never loaded, never executed, never repaired."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from jit_requests import Requests
from pypto._native import load_program

ROUNDS = int(os.environ.get("STORE_FAULT_ROUNDS", "5"))
DAMAGES = 60 * ROUNDS
pytestmark = pytest.mark.usefixtures("no_sync")


@pytest.fixture
def requests(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return Requests(tmp_path)


def mapped(root: Path) -> list[str]:
    """Files below `root` that are in this process's memory, as a loaded library is."""
    with open("/proc/self/maps") as file:
        return [line for line in file if str(root) in line]


@pytest.mark.conforms("cache.50")
def test_random_damage_is_never_loaded(tmp_path, requests, monkeypatch, record_property):
    root = tmp_path / "root"
    requests.ask(root, "warmup")
    (generated,) = root.glob("artifacts/v1/*/*/generated")
    (ready,) = root.glob("artifacts/v1/*/*/ready/*")
    _, sound = requests.ask(root, "compile")
    assert (sound["ready_hits"], sound["invalid_entries"]) == (1, 0)

    opened = []
    monkeypatch.setattr("pypto._native.load_program", lambda *given: opened.append(given))
    generator = random.Random(5)
    places = [path for slot in (ready, generated) for path in sorted(slot.rglob("*"))]
    places = [path for path in places if path.is_file()]
    for number in range(DAMAGES):
        path = places[number % len(places)]
        data = path.read_bytes()
        changed = bytearray(data)
        if data and generator.random() < 0.7:
            changed[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
        else:
            changed = changed[: generator.randrange(len(data))] if data else b"x"
        path.write_bytes(changed)
        compiled, counted = requests.ask(root, "compile")
        told = (path.relative_to(root), counted)
        if ready in path.parents:
            # The sources serve, and nothing of the damaged binaries is in reach of a run.
            assert counted["ready_hits"] == 0, told
            assert (counted["generated_hits"], counted["invalid_entries"]) == (1, 1), told
        else:
            assert (counted["ready_hits"], counted["generated_hits"]) == (1, 0), told
            # Nothing but the hint and its manifest is read of sources that a hit does not need.
            if path.name != "artifact_manifest.json":
                damaged_hint = path.name == "kernel_config.json"
                assert counted["invalid_entries"] == damaged_hint, told
        assert counted["storage_errors"] == 0, told
        assert path.read_bytes() == changed, told
        assert compiled.artifact_key is not None
        path.write_bytes(data)
    assert opened == []
    assert mapped(root) == []
    record_property("damages", DAMAGES)
    print(f"{DAMAGES} damages over {len(places)} files")


@pytest.mark.conforms("cache.50")
def test_damage_between_a_hit_and_its_first_run_is_never_loaded(tmp_path, requests, monkeypatch):
    torch = pytest.importorskip("torch")
    root = tmp_path / "root"
    requests.ask(root, "warmup")
    (ready,) = root.glob("artifacts/v1/*/*/ready/*")
    libraries = sorted(ready.rglob("*.bin"))
    assert len(libraries) >= 2
    opened = []

    def load(kernels, orchestration, *more):
        opened.extend([*(path for _, _, path in kernels), orchestration])
        return load_program(kernels, orchestration, *more)

    monkeypatch.setattr("pypto._native.load_program", load)
    x = torch.arange(16 * 64, dtype=torch.float32).reshape(16, 64)
    generator = random.Random(6)
    for library in libraries * 2:
        compiled, counted = requests.ask(root, "warmup")
        assert counted["ready_hits"] == 1
        data = library.read_bytes()
        changed = bytearray(data)
        changed[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
        library.write_bytes(changed)
        out = torch.zeros(16, 64)
        compiled(x, out)  # what was validated is gone, so the binaries are made again, privately
        assert torch.equal(out, x * 2)
        assert library.read_bytes() == changed
        library.write_bytes(data)
    assert not [path for path in opened if path.startswith(str(root))]
    assert mapped(root) == []
    opened.clear()
    compiled, _ = requests.ask(root, "warmup")
    out = torch.zeros(16, 64)
    compiled(x, out)
    assert torch.equal(out, x * 2)
    assert {str(library) for library in libraries} == set(opened)
