"""Tells what is going on: a living line on a terminal, one line a step on a pipe."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

_TICK_SECONDS = 0.25


class Progress:
    """Writes steps to ``stream``; ``clock`` is monotonic seconds."""

    def __init__(self, stream: TextIO, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._terminal = stream.isatty()

    def note(self, text: str) -> None:
        """Write one line."""
        print(f"bazelw: {text}", file=self._stream, flush=True)

    @contextmanager
    def step(self, text: str, amount: Callable[[], str] | None = None) -> Iterator[None]:
        """Show ``text`` while the body runs; ``amount`` tells how far it is, on a terminal."""
        if not self._terminal:
            self.note(text)
            yield
            return
        started = self._clock()
        done = threading.Event()

        def show(end: str) -> None:
            detail = f", {amount()}" if amount else ""
            line = f"bazelw: {text} ({self._clock() - started:.0f} s{detail})"
            self._stream.write(f"\r\x1b[K{line}{end}")
            self._stream.flush()

        def tick() -> None:
            while not done.wait(_TICK_SECONDS):
                show("")

        ticker = threading.Thread(target=tick, daemon=True)
        ticker.start()
        try:
            yield
        finally:
            done.set()
            ticker.join()
            show("\n")
