"""A line on a terminal that says how far a command of a few slow steps has come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

Step = Callable[[int, str], None]


@contextmanager
def steps_on(err: TextIO, total: int) -> Iterator[Step]:
    """A function to call before each step, with how many are done and what the next one is.

    It draws a bar if `err` is a terminal, and nothing elsewhere or where nothing is to be done.
    """
    if not err.isatty() or not total:
        yield lambda done, name: None
        return

    def draw(done: int, name: str) -> None:
        width = 24
        filled = width * done // total
        bar = "#" * filled + "-" * (width - filled)
        # The cursor stays in front, so that a line of the log replaces the bar.
        err.write(f"\r\x1b[K[{bar}] {done}/{total} {name}\r")
        err.flush()

    try:
        yield draw
    finally:
        err.write("\r\x1b[K")
        err.flush()
