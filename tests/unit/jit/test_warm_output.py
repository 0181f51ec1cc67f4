from __future__ import annotations

import io
import json

import pytest
from pypto.jit.statistics import CacheStats
from pypto.jit.steps import steps_on
from pypto.jit.warm import Result, _report, why_private
from pypto.jit.warm_push import PushResult
from pypto_store.tools.fates import Carried, Stopped
from pypto_store.tools.pushing import Push, PushFate

RESULTS = [
    Result("one", True, "k" * 64, 12.5, None),
    Result("two", False, None, 3.0, None, "no assembler"),
    Result("three", False, None, 1.0, "CompileError: no"),
]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_pipe_gets_json() -> None:
    out = io.StringIO()
    _report(RESULTS, out)
    document = json.loads(out.getvalue())
    assert document["schema_version"] == 1
    assert [row["status"] for row in document["requests"]] == ["ok", "ok", "failed"]
    assert [row["shared"] for row in document["requests"]] == [True, False, False]
    assert "requests" in document["statistics"]


def test_a_terminal_gets_lines() -> None:
    out = Terminal()
    _report(RESULTS, out)
    assert out.getvalue().splitlines() == [
        "shared        12.5 ms  kkkkkkkkkkkk  one",
        "private        3.0 ms                two",
        "  no assembler",
        "failed         1.0 ms                three",
    ]


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (CacheStats(disabled_requests=1, forced_rebuilds=1), "persistence is off"),
        (CacheStats(forced_rebuilds=1), "its run_config asks for the build itself"),
        (CacheStats(bypasses=1, last_bypass_reason="no ptoas"), "no ptoas"),
        (CacheStats(storage_errors=1), "the root lacks it, and is read-only"),
    ],
)
def test_a_private_result_says_why(after: CacheStats, told: str) -> None:
    assert why_private(CacheStats(), after).startswith(told)


def test_an_earlier_bypass_is_no_reason_of_this_request() -> None:
    before = CacheStats(bypasses=1, last_bypass_reason="no ptoas")
    after = CacheStats(bypasses=1, last_bypass_reason="no ptoas", disabled_requests=1)
    assert why_private(before, after).startswith("persistence is off")


def test_progress_is_drawn_on_terminals_only_and_cleared() -> None:
    err = Terminal()
    with steps_on(err, 4) as step:
        step(1, "one")
        assert err.getvalue().endswith("1/4 one\r")
    assert err.getvalue().endswith("\r\x1b[K")
    pipe = io.StringIO()
    with steps_on(pipe, 4) as step:
        step(1, "one")
    assert pipe.getvalue() == ""


def test_what_was_pushed_is_a_line_or_a_field() -> None:
    carried = [
        Carried("k" * 64, "ready", None, None, 7, "m:one", PushFate.SENT),
        Carried("k" * 64, "generated", None, None, 7, "m:one", PushFate.DAMAGED, "it has changed"),
    ]
    done = Push(carried, 9, Stopped("it rained", 3), None)
    pushed = PushResult("file:///there", done, carried)
    out = Terminal()
    _report(RESULTS[:1], out, pushed)
    assert out.getvalue().splitlines()[1:] == ["pushed to file:///there: 1 sent, 1 damaged"]
    assert pushed.complaints == ["m:one (generated): it has changed", "it rained"]
    pipe = io.StringIO()
    _report(RESULTS[:1], pipe, pushed)
    document = json.loads(pipe.getvalue())["push"]
    assert document["counts"] == {"sent": 1, "present": 0, "damaged": 1, "failed": 0}
    assert (document["stopped"], document["left"]) == ("it rained", 3)
    assert PushResult("x", Push([], 0, None, None), []).summary == "nothing"
