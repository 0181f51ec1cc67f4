"""`keygen`: keys that nobody else can read, and that are never written over."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from pypto_store import RemoteConfig
from pypto_store.remote.trust import signer_of, trust_of
from pypto_store.remote_environment import read_trusted_keys


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def open_umask():
    """A umask that would let everybody read and write everything."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
def test_a_new_key_signs_and_its_public_key_is_a_file_of_trusted_keys(command, tmp_path):
    private, public = tmp_path / "a.pem", tmp_path / "a.pub"
    done = command("keygen", private, "--public", public)
    assert (done.status, done.err) == (0, "")
    document = done.document
    assert document == {
        "schema_version": 1,
        "private": str(private),
        "public": str(public),
        "key": public.read_text().rstrip("\n"),
        "made": True,
    }
    assert (mode(private), mode(public)) == (0o600, 0o644)
    assert private.read_bytes().startswith(b"-----BEGIN PRIVATE KEY-----\n")
    keys = read_trusted_keys(public, "the test")
    assert keys == (document["key"],)
    config = RemoteConfig("file:///nowhere", trusted_keys=keys, signing_key=private)
    assert trust_of(config).fault(b"manifest", signer_of(config).sign(b"manifest")) is None
    assert private.read_text().splitlines()[1] not in done.out


def test_two_keys_differ(command, tmp_path):
    assert (
        command("keygen", tmp_path / "a").document["key"]
        != command("keygen", tmp_path / "b").document["key"]
    )


def test_show_says_the_public_key_and_makes_nothing(command, tmp_path):
    private, public = tmp_path / "a.pem", tmp_path / "a.pub"
    key = command("keygen", private).document["key"]
    before = private.read_bytes()
    shown = command("keygen", "--show", private).document
    assert (shown["key"], shown["made"], shown["public"]) == (key, False, None)
    assert (private.read_bytes(), sorted(tmp_path.iterdir())) == (before, [private])
    assert command("keygen", "--show", private, "--public", public).status == 0
    assert public.read_text() == f"{key}\n"


@pytest.mark.parametrize("taken", ["a.pem", "a.pub"])
@pytest.mark.parametrize("kind", ["file", "link", "dangling link", "directory"])
def test_what_is_there_stays_and_nothing_is_added(command, tmp_path, taken, kind):
    place, other = tmp_path / taken, tmp_path / "other"
    other.write_bytes(b"precious")
    if kind == "file":
        place.write_bytes(b"precious")
    elif kind == "directory":
        place.mkdir()
    else:
        place.symlink_to(other if kind == "link" else tmp_path / "absent")
    before = sorted(tmp_path.iterdir())
    done = command("keygen", tmp_path / "a.pem", "--public", tmp_path / "a.pub")
    assert (done.status, done.out) == (2, "")
    assert str(place) in done.err and "is there already" in done.err
    assert sorted(tmp_path.iterdir()) == before
    assert other.read_bytes() == b"precious"


def test_a_place_that_is_none_is_said(command, tmp_path):
    done = command("keygen", tmp_path / "absent" / "a.pem")
    assert (done.status, done.out) == (2, "")
    assert str(tmp_path / "absent" / "a.pem") in done.err and "No such file" in done.err
    done = command("keygen", "--show", tmp_path / "a.pem")
    assert (done.status, done.out) == (2, "")
    assert "there is no such file" in done.err


def test_a_terminal_gets_the_key_on_a_line_of_its_own(on_terminal, tmp_path):
    private = tmp_path / ("long" * 30) / "a.pem"
    private.parent.mkdir()
    lines = on_terminal("keygen", private, width=40).out.splitlines()
    assert lines[0].startswith("ed25519:") and len(lines[0]) == len("ed25519:") + 44
    assert str(private) in lines[1]
    assert on_terminal("keygen", "--show", private, width=40).out.splitlines() == lines[:1]


def test_no_store_is_needed_and_relative_names_are_from_here(tmp_path):
    environ = {"PYTHONPATH": os.pathsep.join(sys.path), "PYPTO_CACHE_DIR": "/nonexistent"}
    words = [sys.executable, "-m", "pypto_store", "keygen", "a.pem"]
    done = subprocess.run(
        words, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert Path(tmp_path / "a.pem").exists()


def test_without_the_package_it_says_what_to_install(tmp_path):
    environ = {"PYTHONPATH": os.pathsep.join(sys.path)}
    code = (
        "import sys; sys.modules['cryptography'] = None;"
        "from pypto_store.__main__ import main; sys.exit(main(['keygen', 'a.pem']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path, env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install 'pypto[signing]'" in done.stderr
    assert not list(tmp_path.iterdir())
