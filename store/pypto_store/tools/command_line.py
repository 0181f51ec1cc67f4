"""From a command line to printed results, the same way for every command."""

from __future__ import annotations

import argparse
import importlib
import json
import keyword
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol, TextIO, cast

from pypto_store.tools.answer import Answer, CommandError, Progress, Surroundings
from pypto_store.tools.terminal import SilentProgress, TerminalProgress, console_on

SCHEMA = 1
ROOT_VARIABLE = "PYPTO_CACHE_DIR"

# Each command is the module of that name in this package; a keyword has an underscore behind it.
COMMANDS: Mapping[str, str] = MappingProxyType(
    {
        "ls": "list every entry",
        "show": "show one key with its entries and their files",
        "why": "say which inputs make a key another key",
        "fsck": "read everything, and put damage into quarantine",
        "gc": "keep within limits, and remove what nothing needs",
        "export": "pack entries into one file, for another store",
        "import": "add the entries of such a file",
        "push": "send entries to a remote, and list them there",
        "pull": "add the entries that such a list names",
        "report": "write a page about everything that is there",
        "keygen": "make a key that signs what is sent to a remote",
    }
)
# These are about no store.
_WITHOUT_ROOT = frozenset({"keygen"})
# These are about a store or a bundle in its place; what a bundle is to each.
_ROOT_OR_BUNDLE: Mapping[str, str] = MappingProxyType(
    {
        "push": "send the entries of this bundle instead; - is standard input",
        "pull": "pack the entries into this bundle instead; - is standard output",
    }
)


class _Command(Protocol):
    """What a command's module has."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, options: argparse.Namespace, surroundings: Surroundings) -> Answer: ...


@dataclass(frozen=True, slots=True)
class Edge:
    """What the process was started with."""

    environ: Mapping[str, str]
    out: TextIO
    err: TextIO


def run(arguments: Sequence[str], edge: Edge) -> int:
    """Run one command and print what it says; gives the exit status (`answer.Status`)."""
    chosen = next((word for word in arguments if not word.startswith("-")), "")
    command = _command(chosen) if chosen in COMMANDS else None
    options = _parser(chosen, command, edge.environ).parse_args(arguments)
    assert command is not None  # the parser refuses any other name
    try:
        answer = _answer(command, options, edge)
        _print(answer, options, edge.err if answer.beside_data else edge.out)
        if answer.complaint:
            edge.err.write(f"error: {answer.complaint}\n")
    except CommandError as error:
        edge.err.write(f"error: {error}\n")
        return error.status
    return answer.status


def _answer(command: _Command, options: argparse.Namespace, edge: Edge) -> Answer:
    try:
        return command.run(options, _surroundings(_root(options), edge))
    except OSError as error:
        place = vars(options).get("root") or options.command
        # That of a call on a descriptor is the descriptor's number.
        named = isinstance(error.filename, (str, bytes))
        if named:
            place = os.fsdecode(error.filename)
        told = f"{place}: {error.strerror or error}"
        raise CommandError(f"{told}; check the path and its permissions") from error


def _command(name: str) -> _Command:
    module = f"{name}_" if keyword.iskeyword(name) else name
    return cast("_Command", importlib.import_module(f"pypto_store.tools.{module}"))


def _parser(
    chosen: str, command: _Command | None, environ: Mapping[str, str]
) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pypto_store",
        description="Look into a store, and look after it.",
        epilog="Exit status: 0 done, 1 nothing matches or something is wrong, 2 unusable "
        "arguments or root, 3 someone is using the store.",
    )
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, summary in COMMANDS.items():
        own = subparsers.add_parser(name, help=summary, description=f"{summary.capitalize()}.")
        if name == chosen and command is not None:
            if name not in _WITHOUT_ROOT:
                _add_root(own, name, environ.get(ROOT_VARIABLE) or None)
            own.add_argument(
                "--json", action="store_true", help="print JSON, as where no terminal is"
            )
            command.add_arguments(own)
    return parser


def _root(options: argparse.Namespace) -> str:
    """The store that a command is about, absolute; "" where it is about none."""
    if options.command in _WITHOUT_ROOT:
        return ""
    if options.command in _ROOT_OR_BUNDLE and options.bundle is not None:
        return ""  # the root of the environment is not meant
    if options.root is None:
        bundle = ", or a --bundle" if options.command in _ROOT_OR_BUNDLE else ""
        raise CommandError(
            f"no store is named; give --root DIRECTORY{bundle}, or set {ROOT_VARIABLE}"
        )
    if not options.root:
        # It would be the working directory, which nobody has named.
        raise CommandError("--root is empty; name a directory")
    root: str = options.root
    return os.path.abspath(root)


def _add_root(parser: argparse.ArgumentParser, command: str, given: str | None) -> None:
    one_of = parser.add_mutually_exclusive_group()
    one_of.add_argument(
        "--root",
        metavar="DIRECTORY",
        default=given,
        help=f"the store's directory (default: ${ROOT_VARIABLE})",
    )
    if command in _ROOT_OR_BUNDLE:
        one_of.add_argument("--bundle", metavar="FILE", help=_ROOT_OR_BUNDLE[command])


def _surroundings(root: str, edge: Edge) -> Surroundings:
    progress: Progress = SilentProgress()
    if edge.err.isatty():
        progress = TerminalProgress(edge.err, time.monotonic)
    named = edge.environ.get("TMPDIR", "")
    temporary = named if os.path.isabs(named) else "/tmp"  # noqa: S108 - for random names below it
    return Surroundings(root, progress, time.time(), _directory(), temporary, edge.environ)


def _directory() -> str:
    """The working directory; "" once it has been removed, which concerns only relative paths."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


def _print(answer: Answer, options: argparse.Namespace, out: TextIO) -> None:
    if out.isatty() and not options.json:
        answer.paint(console_on(out))
        return
    root = _root(options)
    about = {"root": root} if root else {}
    document = {"schema_version": SCHEMA, **about, **answer.document}
    json.dump(document, out, indent=2, sort_keys=True)
    out.write("\n")
