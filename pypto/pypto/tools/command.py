"""What the commands of this package share: how they end, where they write, what they say."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from pypto_store.tools.answer import CommandError, Progress, Status
from pypto_store.tools.output_file import STREAM, written
from pypto_store.tools.terminal import SilentProgress, TerminalProgress, console_on

if TYPE_CHECKING:
    from rich.console import Console

# The widest that a table gets: it can be pasted where others read it.
_COLUMNS = 100


@dataclass(frozen=True, slots=True)
class Streams:
    """Where a command says things, and how it shows that it is at work."""

    out: TextIO
    err: TextIO
    progress: Progress

    def paint(self, show: Callable[[Console], None]) -> None:
        """Show something on standard output, at most 100 columns wide."""
        console = console_on(self.out)
        wide = console.width if self.out.isatty() else _COLUMNS
        console.width = min(wide, _COLUMNS)
        show(console)


Run = Callable[[argparse.Namespace, Streams], int]


def main(parser: argparse.ArgumentParser, run: Run, arguments: Sequence[str] | None) -> int:
    """Parse `arguments` (the process's own without any) and run; gives the exit status.

    A CommandError or an OSError becomes one line on standard error.
    """
    options = parser.parse_args(arguments)
    out, err = sys.stdout, sys.stderr
    progress: Progress = SilentProgress()
    if err.isatty():
        progress = TerminalProgress(err, time.monotonic)
    try:
        status = run(options, Streams(out, err, progress))
        out.flush()
    except CommandError as error:
        err.write(f"error: {error}\n")
        return error.status
    except KeyboardInterrupt:
        err.write("error: interrupted\n")
        return Status.INTERRUPTED
    except BrokenPipeError:
        # The interpreter flushes once more at its end and would complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
        return Status.FOUND
    except OSError as error:
        err.write(f"error: {error.filename or 'standard output'}: {error.strerror or error}\n")
        return Status.UNUSABLE
    return status


def directory_of(given: Path) -> Path:
    """A directory that a command was given; CommandError where there is none."""
    if not given.exists():
        raise CommandError(f"{given}: no such directory; name one that ir.compile() wrote")
    if not given.is_dir():
        raise CommandError(f"{given} is no directory; name one that ir.compile() wrote")
    return given


def write_text(text: str, place: str | Path) -> str:
    """Write a file, all of it or nothing, or standard output for "-"; gives the place."""
    if str(place) == STREAM:
        target = STREAM
    else:
        path = Path(place).absolute()
        if path.is_dir():
            raise CommandError(f"{path} is a directory; name a file with -o")
        path.parent.mkdir(parents=True, exist_ok=True)
        target = str(path)
    with written(target) as stream:
        stream.write(text.encode("utf-8"))
    return target
