"""``python -m pypto.jit warm --push``: a warm-up that others have when it has ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pypto_store import iterate_entries
from pypto_store.remote.engines import open_engine
from pypto_store.remote.entry_name import entry_name
from pypto_store.remote_config import RemoteConfig

TWO = """

@pl.jit
def other(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    out = helper(x, out)
    return out
"""


def run(house: Any, *words: str, env: dict[str, str] | None = None) -> Any:
    """Any module's command line in the house."""
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(house.modules), *house.import_roots]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(house.top),
        **(env or {}),
    }
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=house.work, env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip


def warm(
    house: Any,
    *words: str,
    kernels: tuple[str, ...] = ("kernel",),
    cache: dict[str, Any] | None = None,
    env: dict[str, str] | None = None,
) -> Any:
    document: dict[str, Any] = {
        "schema_version": 1,
        "requests": [{"kernel": name} for name in kernels],
    }
    if cache is None:
        document["cache"] = {"enabled": True, "root": "../cache"}
    elif cache:
        document["cache"] = cache
    path = house.work / "warm.json"
    path.write_text(json.dumps(document))
    return run(
        house, "pypto.jit", "warm", "--module", "kernels", "--config", str(path), *words, env=env
    )


def fates(done: Any) -> dict[tuple[str, str], str]:
    entries = json.loads(done.stdout)["push"]["entries"]
    return {(entry["kernel"], entry["state"]): entry["fate"] for entry in entries}


def names_of(root: Path) -> set[str]:
    """The names at a remote of all entries of a root."""
    manifests = [row.manifest for row in iterate_entries(root)]
    return {
        entry_name(manifest.key, manifest.spec).digest.sha256.hex
        for manifest in manifests
        if manifest is not None
    }


def test_a_remote_inside_the_root_is_refused_before_anything_is_built(house: Any) -> None:
    assert house.root is not None
    done = warm(house, "--push", (house.root / "remote").as_uri())
    assert done.returncode == 2 and "lies inside the cache root" in done.stderr
    assert not house.root.exists()


def test_what_was_warmed_is_at_the_remote_when_the_command_ends(house: Any) -> None:
    house.write(house.KERNELS + TWO)
    remote = house.top / "remote"
    url = f"file://{remote}"
    # One is a local hit by then; both go, sources and binaries.
    assert warm(house).returncode == 0
    done = warm(house, "--push", url, "--as", "nightly", kernels=("kernel", "other"))
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert [row["status"] for row in report["requests"]] == ["ok", "ok"]
    assert report["statistics"]["binary_builds"] == 1
    assert fates(done) == {
        (f"kernels:{name}", state): "sent"
        for name in ("kernel", "other")
        for state in ("generated", "ready")
    }
    assert report["push"]["remote"] == url
    assert report["push"]["collection"]["entries"] == 4
    present = {path.name for path in remote.glob("ac/*/*")}
    assert names_of(house.root) < present

    again = warm(house, "--push", url, "--as", "nightly", kernels=("kernel", "other"))
    assert set(fates(again).values()) == {"present"}
    assert json.loads(again.stdout)["push"]["bytes_sent"] == 0

    there = house.top / "there"
    pulled = run(
        house, "pypto_store", "pull", "--root", str(there), "--remote", url, "--as", "nightly"
    )
    assert json.loads(pulled.stdout)["counts"]["pulled"] == 4, pulled.stderr
    served = warm(house, kernels=("kernel", "other"), cache={
        "enabled": True, "root": str(there), "readonly": True})  # fmt: skip
    statistics = json.loads(served.stdout)["statistics"]
    assert (statistics["ready_hits"], statistics["misses"]) == (2, 0), served.stderr


def test_only_what_was_warmed_is_sent(house: Any) -> None:
    house.write(house.KERNELS + TWO)
    warm(house, kernels=("other",))
    done = warm(house, "--push", f"file://{house.top}/remote", "--sources-only")
    assert fates(done) == {("kernels:kernel", "generated"): "sent"}


@pytest.mark.parametrize("cached_by", ["file", "environment"])
def test_without_a_url_it_is_the_remote_of_the_environment(house: Any, cached_by: str) -> None:
    remote = house.top / "remote"
    env = {"PYPTO_CACHE_REMOTE": f"file://{remote}", "PYPTO_CACHE_REMOTE_UPLOAD": "off"}
    cache = None
    if cached_by == "environment":
        env |= {"PYPTO_CACHE": "1", "PYPTO_CACHE_DIR": str(house.root)}
        cache = {}
    done = warm(house, "--push", cache=cache, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert set(fates(done).values()) == {"sent"}
    assert names_of(house.root) < {path.name for path in remote.glob("ac/*/*")}


def test_what_cannot_be_sent_is_the_status_and_the_report_is_there(house: Any) -> None:
    (house.top / "file").write_bytes(b"")
    done = warm(house, "--push", f"file://{house.top}/file")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["requests"][0]["status"] == "ok"
    assert report["push"]["stopped"]
    assert done.stderr.startswith("error: push: ") and str(house.top / "file") in done.stderr


def test_a_damaged_entry_is_not_sent(filled: Any) -> None:
    (ready,) = filled.slots("ready")
    files = [path for path in ready.rglob("*") if path.is_file() and path.suffix != ".json"]
    library = max(files, key=lambda path: path.stat().st_size)
    library.chmod(0o755)
    library.write_bytes(library.read_bytes()[:-1])
    done = warm(filled, "--push", f"file://{filled.top}/remote", "--sources-only")
    assert done.returncode == 1
    assert fates(done) == {
        ("kernels:kernel", "generated"): "sent",
        ("kernels:kernel", "ready"): "damaged",
    }
    assert "error: push: kernels:kernel (ready): " in done.stderr
    rows = {row.path: row.manifest for row in iterate_entries(filled.root)}
    manifest = rows[str(ready)]
    assert manifest is not None
    name = entry_name(manifest.key, manifest.spec).digest
    assert open_engine(RemoteConfig(f"file://{filled.top}/remote")).entries.get(name) is None


def test_what_was_not_kept_cannot_be_sent(filled: Any) -> None:
    filled.write(filled.KERNELS.replace("SCALE = 2.0", "SCALE = 9.0"))
    cache = {"enabled": True, "root": "../cache", "readonly": True}
    done = warm(filled, "--push", f"file://{filled.top}/remote", cache=cache)
    assert done.returncode == 1
    assert "error: push: kernel was not kept: the root lacks it, and is read-only" in done.stderr
    assert json.loads(done.stdout)["push"]["entries"] == []
    assert not (filled.top / "remote").exists()


@pytest.mark.parametrize(
    ("words", "env", "told"),
    [
        (["--push"], {}, "no remote is named"),
        (["--push", "ftp://x"], {}, "must start with"),
        (["--push"], {"PYPTO_CACHE_REMOTE": ""}, "PYPTO_CACHE_REMOTE is empty"),
        (
            ["--push"],
            {"PYPTO_CACHE_REMOTE": "file:///x", "PYPTO_CACHE_REMOTE_READONLY": "1"},
            "read only",
        ),
        (["--push", "file:///x", "--as", "a/b"], {}, "no name of a collection"),
    ],
)
def test_a_remote_that_is_named_wrongly_builds_nothing(
    house: Any, words: list[str], env: dict[str, str], told: str
) -> None:
    done = warm(house, *words, env=env)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr and "Traceback" not in done.stderr
    assert not house.root.exists()


def test_a_warm_up_that_keeps_nothing_has_nothing_to_send(house: Any) -> None:
    done = warm(house, "--push", f"file://{house.top}/remote", cache={"enabled": False})
    assert (done.returncode, done.stdout) == (2, "")
    assert "persistence is off" in done.stderr
