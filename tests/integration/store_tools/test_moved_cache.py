"""A cache that was filled in one place and is used in another, with nothing built there."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

CALL = """
import dataclasses, json, os, sys
from pathlib import Path
started = []
sys.addaudithook(
    lambda event, detail: started.append(str(detail[0]))
    if event in {"subprocess.Popen", "os.posix_spawn", "os.exec", "os.system"} else None
)
sys.path.insert(0, os.getcwd())
import pypto
pypto.configure_cache(pypto.CacheConfig(enabled=True, root=Path("kernel-cache"), readonly=True))
import kernels
import torch
x = torch.arange(16 * 64, dtype=torch.float32).reshape(16, 64)
out = torch.zeros(16, 64)
kernels.kernel(x, out)
stats = dataclasses.asdict(pypto.cache_stats())
print(json.dumps({"right": torch.equal(out, x * 2.0), "started": started, "stats": stats}))
"""


def elsewhere(house, name):
    top = house.top / name
    top.mkdir()
    return type(house)(top)


def carried_in_a_bundle(house, there):
    exported = house.command("export", "--all", "-o", "kernels.tar.zst")
    assert exported.status == 0, exported.err
    imported = there.command("import", house.top / "kernels.tar.zst")
    assert imported.document["counts"]["imported"] == 2, imported


def pushed_and_pulled(house, there):
    remote = f"file://{house.top}/remote"
    pushed = house.command("push", "--remote", remote, "--kernel", "kernel")
    assert pushed.document["counts"]["sent"] == 2, pushed
    pulled = there.command("pull", "--remote", remote, "--kernel", "kernels:kernel")
    assert pulled.document["counts"]["pulled"] == 2, pulled


def payload(root):
    """Bytes and modes of every file of every entry."""
    return {
        path.relative_to(root): (path.read_bytes(), path.stat().st_mode)
        for path in root.glob("artifacts/**/*")
        if path.is_file()
    }


@pytest.mark.parametrize("carry", [carried_in_a_bundle, pushed_and_pulled])
def test_a_fresh_process_finds_what_was_carried_over_and_builds_nothing(house, carry):
    first, _ = house.request(warm=True)
    assert (first["stats"]["generation_builds"], first["stats"]["binary_builds"]) == (1, 1)
    there = elsewhere(house, "another machine")
    carry(house, there)
    assert payload(there.root) == payload(house.root)

    again, _ = there.request(warm=True)
    stats = again["stats"]
    assert again["key"] == first["key"]
    assert (stats["ready_hits"], stats["misses"], stats["bypasses"]) == (1, 0, 0)
    assert (stats["generation_builds"], stats["binary_builds"]) == (0, 0)

    called = subprocess.run(
        [sys.executable, "-c", CALL],
        cwd=there.top, env=there.environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert called.returncode == 0, called.stderr
    report = json.loads(called.stdout.splitlines()[-1])
    assert report["right"]
    assert report["started"] == []
    assert report["stats"]["ready_hits"] == 1
    assert report["stats"]["binary_builds"] == 0


def test_one_kernel_travels_by_its_name_and_explains_itself_where_asked(lived_in, tmp_path):
    bundle = tmp_path / "kernel.tar.zst"
    words = ["export", "--kernel", "kernel", "-o", bundle]
    plain = lived_in.command(*words).document
    assert {entry["kernel"] for entry in plain["entries"]} == {"kernels:kernel"}
    told = lived_in.command(*words, "--with-evidence").document
    assert plain["evidence_records"] == 0
    assert told["evidence_records"] > 0

    (tmp_path / "there").mkdir()
    there = type(lived_in)(tmp_path / "there")
    assert there.command("import", bundle).status == 0
    explained = there.command("why", "--kernel", "kernel").document["explanations"]
    assert {item["key"] for item in explained} == {entry["key"] for entry in told["entries"]}
    differences = [component for item in explained for other in item["compared"]
        for component in other["components"]]  # fmt: skip
    assert differences
    assert all(component["untold"] is None for component in differences)
