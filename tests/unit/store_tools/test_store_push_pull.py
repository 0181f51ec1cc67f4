"""`push` and `pull`: what they move, of a store and of a bundle, and what they say of it."""

from __future__ import annotations

import json
import os
import re
import stat

import pytest
from carried_entries import KEY, TWO, entries, entry_file, fates
from pypto_store import ArtifactStore, Hit, iterate_entries
from pypto_store.evidence import EvidenceRecord, Input
from pypto_store.remote.collections import (
    Collection,
    Listed,
    put_collection,
)
from pypto_store.remote.engines import open_engine
from pypto_store.remote.entry_name import entry_name
from pypto_store.remote_config import RemoteConfig
from pypto_store.testing import GENERATED, READY, sample_key, snapshot

# -- there and back


def test_a_pushed_root_is_pulled_elsewhere_byte_for_byte(root, url, command, tmp_path):
    pushed = command("push", "--root", root, "--remote", url)
    assert (pushed.status, pushed.err) == (0, "")
    assert pushed.document["counts"] == {"sent": 4, "present": 0, "damaged": 0, "failed": 0}
    assert pushed.document["remote"] == url
    assert pushed.document["collection"] == {
        "name": "default", "entries": 4, "added": 4, "signed": False, "replaced": None,
    }  # fmt: skip
    there = tmp_path / "there"
    pulled = command("pull", "--root", there, "--remote", url)
    assert (pulled.status, pulled.err) == (0, "")
    assert pulled.document["counts"]["pulled"] == 4
    assert entries(there) == entries(root)
    store = ArtifactStore(there, readonly=True)
    assert isinstance(store.lookup(sample_key("one"), READY), Hit)
    assert not [path for path in snapshot(there) if ".tmp." in path]


def test_what_is_there_is_not_moved_again(root, url, command, tmp_path):
    there = tmp_path / "there"
    for words in (("push", "--root", root), ("pull", "--root", there)):
        command(*words, "--remote", url)
    before = snapshot(tmp_path / "remote"), snapshot(there)
    pushed = command("push", "--root", root, "--remote", url).document
    assert pushed["counts"]["present"] == 4
    assert (pushed["bytes_sent"], pushed["collection"]["added"]) == (0, 0)
    pulled = command("pull", "--root", there, "--remote", url).document
    assert pulled["counts"]["present"] == 4
    assert (snapshot(tmp_path / "remote"), snapshot(there)) == before


def test_pushing_reads_and_writes_nothing_below_the_root(root, url, command):
    before = snapshot(root)
    manifests = [os.path.join(row.path, "artifact_manifest.json") for row in iterate_entries(root)]
    for path in manifests:
        os.utime(path, (5, 10))
    assert command("push", "--root", root, "--remote", url).status == 0
    assert {os.stat(path).st_atime for path in manifests} == {5}  # no use of them
    assert snapshot(root) == before


def test_keys_choose_what_goes_and_what_comes(root, url, command, tmp_path):
    pushed = command("push", "--root", root, "--remote", url, KEY[:6])
    assert {key for key, _, _ in fates(pushed)} == {KEY} and len(fates(pushed)) == 3
    command("push", "--root", root, "--remote", url)
    pulled = command("pull", "--root", tmp_path / "there", "--remote", url, TWO[:9])
    assert fates(pulled) == {(TWO, "generated", None): "pulled"}
    for name in ("push", "pull"):
        absent = command(name, "--root", root, "--remote", url, "0123456789abcdef")
        assert (absent.status, absent.out) == (1, "")
        assert "0123456789abcdef" in absent.err
        # `ls` does not show what a list at a remote has.
        assert ("`ls`" in absent.err) == (name == "push")
        both = command(name, "--root", root, "--remote", url, KEY[:6], "--kernel", "k")
        assert both.status == 2 and "not by both" in both.err


def test_kernels_are_found_by_their_names_on_the_list(root, url, command, writing, tmp_path):
    with writing(root) as store:
        source = sample_key("one").source
        inputs = (Input("function kernels:add", "text", "..."),)
        store.keep_evidence([EvidenceRecord.of("source", source, inputs, "kernels:add")])
    pushed = command("push", "--root", root, "--remote", url, "--kernel", "add")
    assert {key for key, _, _ in fates(pushed)} == {KEY}
    assert {entry["kernel"] for entry in pushed.document["entries"]} == {"kernels:add"}
    command("push", "--root", root, "--remote", url)
    pulled = command(
        "pull", "--root", tmp_path / "there", "--remote", url, "--kernel", "kernels:add"
    )
    assert {key for key, _, _ in fates(pulled)} == {KEY}
    for name in ("push", "pull"):
        done = command(name, "--root", root, "--remote", url, "--kernel", "other")
        assert (done.status, done.out) == (1, "") and "'other'" in done.err


def test_lists_have_names_and_grow(root, url, command, tmp_path):
    command("push", "--root", root, "--remote", url, "--as", "nightly", KEY[:6])
    grown = command("push", "--root", root, "--remote", url, "--as", "nightly", TWO[:6])
    assert grown.document["collection"]["entries"] == 4
    assert grown.document["collection"]["added"] == 1
    there = tmp_path / "there"
    none = command("pull", "--root", there, "--remote", url)
    assert (none.status, none.out) == (1, "")
    assert "no collection 'default'" in none.err and "--as" in none.err
    assert not (there / "artifacts").exists()
    pulled = command("pull", "--root", there, "--remote", url, "--as", "nightly")
    assert pulled.document["counts"]["pulled"] == 4
    for name in ("push", "pull"):
        done = command(name, "--root", root, "--remote", url, "--as", "a/b")
        assert done.status == 2 and "no name of a collection" in done.err


# -- bundles


def test_a_bundle_is_pushed_without_a_root(root, url, command, tmp_path):
    bundle = tmp_path / "b.tar.zst"
    command("export", "--root", root, "--all", "-o", bundle)
    environ = {"PYPTO_CACHE_DIR": str(tmp_path / "untouched"), "TMPDIR": str(tmp_path / "tmp")}
    (tmp_path / "tmp").mkdir()
    pushed = command("push", "--bundle", bundle, "--remote", url, environ=environ)
    assert (pushed.status, pushed.err) == (0, "")
    assert pushed.document["counts"]["sent"] == 4
    assert pushed.document["bundle"] == str(bundle)
    assert "root" not in pushed.document
    assert not (tmp_path / "untouched").exists()
    assert not list((tmp_path / "tmp").iterdir())
    command("pull", "--root", tmp_path / "there", "--remote", url)
    assert entries(tmp_path / "there") == entries(root)
    one = command(
        "push", "--bundle", bundle, "--remote", url, "--as", "x", KEY[:6], environ=environ
    )
    assert len(one.document["entries"]) == 3


def test_a_bundle_that_tells_kernels_is_chosen_from(root, url, command, writing, tmp_path):
    with writing(root) as store:
        source = sample_key("one").source
        inputs = (Input("function kernels:add", "text", "..."),)
        store.keep_evidence([EvidenceRecord.of("source", source, inputs, "kernels:add")])
    bundle = tmp_path / "b.tar.zst"
    command("export", "--root", root, "--all", "--with-evidence", "-o", bundle)
    pushed = command("push", "--bundle", bundle, "--remote", url, "--kernel", "add")
    assert {entry["kernel"] for entry in pushed.document["entries"]} == {"kernels:add"}
    other = command("push", "--bundle", bundle, "--remote", url, "--kernel", "other")
    assert other.status == 1 and "'other'" in other.err


def test_a_damaged_bundle_sends_nothing(root, url, place, command, tmp_path):
    bundle = tmp_path / "b.tar.zst"
    command("export", "--root", root, "--all", "-o", bundle)
    bundle.write_bytes(bundle.read_bytes()[:-9])
    done = command("push", "--bundle", bundle, "--remote", url)
    assert (done.status, done.out) == (2, "")
    assert str(bundle) in done.err
    assert not place.exists()


def test_a_list_is_pulled_into_a_bundle_without_a_root(root, url, command, tmp_path):
    command("push", "--root", root, "--remote", url)
    bundle, exported = tmp_path / "b.tar.zst", tmp_path / "e.tar.zst"
    environ = {"TMPDIR": str(tmp_path / "tmp")}
    (tmp_path / "tmp").mkdir()
    done = command("pull", "--bundle", bundle, "--remote", url, environ=environ)
    assert (done.status, done.err) == (0, "")
    assert done.document["bundle"] == str(bundle)
    assert done.document["bundle_size"] == bundle.stat().st_size
    assert not list((tmp_path / "tmp").iterdir())
    command("export", "--root", root, "--all", "-o", exported)
    assert bundle.read_bytes() == exported.read_bytes()
    with pytest.raises(SystemExit) as both:
        command("pull", "--bundle", bundle, "--root", root)
    assert both.value.code == 2


def test_no_bundle_is_written_where_nothing_arrives(root, url, place, command, tmp_path):
    command("push", "--root", root, "--remote", url, TWO[:6])
    os.unlink(
        entry_file(place, entry_name(sample_key("two", "elsewhere"), GENERATED).digest.sha256.hex)
    )
    done = command("pull", "--bundle", tmp_path / "b", "--remote", url)
    assert (done.status, done.out) == (1, "") and "no bundle" in done.err
    assert not (tmp_path / "b").exists()


def test_files_keep_their_modes(root, url, command, tmp_path):
    def build(directory):
        for name, mode in (("a", 0o755), ("b", 0o644), ("kernel_config.json", 0o644)):
            (directory / name).write_bytes(b"same")
            (directory / name).chmod(mode)

    there = tmp_path / "there"
    ArtifactStore(tmp_path / "own").get_or_build(
        sample_key(), READY, build, private_parent=tmp_path / "p"
    )
    command("push", "--root", tmp_path / "own", "--remote", url)
    command("pull", "--root", there, "--remote", url)
    found = ArtifactStore(there).lookup(sample_key(), READY)
    modes = {name: os.stat(found.entry.path / name).st_mode & stat.S_IXUSR for name in ("a", "b")}
    assert (bool(modes["a"]), bool(modes["b"])) == (True, False)


# -- what is shown


def shown(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize("width", [80, 100])
def test_a_terminal_reads_what_became_of_the_entries(root, url, on_terminal, tmp_path, width):
    with open(f"{next(iterate_entries(root)).path}/artifact_manifest.json", "ab") as file:
        file.write(b" ")
    pushed = on_terminal("push", "--root", root, "--remote", url, width=width)
    told = shown(pushed.out)
    assert "4 entries" in told and "3 sent, 1 damaged" in told
    assert "collection default: 3 entries, 3 new" in told
    pulled = on_terminal("pull", "--root", tmp_path / "there", "--remote", url, width=width)
    assert "3 pulled" in shown(pulled.out)
    for done in (pushed, pulled):
        lines = [line for line in shown(done.out).splitlines() if "damaged:" not in line]
        assert max(map(len, lines)) <= width


def test_names_from_a_remote_move_no_cursor(root, url, command, on_terminal, tmp_path):
    evil = Listed(sample_key("no"), GENERATED, sample_key().digest, 1, "\x1b[2Jk")
    put_collection(open_engine(RemoteConfig(url)), Collection("default", (evil,)), None)
    done = on_terminal("pull", "--root", tmp_path / "there", "--remote", url)
    assert "\x1b[2J" not in done.out
    printed = command("pull", "--root", tmp_path / "there", "--remote", url)
    assert json.loads(printed.out)["entries"][0]["kernel"] == "\x1b[2Jk"
    assert "\x1b" not in printed.out


@pytest.mark.parametrize("name", ["push", "pull"])
def test_help_names_every_option(name, command, capsys):
    with pytest.raises(SystemExit):
        command(name, "--help")
    told = capsys.readouterr().out
    for option in ("--bundle", "--as", "--kernel", "--remote", "--instance", "--header", "--tls-ca",
                   "--timeout", "--credential-helper", "--trusted-key", "--scratch"):  # fmt: skip
        assert option in told
    assert ("--signing-key" in told) == (name == "push")
