from __future__ import annotations

import io
import json

from pypto.jit.warm import Result, _progress, _report

RESULTS = [
    Result("one", True, "k" * 64, 12.5, None),
    Result("two", False, None, 3.0, None),
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
    assert [line.split()[0] for line in out.getvalue().splitlines()] == [
        "shared",
        "private",
        "failed",
    ]


def test_progress_is_drawn_on_terminals_only_and_cleared() -> None:
    err = Terminal()
    with _progress(err, 4) as step:
        step(1, "one")
        assert "1/4 one" in err.getvalue()
    assert err.getvalue().endswith("\r\x1b[K")
    pipe = io.StringIO()
    with _progress(pipe, 4) as step:
        step(1, "one")
    assert pipe.getvalue() == ""
