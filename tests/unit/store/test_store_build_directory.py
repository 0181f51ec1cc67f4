"""Private build directories, and what is done about those of processes that were killed."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess

import pytest
from pypto_store import ArtifactStore, Private, Published, build_directory
from pypto_store.build_directory import BuildDirectory
from pypto_store.testing import READY, payload_builder, sample_key

NAME = "0123456789abcdef"


@pytest.fixture
def parent(tmp_path):
    return tmp_path / "build_output"


def in_child(action):
    """Start a child that does `action` and waits to be killed; returns when it has been done."""
    ready, done = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            action()
            os.write(done, b"x")
            signal.pause()
        finally:
            os._exit(1)
    os.close(done)
    assert os.read(ready, 1) == b"x"
    os.close(ready)
    return pid


def kill(pid):
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def fill(parent):
    """Begin a build that stages beside its directory, as compilers do."""
    built = BuildDirectory(str(parent), NAME)
    deep = os.path.join(built.path, "kernels/aiv")
    os.makedirs(deep)
    with open(f"{deep}/half.cpp", "w", encoding="utf-8") as file:
        file.write("half")
    base = os.path.basename(built.path)
    os.mkdir(f"{parent}/.{base}.00ff.tmp")
    return built


def test_a_directory_is_private_and_leaves_no_lock_file_once_it_is_kept(parent):
    built = BuildDirectory(str(parent), NAME)
    assert os.stat(built.path).st_mode & 0o777 == 0o700
    assert os.stat(parent).st_mode & 0o777 == 0o700
    assert len(list(parent.iterdir())) == 2
    assert built.keep() == built.path
    assert [str(path) for path in parent.iterdir()] == [built.path]


def test_a_discarded_directory_leaves_nothing(tmp_path):
    built = BuildDirectory(str(tmp_path / "a/b"), NAME)
    (tmp_path / "a/b" / built.path / "file").write_bytes(b"")
    built.discard()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_builder_left_is_removed_by_the_next_one(parent):
    kill(in_child(lambda: fill(parent)))
    assert len(list(parent.iterdir())) == 3
    built = BuildDirectory(str(parent), NAME)
    name = os.path.basename(built.path)
    (lock,) = parent.glob(f".{name}.*.building")
    assert {path.name for path in parent.iterdir()} == {name, lock.name}
    built.discard()


def test_what_another_host_builds_stays_although_its_lock_looks_free(parent):
    """As on a network file system that locks for each host alone."""
    kill(in_child(lambda: fill(parent)))
    (lock,) = parent.glob(".*.building")
    _, name, host, suffix = lock.name.split(".")
    assert host != "01234567"
    lock.rename(parent / f".{name}.01234567.{suffix}")
    before = set(parent.rglob("*"))
    BuildDirectory(str(parent), NAME).discard()
    assert set(parent.rglob("*")) == before


def test_on_a_host_that_has_no_name_nothing_is_marked_and_nothing_is_removed(parent, monkeypatch):
    kill(in_child(lambda: fill(parent)))
    before = set(parent.rglob("*"))
    monkeypatch.setattr(build_directory, "_BOOT_ID", str(parent / "absent"))
    built = BuildDirectory(str(parent), NAME)
    assert set(parent.rglob("*")) == {*before, parent / os.path.basename(built.path)}
    built.discard()
    assert set(parent.rglob("*")) == before


@pytest.mark.parametrize("stopped", [False, True])
def test_what_a_living_builder_fills_stays(parent, stopped):
    pid = in_child(lambda: fill(parent))
    try:
        if stopped:
            os.kill(pid, signal.SIGSTOP)
            os.waitpid(pid, os.WUNTRACED)
        before = set(parent.rglob("*"))
        BuildDirectory(str(parent), NAME).discard()
        assert set(parent.rglob("*")) == before
    finally:
        kill(pid)


def test_what_a_caller_was_given_stays_when_it_dies(parent):
    kill(in_child(lambda: fill(parent).keep()))
    before = set(parent.rglob("*"))
    BuildDirectory(str(parent), NAME).discard()
    assert set(parent.rglob("*")) == before


def test_other_files_stay(parent, tmp_path):
    kill(in_child(lambda: fill(parent)))
    (lock,) = parent.glob(".*.building")
    mine = ["kernel_0123", ".hidden", "note.building", f"{lock.name[1:-9]}-more", ".x.building"]
    for name in mine:
        (parent / name).mkdir()
    (tmp_path / "precious").write_bytes(b"precious")
    linked = f".{NAME}-{NAME}.{lock.name.split('.')[2]}.building"
    (parent / linked).symlink_to(tmp_path / "precious")
    (parent / f"{NAME}-{NAME}").symlink_to(tmp_path)
    BuildDirectory(str(parent), NAME).discard()
    left = {path.name for path in parent.iterdir()}
    assert left == {*mine, linked, f"{NAME}-{NAME}"}
    assert (tmp_path / "precious").read_bytes() == b"precious"


def test_a_forked_child_of_the_builder_keeps_nothing_alive(parent):
    """It inherits the descriptor; only the process that made the lock file holds it."""
    grandchild, told = os.pipe()

    def build_and_fork():
        fill(parent)
        if os.fork() == 0:
            # Told by the child itself: by now it has closed what it inherited.
            os.write(told, b"%d" % os.getpid())
            signal.pause()
            os._exit(0)

    builder = in_child(build_and_fork)
    survivor = int(os.read(grandchild, 20))
    try:
        kill(builder)
        BuildDirectory(str(parent), NAME).discard()
        assert not list(parent.iterdir())
    finally:
        os.kill(survivor, signal.SIGKILL)
        os.close(grandchild)
        os.close(told)


def test_a_child_does_not_give_up_the_directory_of_its_parent(parent):
    built = fill(parent)

    def keep():
        built.keep()

    kill(in_child(keep))
    assert list(parent.glob(".*.building"))
    built.discard()
    assert not list(parent.glob(".*.building"))


def test_two_who_sweep_at_once_do_not_meet(parent):
    kill(in_child(lambda: fill(parent)))
    (lock,) = parent.glob(".*.building")
    descriptor = os.open(lock, os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    before = set(parent.rglob("*"))
    BuildDirectory(str(parent), NAME).discard()
    assert set(parent.rglob("*")) == before
    os.close(descriptor)


def test_a_lock_file_that_its_owner_has_removed_gives_no_licence(parent, monkeypatch):
    """The owner hands the directory over between the sweeper's look and its lock."""
    built = fill(parent)
    flock = fcntl.flock

    def late(descriptor, operation):
        if operation & fcntl.LOCK_NB and built is not None and os.path.exists(lock):
            monkeypatch.undo()
            built.keep()
        flock(descriptor, operation)

    (lock,) = parent.glob(".*.building")
    monkeypatch.setattr(fcntl, "flock", late)
    other = BuildDirectory(str(parent), NAME)
    assert os.path.exists(f"{built.path}/kernels/aiv/half.cpp")
    other.discard()


def test_without_locks_there_is_no_lock_file_and_no_cleaning(parent, monkeypatch):
    kill(in_child(lambda: fill(parent)))
    before = set(parent.rglob("*"))

    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    built = BuildDirectory(str(parent), NAME)
    assert os.path.isdir(built.path)
    built.discard()
    assert set(parent.rglob("*")) == before


def test_a_request_cleans_up_after_a_killed_one(tmp_path):
    root, parent = tmp_path / "root", tmp_path / "build_output"

    def hang():
        def build(directory):
            payload_builder()(directory)
            os.write(told, b"x")
            signal.pause()

        ArtifactStore(root).get_or_build(sample_key(), READY, build, private_parent=parent)

    ready, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        hang()
        os._exit(1)
    assert os.read(ready, 1) == b"x"
    kill(pid)
    os.close(ready)
    os.close(told)
    assert len(list(parent.iterdir())) == 2
    store = ArtifactStore(root, lock_timeout=20)
    result = store.get_or_build(
        sample_key(), READY, payload_builder(), private_parent=parent, recheck=lambda: "changed"
    )
    assert isinstance(result, Private)
    assert list(parent.iterdir()) == [result.path]
    published = store.get_or_build(sample_key(), READY, payload_builder(), private_parent=parent)
    assert isinstance(published, Published)
    assert list(parent.iterdir()) == [result.path]


def test_a_tree_too_deep_to_remove_hides_no_error(tmp_path):
    def build(directory):
        here = os.open(directory, os.O_RDONLY)
        for _ in range(1500):
            os.mkdir("d", dir_fd=here)
            below = os.open("d", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
        os.close(here)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ArtifactStore(tmp_path / "root", lock_timeout=10).get_or_build(
            sample_key(), READY, build, private_parent=tmp_path / "p"
        )
    # What pytest's own clean-up could not remove either.
    subprocess.run(["rm", "-rf", tmp_path / "p"], check=True)
