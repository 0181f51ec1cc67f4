"""What a command of `python -m pypto_store` gives and gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.console import Console


class Status(IntEnum):
    """How a command ended: the exit status of the process.

    OK: done, and nothing is wrong. FOUND: it looked, and nothing matches or something is wrong.
    UNUSABLE: the arguments, the root or a file cannot be used. IN_USE: someone else is using the
    store, and nothing was done. INTERRUPTED: Ctrl-C, as shells report it.
    """

    OK = 0
    FOUND = 1
    UNUSABLE = 2
    IN_USE = 3
    INTERRUPTED = 130


class CommandError(Exception):
    """Why a command cannot do what it was asked; the text names the input and what to do."""

    def __init__(self, message: str, status: Status = Status.UNUSABLE) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command found, for both kinds of reader.

    document: JSON values only; the frame adds `schema_version`, and `root` where there is one.
    paint: shows the same on a terminal. Only there is rich imported, so only inside of it.
    beside_data: standard output carries what the command made, so the rest goes to standard error.
    complaint: what kept it from going on, for standard error besides.
    """

    document: Mapping[str, object]
    paint: Callable[[Console], None]
    status: Status = Status.OK
    beside_data: bool = False
    complaint: str = ""


Advance = Callable[[int], None]


class Progress(Protocol):
    """Tells whoever waits how far a command has come."""

    def of(self, what: str, total: int) -> AbstractContextManager[Advance]:
        """Begin a stretch of `total` units; the function given is called with each few done."""

    def of_bytes(self, what: str, total: int) -> AbstractContextManager[Advance]:
        """The same for bytes, which are told as sizes; a `total` of 0 is one that nobody knows."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a command may know of the world beside its options.

    root: the store, absolute; "" for a command that is about none. now: seconds since the epoch.
    cwd: for relative paths of arguments. temporary: an absolute directory for temporary files,
    which nobody has tried out. environ: the variables of the process, of which those that name a
    remote are read.
    """

    root: str
    progress: Progress
    now: float
    cwd: str
    temporary: str
    environ: Mapping[str, str] = field(default_factory=dict)
