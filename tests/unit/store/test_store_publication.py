"""The steps of a publication and what each of them does when it cannot do its usual thing."""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from pathlib import Path

import pypto_store
import pytest
from pypto_store import ArtifactStore, Failure, Hit, Invalid, Miss, Private, Published, crash_points
from pypto_store import linux as linux_calls
from pypto_store.testing import (
    GENERATED,
    PAYLOAD,
    READY,
    payload_builder,
    sample_key,
    snapshot,
)


@pytest.fixture
def root(tmp_path):
    return tmp_path / "root"


@pytest.fixture
def request_entry(root):
    def request(key="one", spec=READY, payload=PAYLOAD, **more):
        store = ArtifactStore(root, lock_timeout=10)
        return store.get_or_build(
            sample_key(key),
            spec,
            payload_builder(payload),
            private_parent=root.parent / "p",
            **more,
        )

    return request


def entries(root):
    return {path: found for path, found in snapshot(root).items() if path.startswith("artifacts")}


def test_every_crash_point_is_in_the_table_and_reached(request_entry):
    package = Path(pypto_store.__file__).parent
    named = set()
    for module in package.glob("*.py"):
        named |= set(re.findall(r'reach\("([^"]+)"\)', module.read_text()))
    reached = []
    with crash_points.armed(reached.append):
        request_entry()
    assert named - set(crash_points.REMOTE_POINTS) == set(crash_points.POINTS) == set(reached)


def test_unknown_crash_point_is_an_error_only_when_armed():
    crash_points.reach("no.such.point")
    with crash_points.armed(lambda _: None), pytest.raises(LookupError):
        crash_points.reach("no.such.point")


def test_everything_is_durable_before_it_is_visible(request_entry, root, monkeypatch):
    """The order of syncs, told from the descriptors that fsync really gets."""
    events = []
    fsync, rename, link = os.fsync, linux_calls.rename_new, os.link

    def traced_fsync(descriptor):
        fsync(descriptor)
        events.append(("fsync", os.readlink(f"/proc/self/fd/{descriptor}")))

    def traced_rename(source, target):
        events.append(("rename", source, target))
        rename(source, target)

    def traced_link(source, target, **more):
        link(source, target, **more)
        events.append(("link", str(target)))

    monkeypatch.setattr(os, "fsync", traced_fsync)
    monkeypatch.setattr(os, "link", traced_link)
    monkeypatch.setattr(linux_calls, "rename_new", traced_rename)
    slot = request_entry().entry.path
    (visible,) = [number for number, event in enumerate(events) if event[-1] == str(slot)]
    staging = events[visible][1]
    synced = [event[1] for event in events[:visible] if event[0] == "fsync"]
    marker = synced.index(f"{staging}/artifact_manifest.json")
    payload = {f"{staging}/{path}" for path in PAYLOAD}
    assert payload <= set(synced[:marker])
    staged_directories = {
        f"{staging}/{parent}" for parent in ("kernels/aiv", "kernels", "prebuilt")
    }
    assert {staging, *staged_directories} <= set(synced[marker:])
    above = [str(slot.parents[number]) for number in range(1, 5)]
    assert above[-1] == str(root / "artifacts")
    assert {*above, str(root)} <= set(synced[marker:])
    assert events[visible + 1] == ("fsync", str(slot.parent))
    after = events[visible + 2 :]
    assert {event[0] for event in after} == {"link"}
    assert not [event for event in events if event[0] == "fsync" and "/cas" in event[1]]


@pytest.mark.parametrize("code", [errno.EXDEV, errno.EMLINK, errno.EPERM, errno.EOPNOTSUPP])
def test_without_links_everything_is_copied_and_nothing_is_indexed(
    request_entry, root, monkeypatch, code
):
    def refuse(source, target, **_):
        raise OSError(code, os.strerror(code), source, None, target)

    monkeypatch.setattr(os, "link", refuse)
    for key in ("one", "two"):
        result = request_entry(key)
        assert isinstance(result, Published)
        assert result.shared_bytes == 0
    assert not [path for path in snapshot(root) if path.startswith("cas/") and len(path) > 6]


def test_an_index_on_another_file_system_stays_empty(request_entry, root):
    """A real EXDEV: the index's directory leads to another device."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as elsewhere:
        assert os.stat(elsewhere).st_dev != os.stat(root.parent).st_dev
        root.mkdir()
        (root / "cas").symlink_to(elsewhere)
        for key in ("one", "two"):
            result = request_entry(key)
            assert isinstance(result, Published)
            assert (result.shared_bytes, result.damaged_blobs) == (0, ())
        assert not [path for path in Path(elsewhere).rglob("*") if path.is_file()]


def test_known_blobs_are_linked_even_across_environments(request_entry, root):
    first, second = request_entry("one"), request_entry("two")
    assert second.shared_bytes == sum(map(len, PAYLOAD.values()))
    for path in PAYLOAD:
        assert os.path.samefile(first.entry.path / path, second.entry.path / path)
    one, two = (r.entry.path / "artifact_manifest.json" for r in (first, second))
    assert not os.path.samefile(one, two)


def blob_of(root, entry, path):
    record = entry.manifest.find(path)
    return root / "cas" / record.sha256[:2] / f"{record.sha256}{'.x' if record.executable else ''}"


@pytest.mark.parametrize("damage", ["bytes", "short", "long", "link", "not executable"])
def test_damaged_blob_is_unlinked_and_its_name_given_to_a_new_file(request_entry, root, damage):
    first = request_entry("one").entry
    path = "prebuilt/kernel_0.bin"
    blob = blob_of(root, first, path)
    aside = root.parent / "aside"
    match damage:
        case "bytes":
            data = bytearray(blob.read_bytes())
            data[len(data) // 2] ^= 1
            blob.write_bytes(data)
        case "short":
            os.truncate(blob, 100)
        case "long":
            with blob.open("ab") as file:
                file.write(b"more")
        case "link":
            blob.rename(aside)
            blob.symlink_to(aside)
        case "not executable":
            blob.chmod(0o600)
    before = blob.stat().st_ino
    second = request_entry("two")
    assert isinstance(second, Published)
    assert [str(digest) for digest in second.damaged_blobs] == [first.manifest.find(path).sha256]
    assert second.shared_bytes == sum(map(len, PAYLOAD.values())) - len(PAYLOAD[path])
    fresh = second.entry.path / path
    assert fresh.read_bytes() == PAYLOAD[path]
    assert blob.lstat().st_ino == fresh.stat().st_ino != before
    # The slot that owns the damaged file is left as it was found.
    assert (first.path / path).stat().st_ino == before
    third = request_entry("three")
    assert third.damaged_blobs == ()
    assert third.shared_bytes == sum(map(len, PAYLOAD.values()))


def test_directory_in_place_of_a_blob_is_left_and_reported(request_entry, root):
    first = request_entry("one").entry
    blob = blob_of(root, first, "kernel_config.json")
    blob.unlink()
    blob.mkdir()
    second = request_entry("two")
    assert isinstance(second, Published)
    assert len(second.damaged_blobs) == 1
    assert blob.is_dir()
    assert isinstance(ArtifactStore(root).lookup(sample_key("two"), READY), Hit)


REPEATED = {"kernel_config.json": b"{}", "a/one": b"same" * 9, "b/two": b"same" * 9, "c": b"same"}


def test_content_that_an_entry_repeats_is_stored_once(request_entry, root):
    result = request_entry(payload=REPEATED)
    assert result.shared_bytes == len(REPEATED["b/two"])
    one, two = (result.entry.path / path for path in ("a/one", "b/two"))
    assert os.path.samefile(one, two)
    assert len(list((root / "cas").glob("*/*"))) == 3
    again = request_entry("two", payload=REPEATED)
    assert again.shared_bytes == sum(map(len, REPEATED.values()))


def test_content_that_differs_in_execution_is_stored_twice(root):
    def build(directory):
        payload_builder(REPEATED)(directory)
        (directory / "b/two").chmod(0o700)

    store = ArtifactStore(root, lock_timeout=10)
    result = store.get_or_build(sample_key(), READY, build, private_parent=root.parent / "p")
    assert result.shared_bytes == 0
    assert isinstance(store.lookup(sample_key(), READY), Hit)


def test_every_link_to_a_damaged_blob_is_replaced(request_entry, root):
    first = request_entry(payload=REPEATED).entry
    damaged = first.path / "a/one"
    damaged.write_bytes(damaged.read_bytes().replace(b"s", b"S"))
    second = request_entry("two", payload=REPEATED)
    assert isinstance(second, Published)
    assert len(second.damaged_blobs) == 1
    assert isinstance(ArtifactStore(root).lookup(sample_key("two"), READY), Hit)


def test_stage_whose_names_clash_in_the_file_system_stays_private(request_entry, root, monkeypatch):
    """As on a file system that folds case, which the builder's own need not do."""
    create = os.open

    def folding(path, flags, *more, **options):
        if flags & os.O_EXCL and os.path.basename(path) == "Name":
            path = path.replace("Name", "name")
        return create(path, flags, *more, **options)

    payload = {"kernel_config.json": b"{}", "name": b"1", "Name": b"2"}
    monkeypatch.setattr(os, "open", folding)
    result = request_entry(payload=payload)
    assert isinstance(result, Private)
    assert result.failure is Failure.PUBLICATION
    assert "'name'" in result.reason
    assert ArtifactStore(root).lookup(sample_key("one"), READY) == Miss()


@pytest.mark.parametrize("order", [(GENERATED, READY), (READY, GENERATED)])
def test_two_inodes_of_a_content_serve_both_states_of_every_key(request_entry, root, order):
    total = sum(map(len, PAYLOAD.values()))
    for spec in order:
        assert request_entry("one", spec).shared_bytes == 0
    before = len({path.stat().st_ino for path in (root / "cas").glob("*/*")})
    assert before == 2 * len(PAYLOAD)
    for key in ("two", "three"):
        pair = [request_entry(key, spec) for spec in order]
        assert [result.shared_bytes for result in pair] == [total, total]
        for path in PAYLOAD:
            assert not os.path.samefile(*(result.entry.path / path for result in pair))
    assert len({path.stat().st_ino for path in (root / "cas").glob("*/*")}) == before


def test_damage_of_the_second_inode_is_withdrawn_by_its_own_name(request_entry, root):
    for spec in (GENERATED, READY):
        request_entry("one", spec)
    path = "kernels/aiv/add.cpp"
    first = blob_of(root, request_entry("two", GENERATED).entry, path)
    second = first.with_name(f"{first.name}.2")
    second.write_bytes(second.read_bytes().replace(b"add", b"sub"))
    damaged, kept = second.stat().st_ino, first.stat().st_ino
    result = request_entry("two", READY)
    assert len(result.damaged_blobs) == 1
    assert second.stat().st_ino != damaged
    assert first.stat().st_ino == kept
    assert isinstance(ArtifactStore(root).lookup(sample_key("two"), READY), Hit)


def test_generated_made_after_ready_does_not_share_with_it(request_entry, root):
    ready = request_entry("one", READY).entry
    generated = request_entry("one", GENERATED).entry
    for path in PAYLOAD:
        assert not os.path.samefile(ready.path / path, generated.path / path)


@pytest.mark.parametrize("missing", ["_renameat2", "_sync_file_range"])
def test_missing_system_calls_have_a_substitute(request_entry, root, monkeypatch, missing):
    monkeypatch.setattr(linux_calls, missing, None)
    assert isinstance(request_entry(), Published)
    assert isinstance(ArtifactStore(root).lookup(sample_key("one"), READY), Hit)


@pytest.mark.parametrize("native", [True, False])
def test_rename_never_replaces(tmp_path, monkeypatch, native):
    if not native:
        monkeypatch.setattr(linux_calls, "_renameat2", None)
    (tmp_path / "new").mkdir()
    for taken in ("empty", "full", "file"):
        place = tmp_path / taken
        place.write_bytes(b"") if taken == "file" else place.mkdir()
        if taken == "full":
            (place / "x").write_bytes(b"")
        with pytest.raises(FileExistsError):
            linux_calls.rename_new(str(tmp_path / "new"), str(place))
    with pytest.raises(FileNotFoundError):
        linux_calls.rename_new(str(tmp_path / "gone"), str(tmp_path / "target"))
    linux_calls.rename_new(str(tmp_path / "new"), str(tmp_path / "target"))
    assert (tmp_path / "target").is_dir()


@pytest.mark.parametrize("intruder", ["valid", "damaged"])
def test_slot_taken_in_spite_of_the_lock(request_entry, root, intruder):
    """As on a file system whose locks lock nothing."""
    request_entry("one")
    slot = ArtifactStore(root).lookup(sample_key("one"), READY).entry.path
    aside = root.parent / "aside"
    slot.rename(aside)
    if intruder == "damaged":
        (aside / "extra").write_bytes(b"")

    def intrude(point):
        if point == "publish.ancestors_synced":
            shutil.copytree(aside, slot)

    with crash_points.armed(intrude):
        result = request_entry("one")
    if intruder == "valid":
        assert isinstance(result, Hit)
        assert not (root.parent / "p").exists()
    else:
        assert isinstance(result, Private)
        assert result.failure is Failure.INVALID
        assert isinstance(ArtifactStore(root).lookup(sample_key("one"), READY), Invalid)
    assert not [path for path in snapshot(root) if ".tmp." in path]


def test_older_staging_of_the_same_key_alone_is_removed(request_entry, root):
    one, two = request_entry("one").entry.path, request_entry("two").entry.path
    for slot in (one, two):
        (slot.parents[1] / ".tmp.old/sub").mkdir(parents=True)
        (slot.parents[1] / ".tmp.marker").write_bytes(b"")
    request_entry("one", GENERATED)
    assert not list(one.parents[1].glob(".tmp.*"))
    assert len(list(two.parents[1].glob(".tmp.*"))) == 2


@pytest.mark.parametrize("umask", [0o077, 0o066, 0])
def test_umask_and_setgid_parents_change_nothing(request_entry, root, umask):
    root.parent.chmod(0o2777)
    previous = os.umask(umask)
    try:
        request_entry()
    finally:
        os.umask(previous)
    modes = {mode & 0o777 for mode, _, _ in entries(root).values()}
    assert modes == {0o700, 0o600}


def test_large_empty_and_many_files(request_entry, root):
    payload = {f"many/{number:04d}": b"%d" % number for number in range(300)}
    payload |= {"kernel_config.json": b"{}", "empty": b"", "large": os.urandom(2_500_000)}
    before = len(os.listdir("/proc/self/fd"))
    entry = request_entry(payload=payload).entry
    assert {path: entry.read(path) for path in payload} == payload
    # The lock of the store stays, nothing else does.
    assert len(os.listdir("/proc/self/fd")) <= before + 1


def test_source_that_changes_between_its_two_readings_stays_private(request_entry, root):
    payload = {"kernel_config.json": b"{}", "large": bytes(2_500_000)}
    write_all = pypto_store.staging.write_all
    spoiled = []

    def spoil(descriptor, data):
        if len(data) == 1024 * 1024 and not spoiled:
            (build,) = (path for path in (root.parent / "p").iterdir() if path.is_dir())
            with (build / "large").open("r+b") as file:
                file.seek(-1, os.SEEK_END)
                file.write(b"!")
            spoiled.append(build)
        write_all(descriptor, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pypto_store.staging, "write_all", spoil)
        result = request_entry(payload=payload)
    assert isinstance(result, Private)
    assert result.failure is Failure.PUBLICATION
    assert spoiled == [result.path]
    assert ArtifactStore(root).lookup(sample_key("one"), READY) == Miss()


def test_error_of_the_recheck_leaves_nothing(request_entry, root):
    def broken():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        request_entry(recheck=broken)
    assert not (root.parent / "p").exists()
    assert isinstance(request_entry(), Published)


def test_private_parent_that_others_use_stays(request_entry, root):
    parent = root.parent / "p"
    parent.mkdir()
    request_entry()
    assert list(parent.iterdir()) == []


def test_unusable_private_parent_is_the_callers_error(request_entry, root):
    (root.parent / "p").write_bytes(b"")
    with pytest.raises(OSError, match="p"):
        request_entry()
    (root.parent / "p").unlink()
    assert isinstance(request_entry(), Published)


def test_root_removed_under_a_living_store_is_made_again(root):
    store = ArtifactStore(root, lock_timeout=10)
    for _ in range(2):
        result = store.get_or_build(
            sample_key(), READY, payload_builder(), private_parent=root.parent / "p"
        )
        assert isinstance(result, Published)
        assert (root / "STORE").exists()
        shutil.rmtree(root)
