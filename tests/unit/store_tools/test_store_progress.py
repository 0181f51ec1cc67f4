"""Progress bars: shown to whoever waits for long, gone afterwards, and not there for others."""

from __future__ import annotations

import io
import re
import sys

import pytest
from pypto_store.tools.terminal import SilentProgress, TerminalProgress, plain, size_text


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    return Terminal()


def test_long_work_has_a_bar_that_goes_when_it_ends(terminal):
    clock = Clock()
    with TerminalProgress(terminal, clock).of("reading", 200) as advance:
        advance(50)
        assert terminal.getvalue() == ""
        clock.now = 1.0
        advance(50)
        shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue())
        assert "reading" in shown and "50%" in shown
        assert max(map(len, re.split(r"[\r\n]", shown))) <= 80
        advance(50)
    assert terminal.getvalue().endswith(("\x1b[2K", "\x1b[1A\x1b[2K", "\x1b[?25h"))
    assert "\x1b[2K" in terminal.getvalue()  # the line is taken away


@pytest.mark.parametrize(("total", "told"), [(4 << 20, "1.0/4.0 MiB"), (0, "1.0/? MiB")])
def test_bytes_are_told_as_sizes(terminal, total, told):
    clock = Clock()
    with TerminalProgress(terminal, clock).of_bytes("packing", total) as advance:
        clock.now = 1.0
        advance(1 << 20)
        assert told in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue())
    with SilentProgress().of_bytes("packing", total) as advance:
        advance(1)


def test_short_work_shows_nothing_and_imports_nothing(terminal, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with TerminalProgress(terminal, Clock()).of("reading", 10) as advance:
        advance(10)
    with SilentProgress().of("reading", 10) as advance:
        advance(10)
    assert terminal.getvalue() == ""


def test_a_bar_goes_when_work_fails(terminal):
    clock = Clock()

    def work():
        with TerminalProgress(terminal, clock).of("reading", 10) as advance:
            clock.now = 1.0
            advance(1)
            raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        work()
    assert "\x1b[?25h" in terminal.getvalue()  # the cursor is back


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (5 << 30, "5.0 GiB"),
     (3 << 50, "3072.0 TiB")],
)  # fmt: skip
def test_sizes_read_well(size, text):
    assert size_text(size) == text


def test_what_comes_from_disk_moves_no_cursor():
    text = plain("a\x1b[2J\x07\x9b\u202eb\udcff\nc\t[bold]")
    assert text.plain == "a\\x1b[2J\\x07\\x9b\\u202eb\\udcff\nc\t[bold]"
