"""The thread that uploads: bounded, done before the process ends, and no business of a child's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from pypto_store.remote.uploads import Uploads

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

LONG = 30.0  # seconds; nothing here takes them


@pytest.fixture
def uploads():
    made = []

    def make(**options):
        made.append(Uploads(patience=LONG, abandon=lambda: None, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()
        assert one.flush(LONG)


class Gate:
    """A job that waits, and says that it has begun."""

    def __init__(self):
        self.begun = threading.Event()
        self.opened = threading.Event()

    def __call__(self):
        self.begun.set()
        assert self.opened.wait(LONG)


def test_jobs_run_elsewhere_one_after_another(uploads):
    queue, done = uploads(), []
    for number in range(100):
        assert queue.submit(lambda number=number: done.append((number, threading.get_ident())))
    assert queue.flush(LONG)
    assert [number for number, _ in done] == list(range(100))
    assert threading.get_ident() not in {thread for _, thread in done}


def test_an_interrupt_while_the_thread_is_started_stops_nobody_after_it(uploads, monkeypatch):
    queue, done = uploads(), []

    def start(thread):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        with pytest.raises(KeyboardInterrupt):
            queue.submit(lambda: done.append(1))
    assert queue.submit(lambda: done.append(2))
    assert queue.flush(LONG)
    assert done == [1, 2]


def test_there_is_no_thread_while_there_is_nothing_to_do(uploads):
    before, queue, gate = threading.active_count(), uploads(), Gate()
    assert queue.flush(0)
    assert threading.active_count() == before
    for _ in range(3):
        assert queue.submit(gate)
    assert gate.begun.wait(LONG)
    assert threading.active_count() == before + 1
    assert not queue.flush(0)
    gate.opened.set()
    assert queue.flush(LONG)
    end = time.monotonic() + LONG
    while threading.active_count() > before and time.monotonic() < end:
        time.sleep(0.001)  # it has nothing more to do, but has to be gone as well
    assert threading.active_count() == before


def test_no_more_wait_than_are_allowed(uploads):
    queue, gate = uploads(waiting=3), Gate()
    assert queue.submit(gate)
    assert gate.begun.wait(LONG)
    assert [queue.submit(gate) for _ in range(5)] == [True] * 3 + [False] * 2
    gate.opened.set()
    assert queue.flush(LONG)
    assert queue.submit(gate)


def test_nothing_of_a_job_stays_when_it_is_done(uploads):
    queue = uploads()

    class Job:
        gone = threading.Event()

        def __call__(self):
            pass

        def __del__(self):
            Job.gone.set()

    gate = Gate()
    assert queue.submit(Job()) and queue.submit(gate)
    assert Job.gone.wait(LONG)
    gate.opened.set()


def test_closing_forgets_what_waits_and_says_how_many_that_were(uploads):
    queue, gate, done = uploads(), Gate(), []
    assert queue.submit(gate)
    assert gate.begun.wait(LONG)
    for number in range(5):
        assert queue.submit(lambda number=number: done.append(number))
    assert queue.close() == 5
    assert not queue.submit(gate)
    gate.opened.set()
    assert queue.flush(LONG) and not done
    assert queue.close() == 0


def test_without_a_thread_to_be_had_a_job_is_refused(uploads, monkeypatch):
    queue, done = uploads(), []

    def refuse(self):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        assert not queue.submit(lambda: done.append(1))
        assert queue.flush(0)
    assert queue.submit(lambda: done.append(2))
    assert queue.flush(LONG) and done == [2]


def test_a_job_that_breaks_its_word_stops_nobody_for_long(uploads, monkeypatch):
    told, done, queue = [], [], uploads()
    monkeypatch.setattr(threading, "excepthook", lambda error: told.append(error.exc_type))
    assert queue.submit(lambda: 1 / 0)
    assert queue.flush(LONG)
    assert queue.submit(lambda: done.append(1))
    assert queue.flush(LONG)
    assert (told, done) == ([ZeroDivisionError], [1])


def test_the_child_of_a_fork_begins_with_nothing_and_has_its_own_thread(uploads):
    queue, gate, done = uploads(), Gate(), []
    assert queue.submit(gate)
    assert gate.begun.wait(LONG)
    assert queue.submit(lambda: done.append("waits"))
    with queue._changed:  # as when another thread is at it
        pid = os.fork()
        if pid == 0:
            empty = queue.flush(0)
            taken = queue.submit(lambda: done.append("child"))
            os._exit(0 if empty and taken and queue.flush(LONG) and done == ["child"] else 1)
    ended = _status(pid)
    gate.opened.set()
    assert queue.flush(LONG)
    assert (ended, done) == (0, ["waits"])


def _status(pid):
    end = time.monotonic() + LONG
    while time.monotonic() < end:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "it hangs"


# What follows is about the end of processes, so each test has one of its own.
HEAD = """
import multiprocessing, os, sys, threading, time
from pypto_store.remote.uploads import Uploads

def say(text):
    os.write(1, f"{text}\\n".encode())

def uploads(patience=30.0):
    return Uploads(patience=patience, abandon=lambda: say("abandoned"))

def slowly(text):
    time.sleep(0.05)
    say(text)
"""


def run(script, *, expected=0, interrupt=None):
    """What a program of its own writes; nothing may be said about errors, and it has to end."""
    program = subprocess.Popen(
        [sys.executable, "-c", HEAD + textwrap.dedent(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        text=True,
    )
    try:
        if interrupt is not None:
            assert program.stdout.readline() == "waiting\n"
            # Until it does: a signal right before a wait begins is noticed when that ends.
            time.sleep(0.2)
            program.send_signal(interrupt)
        out, err = program.communicate(timeout=LONG)
    finally:
        program.kill()
        program.communicate()
    assert err == ""
    assert program.returncode == expected
    return out.split()


def test_the_end_of_a_process_waits_for_what_was_submitted():
    assert run("""
        queue = uploads()
        for number in range(3):
            assert queue.submit(lambda number=number: slowly(number))
        """) == ["0", "1", "2"]


def test_also_for_what_threads_submit_after_the_main_one_has_ended():
    assert run("""
        queue = uploads()
        def late():
            threading.main_thread().join()
            time.sleep(0.1)
            say(queue.submit(lambda: slowly("late")))
        threading.Thread(target=late).start()
        queue.submit(lambda: slowly("early"))
        """) in (["early", "True", "late"], ["early", "False"])  # no new threads in 3.12


def test_also_when_it_ends_by_an_error_or_by_sys_exit():
    script = """
        queue = uploads()
        queue.submit(lambda: slowly("done"))
        sys.exit(3)
        """
    assert run(script, expected=3) == ["done"]


def test_the_end_of_a_process_waits_no_longer_than_it_has_patience():
    begun = time.monotonic()
    assert run("""
        queue = uploads(patience=0.2)
        queue.submit(lambda: time.sleep(60))
        queue.submit(lambda: say("never"))
        """) == ["abandoned"]
    assert time.monotonic() - begun < 20


def test_the_patience_of_several_is_not_added_up():
    begun = time.monotonic()
    run("""
        queues = [uploads(patience=0.3) for _ in range(6)]
        for queue in queues:
            queue._abandon = queue._begin_empty  # ends at once
            queue.submit(lambda: time.sleep(60))
        begun = time.monotonic()
        import pypto_store.remote.uploads as module
        module._finish_all()
        assert time.monotonic() - begun < 1.5
        """)
    assert time.monotonic() - begun < 20


def test_an_interrupt_ends_the_waiting_without_a_traceback():
    script = """
        queue = uploads()
        queue.submit(lambda: time.sleep(60))
        import atexit
        real = queue.flush
        def flush(timeout):
            say("waiting")
            return real(timeout)
        queue.flush = flush
        """
    begun = time.monotonic()
    assert run(script, interrupt=signal.SIGINT) == ["abandoned", "waiting"]
    assert time.monotonic() - begun < 20


def test_exit_at_once_and_a_kill_are_just_that():
    for end, expected in (("os._exit(0)", 0), ("os.kill(os.getpid(), 9)", -9)):
        assert (
            run(
                f"""
            queue = uploads()
            queue.submit(lambda: (time.sleep(20), say("never")))
            {end}
            """,
                expected=expected,
            )
            == []
        )


def test_processes_of_multiprocessing_finish_theirs_and_only_theirs():
    assert run("""
        queue, gate = uploads(), threading.Event()
        queue.submit(lambda: (gate.wait(), say("parent")))
        work = lambda: queue.submit(lambda: slowly("child"))
        child = multiprocessing.get_context("fork").Process(target=work)
        child.start()
        child.join()
        assert child.exitcode == 0
        gate.set()
        """) == ["child", "parent"]
