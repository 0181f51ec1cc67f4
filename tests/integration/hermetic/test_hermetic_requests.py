"""Requests under the hermetic policy whose toolchain is named in a way, or is not there."""

from __future__ import annotations

from pathlib import Path

import pytest
from places import Place, Shell

# Makes a request in one directory, and what it still needs in another.
_IN_TWO_DIRECTORIES = """
import dataclasses, json, os, sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import pypto, kernels
compiled = kernels.doubled.compile()
report = {"key": compiled.artifact_key, "error": None}
os.chdir("/")
try:
    compiled.load()
except Exception as error:
    report["error"] = f"{type(error).__name__}: {error}"
report["stats"] = dataclasses.asdict(pypto.cache_stats())
print(json.dumps(report))
"""


def request(place: Place, **environ: str) -> dict[str, object]:
    return place.do(_IN_TWO_DIRECTORIES, str(place.modules), shell=Shell(environ))


def test_a_relative_name_counts_from_where_the_request_was_made(place: Place) -> None:
    one = request(place, PYPTO_TOOLCHAIN="../tools/identity.json")
    assert one["error"] is None
    assert one["key"] is not None
    two = request(place)
    assert two["key"] == one["key"]
    assert two["stats"]["ready_hits"] == 1  # type: ignore[index]


def test_a_toolchain_that_is_not_there_is_a_bypass_and_compiles_nothing(place: Place) -> None:
    report = request(place, PYPTO_TOOLCHAIN="/nowhere/identity.json", PATH="/usr/bin:/bin")
    stats = report["stats"]
    assert report["key"] is None
    assert stats["bypasses"] == 1  # type: ignore[index]
    said = "cannot read /nowhere/identity.json: No such file or directory"
    assert said in stats["last_bypass_reason"]  # type: ignore[index]
    assert str(report["error"]).startswith("ToolchainUnavailable: ")
    assert said in str(report["error"])


@pytest.mark.parametrize("cache", ["0", "1"])
@pytest.mark.parametrize(
    ("environ", "complaint"),
    [
        ({"PYPTO_TOOLCHAIN": ""}, "hermetic needs PYPTO_TOOLCHAIN"),
        ({"PYPTO_CACHE_IDENTITY": "build"}, "PYPTO_TOOLCHAIN is set but PYPTO_CACHE_IDENTITY"),
    ],
)
def test_policy_and_toolchain_belong_together_with_the_cache_off_too(
    place: Place, tmp_path: Path, environ: dict[str, str], complaint: str, cache: str
) -> None:
    code = """
import json, sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import kernels
try:
    kernels.doubled.compile().load()
except ValueError as error:
    print(json.dumps({"error": str(error)}))
"""
    shell = Shell({**environ, "PYPTO_CACHE": cache, "PYPTO_CACHE_DIR": str(tmp_path)})
    assert complaint in place.do(code, str(place.modules), shell=shell)["error"]


def test_a_machine_with_the_description_alone_runs_what_a_remote_has(
    place: Place, tmp_path: Path
) -> None:
    remote = {"PYPTO_CACHE_REMOTE": (tmp_path / "remote").as_uri()}
    builder = request(place, PYPTO_CACHE_DIR=str(tmp_path / "builder"), **remote)
    assert builder["error"] is None
    alone = tmp_path / "alone/identity.json"
    alone.parent.mkdir()
    alone.write_bytes(place.description.read_bytes())
    here = {"PYPTO_TOOLCHAIN": str(alone), "PATH": str(tmp_path)}
    server = request(place, PYPTO_CACHE_DIR=str(tmp_path / "server"), **here, **remote)
    assert server["error"] is None
    assert server["key"] == builder["key"]
    stats = server["stats"]
    counted = ("remote_hits", "generation_builds", "binary_builds", "bypasses")
    assert [stats[name] for name in counted] == [2, 0, 0, 0]  # type: ignore[index]
    # Without the remote it is as before: nothing is published by tools that are not there.
    lost = request(place, PYPTO_CACHE_DIR=str(tmp_path / "lost"), **here)
    assert lost["key"] is None
    assert lost["stats"]["bypasses"] == 1  # type: ignore[index]
