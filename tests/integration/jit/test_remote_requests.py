"""Requests that share what they compile through a remote, over a server that counts."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BUILDS = ("generation_builds", "binary_builds")
TROUBLE = ("bypasses", "invalid_entries", "storage_errors", "remote_errors")

# What a request without the remote would be called.
IDENTIFY = """
from pypto.runtime import RunConfig
plain = pypto.CacheConfig(enabled=True, root=Path(os.environ["PYPTO_CACHE_DIR"]))
report["plain key"] = kernels.kernel.identify(RunConfig(), plain, {})[0].digest.hex
"""
MODULES = """
report["modules"] = sorted(name for name in sys.modules if "remote" in name or name == "ssl")
"""


def _contract_server() -> ModuleType:
    """The server that the contract of engines is tried on."""
    path = Path(__file__).absolute().parents[2] / "contract" / "http_cache_server.py"
    spec = importlib.util.spec_from_file_location("http_cache_server", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@contextmanager
def serving() -> Iterator[Any]:
    server = _contract_server().HttpCacheServer()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def server() -> Iterator[Any]:
    """A server that nothing is stored at."""
    with serving() as server:
        yield server


def settings(house: Any, url: str, **more: str) -> dict[str, str]:
    """The environment of requests that use the house's root and a remote."""
    assert house.root is not None
    return {
        "PYPTO_CACHE": "1",
        "PYPTO_CACHE_DIR": str(house.root),
        "PYPTO_CACHE_REMOTE": url,
        **{f"PYPTO_CACHE_REMOTE_{name}": value for name, value in more.items()},
    }


def ask(house: Any, step: str, url: str, env: Mapping[str, str] = {}, **more: str) -> Any:
    return house.run(step, cached=False, env={**settings(house, url, **more), **env})


def puts(server: Any, kind: str) -> Counter[str]:
    """How often what is of `kind` was stored, by its path."""
    return Counter(
        path for method, path, _ in server.requests if method == "PUT" and f"/{kind}/" in path
    )


def counted(report: Any, *names: str) -> tuple[int, ...]:
    return tuple(report["stats"][name] for name in names)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, request: Any) -> Iterator[tuple[Any, Any]]:
    """A house whose kernel is also at a server; neither is written to by the tests."""
    house_type = type(request.getfixturevalue("_filled"))
    house = house_type(tmp_path_factory.mktemp("shared"))
    with serving() as server:
        report = ask(house, house.WARM, server.url)
        assert counted(report, *BUILDS, *TROUBLE) == (1, 1, 0, 0, 0, 0)
        assert counted(report, "remote_hits", "remote_misses") == (0, 2)
        house.key = report["key"]
        # The process waited at its end for what it had to send.
        assert len(puts(server, "ac")) == 2
        yield house, server


def furnished(house: Any, first: Any) -> None:
    """What probes said of the tools is there already, as after any other kernel."""
    shutil.copytree(first.root / "tools", house.root / "tools")


def test_another_root_gets_both_entries_and_starts_no_program(house: Any, shared: Any) -> None:
    first, server = shared
    furnished(house, first)
    before = len(server.requests)
    report = ask(house, house.WARM + house.RUN + IDENTIFY, server.url)
    assert report["correct"]
    assert report["started"] == []
    assert not report["has_program"]
    assert report["key"] == report["plain key"] == first.key
    assert counted(report, *BUILDS, *TROUBLE) == (0, 0, 0, 0, 0, 0)
    names = ("remote_hits", "remote_misses", "remote_uploads", "misses", "ready_hits")
    assert counted(report, *names) == (2, 0, 0, 1, 0)
    payload = sum(
        path.stat().st_size
        for state in ("generated", "ready")
        for slot in first.slots(state)
        for path in slot.rglob("*")
        if path.is_file() and path.name != "artifact_manifest.json"
    )
    assert report["stats"]["remote_download_bytes"] == payload
    assert report["stats"]["remote_fetch_ns"] > 0
    assert not [entry for entry in server.requests[before:] if entry[0] == "PUT"]
    assert sorted(os.listdir(house.root / "evidence")) == sorted(
        os.listdir(first.root / "evidence")
    )
    # From now on the root has it, and nobody is asked.
    before = len(server.requests)
    report = ask(house, house.WARM + MODULES, server.url)
    assert counted(report, "ready_hits", *BUILDS, "remote_hits") == (1, 0, 0, 0)
    assert len(server.requests) == before
    assert report["threads"]
    assert set(report["modules"]) <= {
        "pypto.jit.remotes",
        "pypto_store.remote",
        "pypto_store.remote.public_key",
        "pypto_store.remote_config",
        "pypto_store.remote_environment",
    }


def test_sources_alone_are_fetched_alone(house: Any, shared: Any) -> None:
    first, server = shared
    furnished(house, first)
    report = ask(house, house.COMPILE, server.url)
    assert counted(report, "remote_hits", *BUILDS) == (1, 0, 0)
    assert len(house.slots("generated")) == 1 and not house.slots("ready")
    report = ask(house, house.WARM, server.url)
    assert report["started"] == []
    assert counted(report, "generated_hits", "remote_hits", *BUILDS) == (1, 1, 0, 0)
    assert len(house.slots("ready")) == 1


def test_a_read_only_root_uses_the_remote_and_is_not_written(house: Any, shared: Any) -> None:
    first, server = shared
    furnished(house, first)
    before = house.tree(house.root)
    report = ask(house, house.WARM + house.RUN, server.url, {"PYPTO_CACHE_READONLY": "1"})
    assert report["correct"] and report["key"] is None and report["started"] == []
    assert counted(report, *BUILDS, *TROUBLE) == (0, 0, 0, 0, 0, 0)
    assert counted(report, "remote_hits", "object_hits") == (2, 1)
    assert house.tree(house.root) == before


def test_sources_that_stay_private_are_compiled_where_the_remote_has_no_binaries(
    house: Any, shared: Any
) -> None:
    first, whole = shared
    furnished(house, first)
    with serving() as server:
        server.files.update(whole.files)
        # The sources were sent first.
        _, binaries = list(puts(whole, "ac"))
        del server.files[binaries.removeprefix("/")]
        report = ask(house, house.WARM, server.url, {"PYPTO_CACHE_READONLY": "1"})
        assert not puts(server, "ac")
    assert counted(report, "remote_hits", "remote_misses", *BUILDS) == (1, 1, 0, 1)
    assert counted(report, *TROUBLE) == (0, 0, 0, 0)
    assert report["key"] is None and not house.slots("ready")


def test_a_remote_that_is_only_read_is_sent_nothing(house: Any, server: Any) -> None:
    report = ask(house, house.COMPILE, server.url, READONLY="1")
    assert counted(report, "generation_builds", "remote_misses", "remote_uploads") == (1, 1, 0)
    assert {method for method, _, _ in server.requests} <= {"GET", "HEAD"}


def test_uploads_in_the_request_are_done_when_it_returns(house: Any, server: Any) -> None:
    report = ask(house, house.WARM, server.url, UPLOAD="sync")
    assert counted(report, "remote_uploads", *BUILDS) == (2, 1, 1)
    sent = sum(len(body) for body in server.files.values())
    entries = sum(len(body) for path, body in server.files.items() if path.startswith("ac/"))
    assert sent - entries <= report["stats"]["remote_upload_bytes"] <= sent
    assert report["stats"]["remote_upload_ns"] > 0


def test_eight_processes_over_two_roots_compile_once_a_root_and_send_once(
    tmp_path: Path, house: Any, server: Any
) -> None:
    houses = [type(house)(tmp_path / name) for name in ("one", "two")]
    children = [
        one.start(one.WARM, cached=False, env=settings(one, server.url, UPLOAD="sync"))
        for _ in range(4)
        for one in houses
    ]
    reports = [house.finish(child) for child in children]
    for built in BUILDS:
        for number in range(2):
            assert sum(report["stats"][built] for report in reports[number::2]) <= 1
        assert sum(report["stats"][built] for report in reports) >= 1
    assert sum(sum(counted(report, *TROUBLE)) for report in reports) == 0
    assert sum(report["stats"]["remote_uploads"] for report in reports) == 2
    assert len({report["key"] for report in reports}) == 1
    assert sorted(puts(server, "ac").values()) == [1, 1]
    assert set(puts(server, "cas").values()) == {1}
    assert [len(one.slots("ready")) for one in houses] == [1, 1]


def test_a_remote_that_is_down_is_counted_and_told_once(house: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        child = house.start(house.WARM, cached=False, env=settings(house, url))
        out, err = child.communicate(timeout=300)
    assert child.returncode == 0, err
    report = json.loads(out.splitlines()[-1])
    assert report["key"] is not None
    assert counted(report, *BUILDS, *TROUBLE[:3]) == (1, 1, 0, 0, 0)
    assert counted(report, "remote_hits", "remote_misses", "remote_uploads") == (0, 0, 0)
    assert report["stats"]["remote_errors"] >= 2
    assert url in report["stats"]["last_remote_error"]
    assert err.count(url) == 1, err
    assert ask(house, house.WARM, url)["stats"]["remote_errors"] == 0


def test_a_damaged_entry_is_built_anew(house: Any, shared: Any) -> None:
    first, intact = shared
    with serving() as server:
        server.files.update(intact.files)
        for place, body in intact.files.items():
            if place.startswith("cas/") and body:
                server.files[place] = bytes([body[0] ^ 1]) + body[1:]
        report = ask(house, house.WARM, server.url, UPLOAD="off")
    assert report["key"] == first.key
    assert counted(report, *BUILDS, "remote_hits", "remote_errors") == (1, 1, 0, 2)
    for state in ("generated", "ready"):
        (ours,), (theirs,) = house.slots(state), first.slots(state)
        assert house.tree(ours) == house.tree(theirs)


def test_a_variable_that_makes_no_sense_names_itself(house: Any) -> None:
    report = ask(house, house.FAIL, "http://name:secret@127.0.0.1")
    assert report["error"]["type"] == "ValueError"
    assert "PYPTO_CACHE_REMOTE " in report["error"]["text"]
    assert "secret" not in report["error"]["text"]
    report = ask(house, house.FAIL, "file:///x", TIMEOUT="soon")
    assert "PYPTO_CACHE_REMOTE_TIMEOUT='soon'" in report["error"]["text"]


def test_commands_know_the_remote_where_they_compile_requests(house: Any, server: Any) -> None:
    def command(*words: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-m", "pypto.jit", *words],
            cwd=house.work,
            env={
                **os.environ,
                **settings(house, server.url),
                "PYTHONPATH": os.pathsep.join([str(house.modules), *house.import_roots]),
                "HOME": str(house.top),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    config = house.work / "warm.json"
    config.write_text(json.dumps({"schema_version": 1, "requests": [{"kernel": "kernel"}]}))
    told = command("warm", "--module", "kernels", "--config", str(config), "--sources-only")
    # The report is made when everything has been sent.
    assert told["statistics"]["remote_uploads"] == 1
    asked = len(server.requests)
    root = str(house.root)
    assert command("complete", "--root", root)["entries"]
    command("verify", "--module", "kernels", "--config", str(config), "--root", root)
    assert len(server.requests) == asked
