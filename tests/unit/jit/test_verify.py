"""How entries are built again: side by side within bounds, by whatever compiler, and told."""

from __future__ import annotations

import io
import threading

import pytest
from pypto.jit import verify
from pypto.jit.verify import Result, Task
from pypto.jit.verify_difference import FileDifference
from pypto.jit.verify_rebuild import Outcome, Verdict
from pypto_store import State
from pypto_store.tools.terminal import SilentProgress
from rich.console import Console

EQUAL = Verdict(Outcome.EQUAL)


def task(judge, name="kernel"):
    return Task("0" * 64, name, State.READY, "/root", "x86-64", judge)


def test_never_more_compilers_run_than_allowed():
    running, most, seen = set(), [], []
    lock = threading.Lock()
    together = threading.Barrier(3)

    def judge(number):
        def work(workers, _):
            with lock:
                running.add(number)
                most.append(sum(workers for _ in running))
                seen.append(workers)
            together.wait(timeout=60)  # all that may run at once do
            with lock:
                running.discard(number)
            return EQUAL

        return work

    results = verify._carried_out([task(judge(n)) for n in range(6)], 3, SilentProgress())
    assert [result.verdict for result in results] == [EQUAL] * 6
    assert max(most) == 3
    assert set(seen) == {1}
    (alone,) = verify._carried_out(
        [task(lambda workers, _: Verdict(Outcome.EQUAL, str(workers)))], 5, SilentProgress()
    )
    assert alone.verdict.reason == "5"


def test_an_interrupt_cancels_whatever_is_being_built():
    begun = threading.Event()
    cancelled_in_time = []

    def interrupted(*_):
        begun.wait(timeout=60)
        raise KeyboardInterrupt

    def waiting(_, cancelled):
        begun.set()
        cancelled_in_time.append(cancelled.wait(timeout=60))
        return EQUAL

    with pytest.raises(KeyboardInterrupt):
        verify._carried_out([task(waiting), task(interrupted)], 2, SilentProgress())
    assert cancelled_in_time == [True]


def test_a_report_for_people_fits_a_narrow_terminal():
    different = Verdict(
        Outcome.DIFFERENT,
        None,
        (
            FileDifference(
                "prebuilt/kernel_0.bin",
                "a" * 64,
                "b" * 64,
                "first section .text from byte 12 of 4096; then .rodata, .eh_frame, .comment, "
                ".note.gnu.build-id; .comment (GCC: (Debian 12.2.0-14) 12.2.0 -> GCC: 13.1.0)",
            ),
            FileDifference("prebuilt/kernel_1.bin", "a" * 64, None, "is kept, and not made"),
        ),
    )
    unlike = Verdict(Outcome.NOT_COMPARABLE, "it was made by other tools (as.path: /a -> /b)")
    results = [
        Result(task(None, "package.of.kernels:attention_with_a_long_name"), different, 1234.5),
        Result(task(None), EQUAL, 20.0),
        Result(Task(None, "decode", State.GENERATED, None, None, None), unlike, 0.1),
    ]
    out = io.StringIO()
    verify._paint(Console(file=out, width=100, highlight=False), results)
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= 100
    assert "a" * 64 in text
    assert "b" * 64 in text
    assert "first section .text" in text
    assert "decode generated not comparable: it was made by other tools" in text
    assert text.endswith("1 equal, 1 different, 1 not comparable\n")


def test_a_report_of_nothing_is_one_line():
    out = io.StringIO()
    verify._paint(Console(file=out, width=100), [])
    assert out.getvalue() == "0 equal, 0 different, 0 not comparable\n"
