"""Which remote `push` and `pull` speak to, where they refuse to, and whose entries they take."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from carried_entries import KEY
from pypto_store import ArtifactStore, iterate_entries
from pypto_store.layout import Layout
from pypto_store.locks import acquire
from pypto_store.remote.collections import (
    fetch_collection,
    put_collection,
)
from pypto_store.remote.engines import open_engine
from pypto_store.remote.trust import ANYONE, signer_of
from pypto_store.remote_config import RemoteConfig
from pypto_store.testing import GENERATED, payload_builder, sample_key
from pypto_store.tools import pull

# -- this side refuses


@pytest.mark.parametrize("name", ["push", "pull"])
def test_a_remote_has_to_be_named(command, name):
    done = command(name, "--root", "/absent")
    assert (done.status, done.out) == (2, "")
    assert "--remote URL" in done.err and "PYPTO_CACHE_REMOTE" in done.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--remote", "ftp://user:secret@host"], "--remote must start with"),
        (["--remote", "http://user:secret@host"], "--remote has a name"),
        (["--remote", "http://host", "--header", "X-Key secret"], "--header: a header is written"),
        (["--remote", "http://host", "--instance", "a"], "--instance is for grpc"),
        (["--remote", "http://host", "--tls-ca", "f"], "--tls-* is for https"),
        (["--remote", "https://host", "--tls-key", "f"], "--tls-key is of no use without --tls-c"),
        (["--remote", "https://host", "--tls-ca", "/absent"], "/absent"),
        (["--remote", "http://host", "--timeout", "0"], "--timeout must be more than 0"),
        (["--remote", "file:///x", "--trusted-key", "ed25519:x"], "--trusted-key"),
        (["--remote", "file:///x", "--trusted-keys", "/absent"], "--trusted-keys: /absent"),
    ],
)
@pytest.mark.parametrize("name", ["push", "pull"])
def test_a_remote_that_is_named_wrongly_is_said(tmp_path, command, name, words, told):
    ArtifactStore(tmp_path / "root").get_or_build(
        sample_key(), GENERATED, payload_builder(), private_parent=tmp_path / "p"
    )
    done = command(name, "--root", tmp_path / "root", *words)
    assert (done.status, done.out) == (2, "")
    assert told in done.err
    assert "secret" not in done.err and "RemoteConfig" not in done.err


def test_the_environment_names_the_remote_and_options_change_it(root, url, place, command):
    environ = {"PYPTO_CACHE_REMOTE": url, "PYPTO_CACHE_DIR": str(root)}
    assert command("push", environ=environ).document["remote"] == url
    wrong = command("push", environ={**environ, "PYPTO_CACHE_REMOTE_TIMEOUT": "soon"})
    assert wrong.status == 2 and "PYPTO_CACHE_REMOTE_TIMEOUT" in wrong.err
    # Another remote is not given what is meant for this one.
    secret = {**environ, "PYPTO_CACHE_REMOTE": "https://h", "PYPTO_CACHE_REMOTE_HEADERS": "A: b"}
    assert command("push", "--remote", url, environ=secret).status == 0
    readonly = {**environ, "PYPTO_CACHE_REMOTE_READONLY": "1"}
    for words in ((), ("--remote", url)):
        refused = command("push", *words, environ=readonly)
        assert (refused.status, refused.out) == (2, "") and "read only" in refused.err
    assert command("pull", environ=readonly).status == 0


def test_a_place_that_cannot_be_written_is_refused_before_anything_is_asked_for(
    root, url, command, tmp_path, monkeypatch
):
    command("push", "--root", root, "--remote", url)
    (tmp_path / "file").write_bytes(b"")
    asked = []
    monkeypatch.setattr(pull, "fetch_collection", lambda *a: asked.append(a))
    done = command("pull", "--root", tmp_path / "file" / "root", "--remote", url)
    assert (done.status, done.out) == (2, "")
    assert str(tmp_path / "file") in done.err
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "locks").write_bytes(b"")  # root may write anywhere else
    locked = command("pull", "--root", tmp_path / "there", "--remote", url)
    assert (locked.status, locked.out) == (2, "")
    assert "cannot lock" in locked.err and "--bundle" in locked.err
    nowhere = command("pull", "--bundle", tmp_path / "none" / "b", "--remote", url)
    assert nowhere.status == 2 and str(tmp_path / "none") in nowhere.err
    inside = command("pull", "--root", root, "--remote", url, "--scratch", root)
    assert inside.status == 2 and "--scratch" in inside.err
    assert asked == []


def test_a_root_of_another_layout_is_refused(url, command, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "STORE").write_bytes(b"pypto-store 99\n")
    for name in ("push", "pull"):
        done = command(name, "--root", tmp_path / "other", "--remote", url)
        assert done.status == 2 and "pypto-store 99" in done.err


def test_a_cleaning_is_not_waited_for_for_ever(root, url, command, monkeypatch, tmp_path):
    command("push", "--root", root, "--remote", url)
    monkeypatch.setattr(pull, "_LOCK_SECONDS", 0.05)
    with acquire(Layout(os.fspath(root)).store_lock, shared=False, timeout=1):
        done = command("pull", "--root", root, "--remote", url)
    assert (done.status, done.out) == (3, "")


@pytest.mark.parametrize("name", ["push", "pull"])
def test_a_remote_inside_the_store_is_refused_and_untouched(root, command, name):
    before = sorted(root.rglob("*"))
    for place in (root, root / "artifacts" / "x"):
        done = command(name, "--root", root, "--remote", place.as_uri())
        assert done.status == 2 and "lies inside the store" in done.err
    assert sorted(root.rglob("*")) == before


def test_an_empty_root_has_nothing_to_send(url, command, tmp_path):
    (tmp_path / "empty").mkdir()
    done = command("push", "--root", tmp_path / "empty", "--remote", url)
    assert (done.status, done.out) == (1, "") and "no entry" in done.err


def test_a_remote_that_needs_a_package_says_which(root):
    environ = {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"}
    code = (
        "import sys; sys.modules['grpc'] = None;"
        "from pypto_store.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    for name in ("push", "pull"):
        done = subprocess.run(
            [sys.executable, "-c", code, name, "--root", str(root), "--remote", "grpc://127.0.0.1:1"],
            capture_output=True, text=True, env=environ, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (2, "")
        assert "pypto[remote]" in done.stderr and "Traceback" not in done.stderr
    assert Path(root).is_dir()


# -- who vouches


@pytest.fixture
def keys(tmp_path, command):
    """Names of two key pairs: the private file, and the text of the public key."""
    made = {}
    for name in ("a", "b"):
        file, public = tmp_path / f"{name}.pem", tmp_path / f"{name}.pub"
        assert command("keygen", file, "--public", public).status == 0
        made[name] = (file, public)
    return made


def test_signed_entries_are_what_trusted_keys_let_in(root, url, command, tmp_path, keys):
    (private, public), (_, other) = keys["a"], keys["b"]
    there = tmp_path / "there"
    signed = command("push", "--root", root, "--remote", url, "--signing-key", private)
    assert signed.document["collection"]["signed"]
    refused = command("pull", "--root", there, "--remote", url, "--trusted-keys", other)
    assert (refused.status, refused.out) == (2, "")
    assert not list(iterate_entries(there))
    taken = command("pull", "--root", there, "--remote", url, "--trusted-keys", public)
    assert (taken.status, taken.document["counts"]["pulled"]) == (0, 4)
    anybody = command("pull", "--root", tmp_path / "anybody", "--remote", url)
    assert anybody.document["counts"]["pulled"] == 4


def test_unsigned_entries_on_a_signed_list_are_rejected(root, url, command, tmp_path, keys):
    private, public = keys["a"]
    command("push", "--root", root, "--remote", url, "--as", "unsigned")
    engine = open_engine(RemoteConfig(url))
    found = fetch_collection(engine, url, "unsigned", ANYONE)
    signer = signer_of(RemoteConfig(url, signing_key=private))
    put_collection(engine, found.collection, signer)
    there = tmp_path / "there"
    words = ("--root", there, "--remote", url, "--as", "unsigned", "--trusted-keys", public)
    done = command("pull", *words)
    assert (done.status, done.document["counts"]["rejected"]) == (1, 4)
    assert "not signed" in done.document["entries"][0]["reason"]
    assert not list(iterate_entries(there))


def test_a_signed_list_is_not_replaced_by_an_unsigned_one(root, url, command, keys):
    private, _ = keys["a"]
    command("push", "--root", root, "--remote", url, "--signing-key", private, KEY[:6])
    done = command("push", "--root", root, "--remote", url)
    assert (done.status, done.out) == (2, "")
    assert "is signed" in done.err and "--signing-key" in done.err
    assert command("push", "--root", root, "--remote", url, "--as", "mine").status == 0
    again = command("push", "--root", root, "--remote", url, "--signing-key", private).document
    assert again["collection"] == {
        "name": "default", "entries": 4, "added": 1, "signed": True, "replaced": None,
    }  # fmt: skip


def test_who_demands_signatures_and_has_no_key_sends_nothing(root, url, place, command, keys):
    done = command("push", "--root", root, "--remote", url, "--trusted-keys", keys["a"][1])
    assert (done.status, done.out) == (2, "")
    assert "nothing is sent" in done.err and not place.exists()
    absent = command("push", "--root", root, "--remote", url, "--signing-key", "/absent.pem")
    assert absent.status == 2 and "/absent.pem" in absent.err and not place.exists()


def test_a_key_of_the_environment_is_asked_for_at_any_remote(root, url, command, tmp_path, keys):
    command("push", "--root", root, "--remote", url)
    environ = {"PYPTO_CACHE_REMOTE_TRUSTED_KEYS": str(keys["a"][1])}
    done = command("pull", "--root", tmp_path / "there", "--remote", url, environ=environ)
    assert (done.status, done.out) == (2, "") and "not signed" in done.err
