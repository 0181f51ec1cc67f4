"""Requests that believe what is signed: a machine with a key compiles, those that trust it do not.

Keys and remote are named by the environment, as they are on the machines of a fleet.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

BUILDS = ("generation_builds", "binary_builds")


def keygen(house: Any, directory: Path, name: str) -> tuple[Path, Path]:
    """A new key: the file that signs, and the file for whoever trusts it."""
    private, public = directory / f"{name}.pem", directory / f"{name}.pub"
    done = subprocess.run(
        [sys.executable, "-m", "pypto_store", "keygen", private, "--public", public],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(house.import_roots)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout)["private"] == str(private)
    return private, public


@pytest.fixture
def ask(house: Any, tmp_path: Path) -> Callable[..., Any]:
    """Warm a kernel on a machine of its own, with one remote for all of them."""
    remote = (tmp_path / "remote").as_uri()

    def warm(name: str, **variables: Path) -> Any:
        machine = type(house)(tmp_path / name)
        env = {
            "PYPTO_CACHE": "1",
            "PYPTO_CACHE_DIR": str(machine.root),
            "PYPTO_CACHE_REMOTE": remote,
            **{f"PYPTO_CACHE_REMOTE_{name}": str(value) for name, value in variables.items()},
        }
        return machine.run(machine.WARM, cached=False, env=env)["stats"]

    return warm


def test_who_trusts_the_key_compiles_nothing_and_nobody_else_is_believed(
    house: Any, ask: Callable[..., Any], tmp_path: Path
) -> None:
    private, public = keygen(house, tmp_path, "release")
    _, other = keygen(house, tmp_path, "other")

    def counted(stats: Any) -> tuple[int, ...]:
        names = (*BUILDS, "remote_hits", "remote_errors", "remote_uploads")
        return tuple(stats[name] for name in names)

    assert counted(ask("ci", SIGNING_KEY=private)) == (1, 1, 0, 0, 2)
    assert counted(ask("fleet", TRUSTED_KEYS=public)) == (0, 0, 2, 0, 0)
    stranger = ask("stranger", TRUSTED_KEYS=other)
    assert counted(stranger) == (1, 1, 0, 2, 0)
    assert public.read_text().strip() in stranger["last_remote_error"]
    private.chmod(0o644)
    careless = ask("careless", SIGNING_KEY=private)
    assert counted(careless)[:3] == (1, 1, 0) and careless["remote_uploads"] == 0
    assert f"chmod 600 {private}" in careless["last_remote_error"]
    # Nothing of that changed what the fleet uses.
    assert counted(ask("later", TRUSTED_KEYS=public)) == (0, 0, 2, 0, 0)
