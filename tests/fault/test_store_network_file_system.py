"""What network file systems do: no locks, no exclusive rename, stale names, names that come back.

Every case ends in a typed outcome with the right bytes: an entry, or a private build.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from pathlib import Path

import pytest
from pypto_store import (
    ArtifactStore,
    Failure,
    Hit,
    Invalid,
    Miss,
    Private,
    Published,
    StorageError,
    build_directory,
    iterate_entries,
)
from pypto_store import linux as linux_calls
from pypto_store.layout import Layout
from pypto_store.testing import (
    GENERATED,
    PAYLOAD,
    READY,
    payload_builder,
    sample_key,
    snapshot,
)

pytestmark = pytest.mark.usefixtures("no_sync")


@pytest.fixture
def root(tmp_path):
    return tmp_path / "root"


def request(root, spec=READY, key="one", build=None, timeout=5):
    return ArtifactStore(root, lock_timeout=timeout).get_or_build(
        sample_key(key), spec, build or payload_builder(), private_parent=root.parent / "private"
    )


def content(result):
    if isinstance(result, Private):
        return {path: (result.path / path).read_bytes() for path in PAYLOAD}
    return {path: result.entry.read(path) for path in PAYLOAD}


# -- locks


@pytest.mark.parametrize(
    "code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EIO]
)
def test_without_locks_every_build_is_private_and_hits_work(root, monkeypatch, code):
    request(root)

    def refuse(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert isinstance(request(root), Hit)
    before = snapshot(root)
    for _ in range(2):
        result = request(root, key="two")
        assert isinstance(result, Private)
        assert result.failure is Failure.LOCK
        assert content(result) == PAYLOAD
    after = snapshot(root)
    assert {path for path in after if path not in before} <= {f"locks/{name(root, 'two')}.lock"}
    monkeypatch.undo()
    assert isinstance(request(root, key="two"), Published)


def name(root, key):
    return sample_key(key).digest.hex


def test_locks_that_lock_nobody_out_still_publish_once(root, monkeypatch, child, latch):
    """Two hosts of which neither sees the other's locks: the rename decides.

    What the other one still builds looks like what a killed process left, and is let alone.
    """
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    inside = [latch(), latch()]

    def start(number):
        def build(directory):
            inside[number].open()
            inside[1 - number].wait()
            payload_builder()(directory)

        def run():
            monkeypatch.setattr(build_directory, "_host", lambda: f"{number}" * 8)
            result = request(root, build=build)
            assert content(result) == PAYLOAD
            return 0 if isinstance(result, (Published, Hit, Private)) else 1

        return run

    children = [child(start(number)) for number in range(2)]
    assert [builder.wait() for builder in children] == [0, 0]
    found = ArtifactStore(root).lookup(sample_key(), READY)
    assert isinstance(found, Hit)
    assert content(found) == PAYLOAD
    assert len(list(iterate_entries(root))) == 1


def test_the_loser_of_such_a_race_takes_what_the_winner_published(root, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)

    def build_while_another_publishes(directory):
        assert isinstance(request(root), Published)
        payload_builder()(directory)

    result = request(root, build=build_while_another_publishes)
    assert isinstance(result, Hit)
    assert content(result) == PAYLOAD
    assert not [path for path in snapshot(root) if ".tmp." in path]


# -- renames


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP])
def test_without_an_exclusive_rename_it_is_checked_before(root, monkeypatch, code):
    import ctypes

    def refuse(*_):
        ctypes.set_errno(code)
        return -1

    monkeypatch.setattr(linux_calls, "_renameat2", refuse)
    assert isinstance(request(root, GENERATED), Published)
    assert isinstance(request(root), Published)
    assert isinstance(request(root), Hit)
    # Something in the slot is still never replaced, be it only an empty directory.
    for key, make in (("file", lambda slot: slot.write_bytes(b"")), ("empty", Path.mkdir)):
        slot = place_of(root, key)

        def build(directory, slot=slot, make=make):
            make(slot)
            payload_builder()(directory)

        before = request(root, GENERATED, key).entry.path
        result = request(root, key=key, build=build)
        assert isinstance(result, Private)
        assert content(result) == PAYLOAD
        assert slot.is_file() if key == "file" else not list(slot.iterdir())
        assert before.is_dir()


def place_of(root, key):
    slot = Path(Layout(str(root)).slot(sample_key(key), READY))
    slot.parent.mkdir(parents=True, exist_ok=True)
    return slot


def test_without_renameat2_in_the_library(root, monkeypatch):
    monkeypatch.setattr(linux_calls, "_renameat2", None)
    monkeypatch.setattr(linux_calls, "_sync_file_range", None)
    assert isinstance(request(root), Published)
    assert isinstance(request(root), Hit)


@pytest.mark.parametrize("done", [False, True])
def test_a_rename_whose_answer_was_lost(root, monkeypatch, done):
    """The server renamed, the client asks again and hears that the source is gone; or never did."""
    rename = linux_calls.rename_new

    def lossy(source, target):
        if "/ready/" in target:
            if done:
                rename(source, target)
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), source, None, target)
        rename(source, target)

    monkeypatch.setattr(linux_calls, "rename_new", lossy)
    result = request(root)
    assert isinstance(result, (Private, Hit))
    assert content(result) == PAYLOAD
    monkeypatch.undo()
    found = ArtifactStore(root).lookup(sample_key(), READY)
    assert isinstance(found, Hit if done else Miss)
    assert isinstance(request(root), Hit if done else Published)


# -- links


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV])
def test_without_links_everything_is_copied(root, monkeypatch, code):
    def refuse(source, target, **_):
        raise OSError(code, os.strerror(code), source, None, target)

    monkeypatch.setattr(os, "link", refuse)
    for key in ("one", "two"):
        result = request(root, key=key)
        assert isinstance(result, Published)
        assert result.shared_bytes == 0
    assert isinstance(request(root), Hit)


def test_a_link_whose_answer_was_lost(root, monkeypatch):
    """The server linked; the client asks again and hears that the name exists."""
    link = os.link

    def lossy(source, target, **more):
        link(source, target, **more)
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), source, None, target)

    request(root, key="other")
    monkeypatch.setattr(os, "link", lossy)
    result = request(root)
    assert content(result) == PAYLOAD
    monkeypatch.undo()
    assert isinstance(request(root), (Hit, Published))
    assert content(request(root)) == PAYLOAD


# -- names


def test_silly_renamed_files_make_an_entry_invalid_and_are_left(root):
    """A removed file that someone has open stays as .nfsXXXX: not in the inventory."""
    entry = request(root).entry
    (entry.path / ".nfs000000000123").write_bytes(b"removed by someone")
    before = snapshot(root)
    store = ArtifactStore(root)
    assert isinstance(store.lookup(sample_key(), READY), Invalid)
    assert content(request(root)) == PAYLOAD
    assert snapshot(root) == before


def test_silly_renamed_files_elsewhere_hurt_nobody(root):
    entry = request(root).entry
    for place in (entry.path.parent, entry.path.parents[1], entry.path.parents[2], root / "locks"):
        (place / ".nfs000000000123").write_bytes(b"")
    store = ArtifactStore(root, lock_timeout=5)
    assert isinstance(store.lookup(sample_key(), READY), Hit)
    assert isinstance(store.discover_ready(sample_key(), lambda _: READY), Hit)
    assert isinstance(request(root, GENERATED), Published)
    assert len(list(iterate_entries(root))) == 2


def test_a_staging_directory_that_cannot_be_emptied(root, monkeypatch):
    """Removing leaves .nfs files behind: what crashed before stays, and nobody is stopped."""
    request(root, GENERATED)
    staging = root.joinpath(*entry_parts(root)) / ".tmp.0123"
    staging.mkdir()
    (staging / ".nfs0001").write_bytes(b"")
    unlink = os.unlink

    def silly(path, *, dir_fd=None):
        if os.fspath(path).endswith(".nfs0001"):
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), path)
        unlink(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", silly)
    assert isinstance(request(root), Published)
    assert len(list(staging.parent.glob(".tmp.*/.nfs0001"))) == 1
    assert len(list(iterate_entries(root))) == 2


def entry_parts(root):
    (row,) = iterate_entries(root)
    return Path(row.path).parent.relative_to(root).parts


class Listing:
    """A scandir that still shows names which are gone, or does not yet show new ones."""

    def __init__(self, monkeypatch, change):
        scandir = os.scandir

        class Entries(list):
            def __enter__(self):
                return self

            def __exit__(self, *_):
                self.clear()

            def close(self):
                self.clear()

        def stale(place="."):
            with scandir(place) as found:
                return Entries(change(place, list(found)))

        monkeypatch.setattr(os, "scandir", stale)


class Gone:
    """A directory entry of something that is no longer there."""

    def __init__(self, directory, name):
        self.name = name
        self.path = f"{directory}/{name}"

    def is_dir(self, *, follow_symlinks=True):
        return True

    def is_file(self, *, follow_symlinks=True):
        return False

    def stat(self, *, follow_symlinks=True):
        return os.stat(self.path, follow_symlinks=follow_symlinks)


def test_a_listing_that_still_shows_what_is_gone(root, monkeypatch):
    request(root, GENERATED)
    request(root)
    gone = sample_key("gone").digest.hex

    def change(place, found):
        if isinstance(place, str) and place.startswith(str(root)):
            return [*found, Gone(place, gone), Gone(place, ".tmp.gone")]
        return found

    Listing(monkeypatch, change)
    store = ArtifactStore(root, lock_timeout=5)
    assert isinstance(store.discover_ready(sample_key(), lambda _: READY), Hit)
    assert len(list(iterate_entries(root))) == 2
    assert isinstance(request(root, key="two"), Published)


def test_a_listing_that_does_not_show_what_is_new(root, monkeypatch):
    request(root, GENERATED)
    request(root)
    Listing(monkeypatch, lambda place, found: [] if isinstance(place, str) else found)
    store = ArtifactStore(root, lock_timeout=5)
    assert isinstance(store.discover_ready(sample_key(), lambda _: READY), Miss)
    # What is asked for by its name does not depend on a listing.
    assert isinstance(store.lookup(sample_key(), READY), Hit)
    assert isinstance(request(root), Hit)


def test_an_entry_whose_listing_lacks_a_file_is_not_served(root, monkeypatch):
    request(root)
    Listing(monkeypatch, lambda place, found: found[:-1] if isinstance(place, int) else found)
    assert isinstance(ArtifactStore(root).lookup(sample_key(), READY), Invalid)
    assert content(request(root)) == PAYLOAD
    monkeypatch.undo()
    assert isinstance(request(root), Hit)


# -- handles


def test_stale_handles_of_files_and_directories(root, monkeypatch):
    """The server has forgotten the file: reading it fails although its name was found."""
    request(root, GENERATED)
    request(root)
    entry = ArtifactStore(root).lookup(sample_key(), READY).entry

    def stale(*_):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    monkeypatch.setattr(os, "readv", stale)
    monkeypatch.setattr(os, "read", stale)
    store = ArtifactStore(root, lock_timeout=5)
    for found in (
        store.lookup(sample_key(), READY),
        store.lookup_generated(sample_key()),
        store.read_hint(sample_key()),
        store.discover_ready(sample_key(), lambda _: READY),
    ):
        assert isinstance(found, StorageError)
    with pytest.raises(OSError, match="Stale"):
        entry.verify("prebuilt/kernel_0.bin")
    result = request(root)
    assert isinstance(result, Private)
    assert result.failure is Failure.STORAGE
    monkeypatch.undo()
    assert isinstance(request(root), Hit)


def test_a_staging_directory_that_becomes_an_entry_while_it_is_swept(root, monkeypatch):
    """Another host, whose lock is not seen here, publishes between the look and the removal."""
    rename = os.rename
    layout = Layout(str(root))
    slot = Path(layout.slot(sample_key(), READY))
    request(root)
    staging = slot.parents[1] / ".tmp.0123456789abcdef01234567"
    slot.rename(staging)

    def late(source, target):
        if os.fspath(source) == str(staging):
            monkeypatch.undo()
            staging.rename(slot)
        rename(source, target)

    rmtree = shutil.rmtree

    def late_too(path, *more, **options):
        if os.fspath(path) == str(staging):
            # Removing goes on in the directory wherever it is renamed to.
            rmtree(path, *more, **options)
            raise AssertionError("a directory was emptied that was about to become an entry")
        rmtree(path, *more, **options)

    monkeypatch.setattr(os, "rename", late)
    monkeypatch.setattr(shutil, "rmtree", late_too)
    result = request(root, GENERATED)
    assert isinstance(result, Published)
    found = ArtifactStore(root).lookup(sample_key(), READY)
    assert isinstance(found, Hit)
    assert content(found) == PAYLOAD
