"""`fsck`: every kind of damage is found and put aside with a note, and nothing is ever deleted."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys

import pytest
from pypto_store import ArtifactStore, Digest, Hit, Miss, Published, crash_points
from pypto_store.evidence import EvidenceRecord, Input
from pypto_store.testing import (
    GENERATED,
    PAYLOAD,
    READY,
    payload_builder,
    sample_key,
    snapshot,
)

KEY = sample_key("one")


@pytest.fixture
def root(root, writing):
    """The usual root, with evidence and a probe record."""
    with writing(root) as store:
        store.keep_evidence([EvidenceRecord.of("source", KEY.source, [Input("f", "text", "x")])])
    (root / "tools").mkdir(mode=0o700)
    (root / "tools" / f"{'7' * 64}.json").write_bytes(b"{}")
    return root


@pytest.fixture
def slot(root):
    return ArtifactStore(root).lookup(KEY, READY).entry.path


def blob(root, name="prebuilt/kernel_0.bin"):
    content = Digest.of(PAYLOAD[name]).hex
    names = (root / "cas" / content[:2]).glob(f"{content}*")
    (path,) = [path for path in names if path.suffix != ".2"]
    return path


def findings(done):
    return [(item["verdict"], item["what"]) for item in done.document["findings"]]


def fsck(command, root, *words):
    return command("fsck", "--root", root, *words)


def test_a_sound_root_has_nothing(root, command):
    before = snapshot(root)
    done = fsck(command, root)
    assert (done.status, done.err) == (0, "")
    assert done.document["findings"] == []
    payload = sum(map(len, PAYLOAD.values()))
    checked = done.document["checked"]
    assert (checked["entries"], checked["evidence"]) == (4, 1)
    assert checked["blobs"] == len(list((root / "cas").glob("*/*")))
    assert checked["bytes"] == 4 * payload  # a blob that an entry shares is read once
    assert snapshot(root) == before


def put_away(path):
    os.rename(path, f"{path}.away")


def flip(path):
    with open(path, "r+b") as file:
        byte = file.read(1)
        file.seek(0)
        file.write(bytes([byte[0] ^ 1]))


def fresh(path, data):
    os.unlink(path)
    path.write_bytes(data)


def as_directory(path):
    os.unlink(path)
    os.mkdir(path)


SLOT_DAMAGE = {
    "manifest gone": lambda slot: os.unlink(slot / "artifact_manifest.json"),
    "manifest changed": lambda slot: fresh(slot / "artifact_manifest.json", b"{}"),
    "file gone": lambda slot: os.unlink(slot / "empty"),
    "file more": lambda slot: (slot / "more").write_bytes(b""),
    "file changed": lambda slot: fresh(slot / "kernel_config.json", b'{"schema":2}'),
    "file shorter": lambda slot: fresh(slot / "kernel_config.json", b""),
    "file not executable": lambda slot: fresh(
        slot / "prebuilt" / "kernel_0.bin", PAYLOAD["prebuilt/kernel_0.bin"]
    ),
    "file a link": lambda slot: (
        os.unlink(slot / "empty"),
        os.symlink("/dev/null", slot / "empty"),
    ),
    "file a pipe": lambda slot: (os.unlink(slot / "empty"), os.mkfifo(slot / "empty")),
    "of another key": lambda slot: os.rename(slot, slot.parent / ("0" * 64)),
}


@pytest.mark.parametrize("damage", SLOT_DAMAGE.values(), ids=SLOT_DAMAGE.keys())
def test_a_damaged_entry_is_put_aside_and_its_key_can_be_built_again(
    root, slot, command, writing, damage, tmp_path
):
    damage(slot)
    reported = fsck(command, root, "--dry-run")
    assert (reported.status, findings(reported)) == (1, [("damaged", "entry")])
    before = snapshot(root)
    done = fsck(command, root)
    assert (done.status, findings(done)) == (1, [("damaged", "entry")])
    (finding,) = done.document["findings"]
    assert os.path.isdir(finding["quarantined"])
    after = snapshot(root)
    moved = os.path.relpath(finding["path"], root)
    aside = os.path.relpath(finding["quarantined"], root)
    for path, found in before.items():
        kept = aside + path.removeprefix(moved) if path.startswith(moved) else path
        if not stat.S_ISDIR(found[0]):
            assert after[kept] == found  # moved or left, and never deleted
    note = json.loads((root / f"{aside}.json").read_bytes())
    assert (note["path"], note["what"]) == (finding["path"], "entry")
    assert note["reason"] == finding["reason"]
    assert fsck(command, root).status == 0
    with writing(root) as store:
        assert isinstance(store.lookup(KEY, READY), Miss)
        again = store.get_or_build(KEY, READY, payload_builder(), private_parent=tmp_path / "q")
    assert isinstance(again, Published)


def test_one_flipped_inode_is_found_wherever_it_is_named(root, slot, command):
    flip(slot / "prebuilt" / "kernel_0.bin")
    done = fsck(command, root)
    assert done.status == 1
    named = [item["path"] for item in done.document["findings"]]
    inode = next(
        os.stat(path).st_ino
        for path in [f"{item['quarantined']}/prebuilt/kernel_0.bin" for item in
                     done.document["findings"] if item["what"] == "entry"]
    )  # fmt: skip
    assert str(slot) in named
    # Whatever is left in the root is sound, and does not share that inode.
    assert fsck(command, root).status == 0
    left = [path for path in root.rglob("*") if "quarantine" not in path.parts]
    assert inode not in {os.stat(path).st_ino for path in left}


@pytest.mark.parametrize(
    "damage",
    [flip, lambda path: path.write_bytes(b""), as_directory, lambda path: os.chmod(path, 0o600)],
)
def test_a_damaged_blob_is_put_aside(root, command, damage):
    path = blob(root)
    own = path.with_name("copy")
    own.write_bytes(path.read_bytes())  # no slot's inode: only the index is at fault
    os.chmod(own, 0o700)
    os.replace(own, path)
    damage(path)
    done = fsck(command, root)
    assert (done.status, findings(done)) == (1, [("damaged", "blob")])
    assert not os.path.lexists(path)
    assert fsck(command, root).status == 0


@pytest.mark.parametrize(
    ("make", "verdict", "what"),
    [
        (lambda root: (root / "locks" / f"{'1' * 64}.lock").mkdir(), "damaged", "lock"),
        (lambda root: (root / "evidence" / f"{'1' * 64}.json").write_bytes(b"{}"),
         "damaged", "evidence"),
        (lambda root: (root / "tools" / f"{'1' * 64}.json").mkdir(), "damaged", "record"),
        (lambda root: put_away(root / "evidence") or (root / "evidence").write_bytes(b""),
         "damaged", "directory"),
    ],
)  # fmt: skip
def test_what_stands_in_the_way_is_put_aside(root, command, make, verdict, what):
    make(root)
    done = fsck(command, root)
    assert done.status == 1
    assert (verdict, what) in findings(done)
    assert fsck(command, root).status == 0


def key_directory(root):
    (path,) = root.glob(f"artifacts/v1/*/{KEY.digest.hex}")
    return path


@pytest.mark.parametrize(
    ("make", "verdict"),
    [
        (lambda root: (key_directory(root) / ".tmp.abc").mkdir(), "leftover"),
        (lambda root: (root / "evidence" / ".tmp.abc").write_bytes(b""), "leftover"),
        (lambda root: (root / "tools" / ".tmp.abc").write_bytes(b""), "leftover"),
        (lambda root: (root / "trash" / "abc").mkdir(parents=True), "leftover"),
        (lambda root: (root / "notes.txt").write_bytes(b""), "foreign"),
        (lambda root: (root / "artifacts" / "v2").mkdir(), "foreign"),
        (lambda root: (root / "artifacts" / "v1" / "notes").mkdir(), "foreign"),
        (lambda root: (root / "artifacts" / "v1" / ("1" * 64)).write_bytes(b""), "foreign"),
        (lambda root: (key_directory(root) / "notes").mkdir(), "foreign"),
        (lambda root: (key_directory(root) / "ready" / "notes").mkdir(), "foreign"),
        (lambda root: (root / "cas" / "00").mkdir() or (root / "cas" / "00" / ("1" * 64))
         .write_bytes(b""), "foreign"),
        (lambda root: (root / "locks" / "notes").write_bytes(b""), "foreign"),
    ],
)  # fmt: skip
def test_leftovers_and_foreign_files_are_told_and_left(root, command, make, verdict):
    make(root)
    before = snapshot(root)
    done = fsck(command, root)
    assert done.status == 0
    assert [item["verdict"] for item in done.document["findings"]] == [verdict]
    assert snapshot(root) == before


def test_a_dry_run_writes_nothing_and_needs_no_lock(root, slot, command, writer):
    SLOT_DAMAGE["file gone"](slot)
    before = snapshot(root)
    assert fsck(command, root, "--dry-run").status == 1
    assert snapshot(root) == before


def test_looking_is_no_use(root, command):
    """What nobody used must not look used: the time of access of manifests is left alone."""
    (path,) = root.glob(f"artifacts/v1/*/{KEY.digest.hex}/generated/artifact_manifest.json")
    os.utime(path, (1_000_000_000, 1_100_000_000))  # so old that a plain read would move it
    for words in (["ls"], ["show", KEY.digest.hex], ["why", KEY.digest.hex], ["fsck"]):
        command(*words, "--root", root)
        assert os.stat(path).st_atime == 1_000_000_000, words


WRITER = """
import sys, time
from pathlib import Path
from pypto_store import ArtifactStore
from pypto_store.testing import GENERATED, payload_builder, sample_key
root = Path(sys.argv[1])
ArtifactStore(root).get_or_build(
    sample_key("writer"), GENERATED, payload_builder(), private_parent=root.parent / "w"
)
print("ready", flush=True)
time.sleep(60)
"""


@pytest.fixture
def writer(root):
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(root)], stdout=subprocess.PIPE, env=environ
    )
    assert process.stdout.readline() == b"ready\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_living_writer_is_named_and_left_alone(root, slot, command, writer):
    SLOT_DAMAGE["file gone"](slot)
    before = snapshot(root)
    done = fsck(command, root)
    assert (done.status, done.out) == (3, "")
    assert f"process {writer.pid}" in done.err and "--dry-run" in done.err
    assert snapshot(root) == before


def test_only_stores_are_touched(tmp_path, command):
    (tmp_path / "home" / "artifacts").mkdir(parents=True)
    (tmp_path / "home" / "cas").write_bytes(b"mine")
    done = fsck(command, tmp_path / "home")
    assert (done.status, done.out) == (2, "")
    assert "STORE" in done.err
    assert (tmp_path / "home" / "cas").read_bytes() == b"mine"
    assert fsck(command, tmp_path / "absent").status == 2
    assert not (tmp_path / "absent").exists()


def test_a_failing_disk_is_damage_and_a_closed_door_is_not(root, slot, command, monkeypatch):
    real = os.open

    def failing(number):
        def open_(path, flags, *more, **named):
            if path == "kernel_config.json":
                raise OSError(number, os.strerror(number), path)
            return real(path, flags, *more, **named)

        return open_

    monkeypatch.setattr(os, "open", failing(errno.EACCES))
    done = fsck(command, root)
    assert (done.status, set(findings(done))) == (1, {("unreadable", "entry")})
    assert [item["quarantined"] for item in done.document["findings"]] == [None] * 4
    monkeypatch.setattr(os, "open", failing(errno.EIO))
    assert set(findings(fsck(command, root, "--dry-run"))) == {("damaged", "entry")}


def test_a_directory_that_cannot_be_listed_is_told(root, command, monkeypatch):
    real = os.scandir

    def scandir(path):
        if str(path).endswith("/evidence"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    done = fsck(command, root)
    assert (done.status, findings(done)) == (1, [("unreadable", "directory")])


@pytest.mark.parametrize("point", ["fsck.noted", "fsck.moved"])
def test_an_interrupted_run_is_taken_up(root, slot, command, point):
    SLOT_DAMAGE["file gone"](slot)
    flip(blob(root, "kernels/aiv/add.cpp"))

    class Killed(BaseException):
        pass

    def strike(reached):
        if reached == point:
            raise Killed

    with crash_points.armed(strike), pytest.raises(Killed):
        fsck(command, root)
    fsck(command, root)
    assert fsck(command, root).status == 0
    for note in root.glob("quarantine/*/*.json"):
        told = json.loads(note.read_bytes())
        assert note.with_suffix("").exists() or not os.path.lexists(told["path"])


def test_a_full_disk_leaves_damage_where_it_is(root, slot, command, monkeypatch):
    SLOT_DAMAGE["file gone"](slot)

    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", refuse)
    done = fsck(command, root)
    assert (done.status, done.out) == (2, "")
    assert str(slot) in done.err and "No space" in done.err
    assert slot.is_dir()


def test_a_group_that_shares_the_root_may_look_into_quarantine(root, slot, command):
    os.chmod(root, 0o2750)
    SLOT_DAMAGE["file gone"](slot)
    (finding,) = fsck(command, root).document["findings"]
    assert os.stat(root / "quarantine").st_mode & 0o7777 == 0o2750
    assert os.stat(os.path.dirname(finding["quarantined"])).st_mode & 0o7777 == 0o2750
    assert os.stat(f"{finding['quarantined']}.json").st_mode & 0o777 == 0o640


def test_a_terminal_is_told_in_words(root, slot, on_terminal):
    SLOT_DAMAGE["file gone"](slot)
    (root / "trash" / "abc").mkdir(parents=True)
    done = on_terminal("fsck", "--root", root)
    assert done.status == 1
    assert "damaged entry: 'empty' is missing" in done.out
    assert str(slot) in done.out and "moved to" in done.out
    assert "1 damaged, 0 unreadable, 1 leftover, 0 foreign" in done.out
    assert "gc removes leftovers" in done.out


def test_other_entries_stay_usable(root, slot, command):
    SLOT_DAMAGE["manifest gone"](slot)
    fsck(command, root)
    assert isinstance(ArtifactStore(root).lookup(KEY, GENERATED), Hit)
