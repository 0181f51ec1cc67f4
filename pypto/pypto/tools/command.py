"""What the commands of this package share: how they end, where they write, what they say."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TextIO

from pypto_store.tools.answer import CommandError, Progress, Status
from pypto_store.tools.output_file import STREAM, written
from pypto_store.tools.terminal import SilentProgress, TerminalProgress, console_on, plain

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


class Answer(Protocol):
    """What a command found: a file that it makes, and what it says of it."""

    @property
    def place(self) -> Path:
        """Where the file goes if nothing else is asked for."""
        ...

    def text(self) -> str:
        """The file."""
        ...

    def document(self, written: str | None) -> dict[str, object]:
        """The answer as JSON; ``written`` is where the file is, if it was written."""
        ...

    def paint(self, console: Console) -> None:
        """The answer on a terminal."""
        ...


@dataclass(frozen=True, slots=True)
class Command:
    """A command that makes a file of what a build left and says what is in it.

    ``answer`` reads what the path that was given names; CommandError where it cannot. ``path``,
    its help, and ``made`` (what is made, by which name, where) and ``told`` (what is printed) are
    words of the command line.
    """

    program: str
    description: str
    epilog: str
    path: str
    path_help: str
    made: str
    default: str
    told: str
    answer: Callable[[Path, Progress], Answer]

    def parser(self) -> argparse.ArgumentParser:
        """The command line."""
        made = argparse.ArgumentParser(
            prog=self.program,
            description=self.description,
            epilog=f"{self.epilog} Exit status: 0 done, 2 a directory or a file that cannot be "
            "used.",
        )
        made.add_argument("path", metavar=self.path, type=Path, help=self.path_help)
        made.add_argument(
            "-o", "--output", metavar="FILE",
            help=f"the {self.made} to write; - is standard output (default: {self.default})",
        )  # fmt: skip
        made.add_argument(
            "--json", action="store_true",
            help=f"print the {self.told} as JSON, and write a {self.made} only if -o names one",
        )  # fmt: skip
        return made

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Run with `arguments` (the process's own without any); gives the exit status.

        A CommandError or an OSError becomes one line on standard error.
        """
        return _guarded(self._run, self.parser().parse_args(arguments))

    def _run(self, options: argparse.Namespace, streams: Streams) -> int:
        answer = self.answer(options.path, streams.progress)
        place = options.output or (None if options.json else answer.place)
        written = None if place is None else write_text(answer.text(), place)
        if written == STREAM:
            return Status.OK
        if options.json:
            json.dump(answer.document(written), streams.out, indent=2)
            streams.out.write("\n")
            return Status.OK

        def show(console: Console) -> None:
            answer.paint(console)
            if written is not None:
                console.print(plain(f"wrote {written}"), soft_wrap=True)

        streams.paint(show)
        return Status.OK


def _guarded(run: Callable[[argparse.Namespace, Streams], int], options: argparse.Namespace) -> int:
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
