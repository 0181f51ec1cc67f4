"""Tables and progress bars on a terminal. The only module that imports rich, and only if asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, TextIO

from pypto_store.tools.answer import Advance, CommandError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

# Seconds of work that nobody needs to be told about.
_PATIENCE = 0.7
# Controls, and the marks that turn the direction of writing.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def console_on(stream: TextIO) -> Console:
    """A console that writes to `stream`; CommandError where rich is not installed."""
    try:
        from rich.console import Console
    except ImportError as error:
        raise CommandError(
            f"tables need the package rich ({error}); install it, or ask for --json"
        ) from None
    # No guessing at numbers and paths: what is coloured is said in markup.
    return Console(file=stream, highlight=False, soft_wrap=False)


def table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """An empty table of the one look that all commands have; `right` columns hold numbers."""
    from rich import box
    from rich.table import Table

    # Narrow gaps: a digest beside the longest name of a component takes 80 columns.
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for name in columns:
        made.add_column(
            name,
            justify="right" if name in right else "left",
            no_wrap=name in right,
            overflow="fold",
        )
    return made


def plain(text: str, style: str = "", indent: int = 0) -> RenderableType:
    """Text that is shown as it is: what comes from disk may look like markup, or like a command.

    Lines that are folded keep the indentation. Characters that would move the cursor, or that no
    encoding has, are shown by their escapes.
    """
    from rich.padding import Padding
    from rich.text import Text

    shown = text.encode("utf-8", "backslashreplace").decode()
    made = Text(_CONTROLS.sub(_escaped, shown), style=style, overflow="fold")
    return Padding(made, (0, 0, 0, indent), expand=False) if indent else made


def _escaped(match: re.Match[str]) -> str:
    return ascii(match[0])[1:-1]


def size_text(size: int) -> str:
    """Bytes as a person reads them."""
    value, unit = float(size), _UNITS[0]
    for unit in _UNITS:
        if value < 1024 or unit == _UNITS[-1]:
            break
        value /= 1024
    return f"{size} B" if unit == "B" else f"{value:.1f} {unit}"


class SilentProgress:
    """For output that nobody watches."""

    @contextmanager
    def of(self, what: str, total: int) -> Iterator[Advance]:
        """Tell nobody."""
        del what, total
        yield lambda _: None

    of_bytes = of


class TerminalProgress:
    """A bar on a terminal for whatever takes longer than a moment; gone when it is done."""

    def __init__(self, stream: TextIO, clock: Callable[[], float]) -> None:
        self._stream = stream
        self._clock = clock

    def of(self, what: str, total: int) -> AbstractContextManager[Advance]:
        """Show how much of `total` is done, once that has been going on for a moment."""
        return self._told(_Bar(self._stream, what, total, sizes=False))

    def of_bytes(self, what: str, total: int) -> AbstractContextManager[Advance]:
        """The same with sizes; without a total, the bar only moves."""
        return self._told(_Bar(self._stream, what, total or None, sizes=True))

    @contextmanager
    def _told(self, bar: _Bar) -> Iterator[Advance]:
        begin = self._clock()

        def advance(amount: int) -> None:
            bar.done += amount
            if bar.shown or self._clock() - begin > _PATIENCE:
                bar.show()

        try:
            yield advance
        finally:
            bar.remove()


class _Bar:
    """One bar; rich is imported when it is first shown."""

    def __init__(self, stream: TextIO, what: str, total: int | None, *, sizes: bool) -> None:
        self.done = 0
        self.shown = False
        self._stream, self._what, self._total, self._sizes = stream, what, total, sizes

    def show(self) -> None:
        """Draw it as far as it is."""
        if not self.shown:
            from rich.progress import (
                BarColumn,
                DownloadColumn,
                Progress,
                TaskProgressColumn,
                TextColumn,
                TimeRemainingColumn,
            )

            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                DownloadColumn(binary_units=True) if self._sizes else TaskProgressColumn(),
                TimeRemainingColumn(),
                console=console_on(self._stream),
                transient=True,
            )
            self._task = self._progress.add_task(self._what, total=self._total, completed=self.done)
            self._progress.start()
            self.shown = True
        self._progress.update(self._task, completed=self.done)

    def remove(self) -> None:
        """Take it away, if it is there."""
        if self.shown:
            self._progress.stop()
