"""The dumped passes of a compilation: reading ``passes_dump`` and the profile beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from pypto.compiler.pass_profile import FILE_NAME, PassProfile
from pypto.tools.command import directory_of
from pypto_store.tools.answer import CommandError, Progress
from pypto_toolchains.json_fields import FieldError

DIRECTORY = "passes_dump"

_FILE = re.compile(r"(\d+)_(?:after_)?(.+)\.py")
_DEFINITION = re.compile(r"(\s*)def (\w+)\(")
_PLACED = re.compile(r"(.*\S)  # ([^#\"]+:\d+)")


@dataclass(frozen=True, slots=True)
class Section:
    """The lines of one function, from `first` up to and without `end`, counted from 0."""

    name: str
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class DumpedPass:
    """The program as one pass left it; the first is what the parser made.

    `places` has the line of the user's source that each line is from, or "" where none is told.
    `seconds` is what the pass took, or None where that was not measured.
    """

    number: int
    name: str
    file: str
    lines: tuple[str, ...]
    places: tuple[str, ...]
    sections: tuple[Section, ...]
    seconds: float | None


def read(directory: Path, progress: Progress) -> tuple[Path, tuple[DumpedPass, ...]]:
    """The build directory that `directory` is, or is the passes_dump of, and its passes in order.

    CommandError where there are none or a file cannot be read.
    """
    directory_of(directory)
    given = directory.absolute()
    dump = given / DIRECTORY if (given / DIRECTORY).is_dir() else given
    files = sorted(
        (int(match[1]), match[2], path)
        for path in dump.iterdir()
        if (match := _FILE.fullmatch(path.name))
    )
    if not files:
        raise CommandError(
            f"{directory}: no dumped passes; compile with dump_passes=True and name the build "
            "directory"
        )
    profile = _profile(dump.parent / FILE_NAME)
    passes = []
    with progress.of("reading passes", len(files)) as advance:
        for number, name, path in files:
            lines, places = _lines(path)
            took = profile.seconds(number, name)
            passes.append(DumpedPass(number, name, path.name, lines, places, sections(lines), took))
            advance(1)
    return dump.parent, tuple(passes)


def sections(lines: Sequence[str]) -> tuple[Section, ...]:
    """The functions of a program's text, each with the comments and decorators right above it."""
    starts: list[tuple[int, str]] = []
    for at, line in enumerate(lines):
        if match := _DEFINITION.match(line):
            first = at
            while first > 0 and lines[first - 1].strip().startswith(("#", "@")):
                if not lines[first - 1].startswith(match[1]):
                    break
                first -= 1
            starts.append((first, match[2]))
    return tuple(
        Section(name, first, end)
        for (first, name), (end, _) in pairwise([*starts, (len(lines), "")])
    )


def _lines(path: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The lines of a dump, and the place that the comment at the end of each tells."""
    try:
        whole = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise CommandError(f"{path}: not text in UTF-8 ({error.reason})") from error
    parts = [_split(line) for line in whole]
    return tuple(line for line, _ in parts), tuple(place for _, place in parts)


def _split(line: str) -> tuple[str, str]:
    match = _PLACED.fullmatch(line)
    return (line, "") if match is None else (match[1], match[2])


def _profile(path: Path) -> PassProfile:
    """How long the passes took; of none it tells, without a file."""
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return PassProfile(())
    try:
        return PassProfile.parse(data)
    except FieldError as error:
        raise CommandError(f"{path}: {error}; compile again, or delete it") from error
