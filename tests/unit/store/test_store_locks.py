from __future__ import annotations

import os
import signal
import threading
import time
import warnings

import pytest
from pypto_store.locks import LockUnavailable, WriterLease, _Waiter, acquire, try_acquire


def in_child(action):
    """Run `action` in a forked child without exec; its truth as seen by the parent."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads or not: that is the point
        pid = os.fork()
    if pid == 0:
        status = 2
        try:
            status = 0 if action() else 1
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def is_free(path, shared=False):
    # Not by a waiter that gives up at once: it would get the lock later, for a moment, and whoever
    # looks in that moment finds it taken.
    lock = try_acquire(path, shared=shared)
    if lock is None:
        return False
    lock.release()
    return True


def await_waiters():
    """Until the threads that waited for a lock have ended, also those that were given up."""
    for thread in threading.enumerate():
        if thread.name == "pypto-store-lock":
            thread.join(30)
            assert not thread.is_alive()


def descriptors_of(path):
    """How often this process has the file open; threads of other tests may still close theirs."""
    links = [f"/proc/self/fd/{descriptor}" for descriptor in os.listdir("/proc/self/fd")]
    return [os.readlink(link) for link in links if os.path.lexists(link)].count(path)


def test_exclusive_lock_excludes_threads_of_the_same_process(tmp_path):
    path = str(tmp_path / "sub/l.lock")
    with acquire(path, shared=False, timeout=0):
        assert not is_free(path)
    assert is_free(path)
    assert os.path.exists(path)
    assert os.stat(path).st_mode & 0o777 == 0o600


def test_shared_locks_coexist_and_exclude_the_exclusive_one(tmp_path):
    path = str(tmp_path / "l.lock")
    with acquire(path, shared=True, timeout=0):
        assert is_free(path, shared=True)
        assert not is_free(path)


def test_waiting_ends_when_the_holder_lets_go(tmp_path):
    path = str(tmp_path / "l.lock")
    held = acquire(path, shared=False, timeout=0)
    taken = []
    waiter = threading.Thread(target=lambda: taken.append(acquire(path, shared=False, timeout=30)))
    waiter.start()
    held.release()
    waiter.join(30)
    assert taken[0].owned()
    taken[0].release()


def test_timeout_names_the_file_and_later_lets_the_lock_go(tmp_path):
    path = str(tmp_path / "l.lock")
    held = acquire(path, shared=False, timeout=0)
    with pytest.raises(LockUnavailable, match=r"l\.lock.*timed out"):
        acquire(path, shared=False, timeout=0.01)
    held.release()
    # The waiter that was given up gets the lock now and must not keep it.
    await_waiters()
    assert is_free(path)


def test_release_is_repeatable(tmp_path):
    lock = acquire(str(tmp_path / "l"), shared=False, timeout=0)
    lock.release()
    lock.release()
    assert not lock.owned()


def test_child_neither_owns_nor_releases_the_lock_of_its_parent(tmp_path):
    path = str(tmp_path / "l")
    lock = acquire(path, shared=False, timeout=0)
    assert in_child(lambda: not lock.owned())
    assert in_child(lambda: lock.release() is None)
    assert not is_free(path)
    lock.release()


def test_parent_releases_although_a_forked_child_lives(tmp_path):
    path = str(tmp_path / "l")
    lock = acquire(path, shared=False, timeout=0)
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        os.close(write)
        os.read(read, 1)  # until the parent is done
        os._exit(0)
    lock.release()
    assert is_free(path)
    os.close(write)
    os.waitpid(pid, 0)
    os.close(read)


def test_release_does_not_depend_on_the_last_copy_of_the_descriptor(tmp_path):
    """A child between fork and exec has a copy of every descriptor, whoever forked it."""
    path = str(tmp_path / "l")
    lock = acquire(path, shared=False, timeout=0)
    links = {int(fd): f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")}
    (descriptor,) = (
        fd for fd, link in links.items() if os.path.lexists(link) and os.readlink(link) == path
    )
    copy = os.dup(descriptor)
    lock.release()
    assert is_free(path)
    os.close(copy)


def test_lock_of_a_removed_file_is_not_accepted(tmp_path):
    path = str(tmp_path / "l")
    old = acquire(path, shared=False, timeout=0)
    os.unlink(path)
    assert not old.named()
    new = acquire(path, shared=False, timeout=0)
    assert new.named()
    new.release()
    old.release()


def test_lock_file_removed_while_one_waits_for_it_is_not_accepted(tmp_path):
    path = str(tmp_path / "l")
    held = acquire(path, shared=False, timeout=0)
    taken = []
    waiter = threading.Thread(target=lambda: taken.append(acquire(path, shared=False, timeout=30)))
    waiter.start()
    deadline = time.monotonic() + 30
    while threading.active_count() < 3 and time.monotonic() < deadline:
        time.sleep(0.001)
    os.unlink(path)
    held.release()
    waiter.join(30)
    assert taken[0].named()
    assert not is_free(path)
    taken[0].release()


def test_unusable_lock_file_is_unavailable(tmp_path):
    (tmp_path / "directory").mkdir()
    with pytest.raises(LockUnavailable, match="directory"):
        acquire(str(tmp_path / "directory"), shared=False, timeout=0)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LockUnavailable):
        acquire(str(tmp_path / "link"), shared=False, timeout=0)
    assert not (tmp_path / "elsewhere").exists()


def test_interrupted_waiter_gives_the_lock_up(tmp_path, monkeypatch):
    path = str(tmp_path / "l")
    held = acquire(path, shared=False, timeout=0)

    def interrupt(*_):
        raise KeyboardInterrupt

    def wait_a_moment():
        # From here on it waits, however long a busy machine took to come here.
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        yield 30

    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        with monkeypatch.context() as patch:
            patch.setattr("pypto_store.locks._notices", wait_a_moment)
            with pytest.raises(KeyboardInterrupt):
                acquire(path, shared=False, timeout=30)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    held.release()
    await_waiters()
    assert is_free(path)


def test_interrupted_as_it_gets_the_lock_a_waiter_gives_it_up(tmp_path, monkeypatch):
    # Ctrl-C reaches a whole group of processes: the holder dies of it and lets go at the very
    # moment at which the waiter is interrupted too.
    path = str(tmp_path / "l")
    held = acquire(path, shared=False, timeout=0)
    settle = _Waiter.settle

    def interrupt(*_):
        held.release()
        raise KeyboardInterrupt

    def settle_late(waiter):
        assert waiter.finished.wait(30)
        return settle(waiter)

    with monkeypatch.context() as patch:
        patch.setattr("pypto_store.locks._notices", interrupt)
        patch.setattr(_Waiter, "settle", settle_late)
        with pytest.raises(KeyboardInterrupt):
            acquire(path, shared=False, timeout=30)
    assert is_free(path)
    assert descriptors_of(path) == 0


def test_no_thread_for_waiting_is_unavailable(tmp_path, monkeypatch):
    path = str(tmp_path / "l")
    held = acquire(path, shared=False, timeout=0)

    def refuse(_):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(LockUnavailable, match="thread"):
            acquire(path, shared=False, timeout=30)
    held.release()
    assert is_free(path)


def test_lease_is_taken_once_and_shared(tmp_path):
    path = str(tmp_path / "store.lock")
    lease = WriterLease()
    lease.hold(path, 0)
    lease.hold(path, 0)
    assert descriptors_of(path) == 1
    assert is_free(path, shared=True)
    assert not is_free(path)
    lease.drop()
    assert is_free(path)


def test_lease_of_a_child_is_its_own(tmp_path):
    path = str(tmp_path / "store.lock")
    lease = WriterLease()
    lease.hold(path, 0)

    def hold_and_check():
        lease.hold(path, 0)
        return not is_free(path)

    assert in_child(hold_and_check)
    assert not is_free(path)
    lease.drop()


def test_lease_follows_a_root_that_was_made_again(tmp_path):
    path = str(tmp_path / "store.lock")
    lease = WriterLease()
    lease.hold(path, 0)
    os.rename(path, f"{path}.old")
    lease.hold(path, 0)
    assert not is_free(path)
    lease.drop()


def test_fork_while_another_thread_waits(tmp_path):
    path = str(tmp_path / "l")
    held = acquire(path, shared=False, timeout=0)
    waiter = threading.Thread(target=lambda: acquire(path, shared=False, timeout=30).release())
    waiter.start()
    deadline = time.monotonic() + 30
    while threading.active_count() < 3 and time.monotonic() < deadline:
        time.sleep(0.001)

    def child():
        return not is_free(path)

    assert in_child(child)
    held.release()
    waiter.join(30)
    assert is_free(path)
