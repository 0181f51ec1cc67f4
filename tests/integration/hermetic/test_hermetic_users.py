"""The same kernels, compiled by one hermetic toolchain for two users."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from places import Place, Shell

NOBODY = 65534
CONFINEMENT = Path(__file__).absolute().parents[1] / "store" / "confinement.py"
AS_NOBODY = [sys.executable, str(CONFINEMENT), "user", str(NOBODY), "--"]
REFUSED = 77


def give_to_nobody(*directories: Path) -> None:
    for directory in directories:
        directory.mkdir(exist_ok=True)
        os.chown(directory, NOBODY, NOBODY)
        for parent, inner, files in os.walk(directory):
            for name in (*inner, *files):
                os.chown(os.path.join(parent, name), NOBODY, NOBODY)


@pytest.fixture(scope="module", autouse=True)
def _another_user() -> None:
    nothing = [*AS_NOBODY, sys.executable, "-c", ""]
    done = subprocess.run(nothing, capture_output=True, text=True, check=False)
    if done.returncode == REFUSED:
        pytest.skip(f"cannot be another user: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr


def test_two_users_have_the_same_keys_and_bytes_and_can_hit_each_others(
    toolchain: Path, tmp_path: Path
) -> None:
    ours = Place(tmp_path / "ours", toolchain)
    theirs = Place(tmp_path / "theirs", toolchain, ours)
    home = theirs.top / "home"
    give_to_nobody(theirs.root, theirs.work, home)
    their_shell = Shell({"HOME": str(home), "TMPDIR": str(home), "USER": "nobody"}, umask=0o027)
    our_shell = Shell({"HOME": str(ours.top), "USER": "root", "PATH": os.environ["PATH"]})
    one = ours.run(our_shell)
    two = theirs.run(their_shell, confined=AS_NOBODY)
    assert (one["uid"], two["uid"]) == (os.getuid(), NOBODY)
    assert one["stats"]["misses"] == two["stats"]["misses"] == 3
    assert one["keys"] == two["keys"]
    assert ours.entries() == theirs.entries()

    shutil.rmtree(theirs.root)
    shutil.copytree(ours.root, theirs.root)
    give_to_nobody(theirs.root)
    again = theirs.run(their_shell, confined=AS_NOBODY)
    assert again["stats"]["ready_hits"] == 3
    assert again["stats"]["misses"] == again["stats"]["bypasses"] == 0
