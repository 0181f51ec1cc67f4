"""``python -m pypto.jit``: warm kernels up, list what a root holds, and build it once more."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

UNWRITTEN = 1
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and run the command; gives the exit status."""
    options = _parsed(sys.argv[1:] if arguments is None else arguments)
    try:
        status = _run(options)
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return INTERRUPTED
    except OSError as error:
        # Commands answer for what they read: only the report can be what was not written.
        if not isinstance(error, BrokenPipeError):
            print(f"error: the report cannot be written: {error.strerror}", file=sys.stderr)
        # The interpreter flushes once more at its end and would complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNWRITTEN
    return status


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m pypto.jit",
        description="Fill a cache root ahead of use, list what it holds, and build it once more.",
        epilog="Results are JSON where standard output is no terminal. `python -m pypto_store` has "
        "the commands for keeping a root: ls, show, why, fsck, gc, export, import, push, pull and "
        "report.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    warm = commands.add_parser("warm", help="build the kernels of a configuration ahead of use")
    warm.add_argument("--module", required=True, help="the trusted module that has the kernels")
    warm.add_argument(
        "--config", required=True, type=Path,
        help="the warm-up file: JSON that names the kernels, their tensors and the cache",
    )  # fmt: skip
    warm.add_argument(
        "--sources-only", action="store_true", help="make the sources, and leave the binaries"
    )
    warm.add_argument(
        "--push", nargs="?", const="", metavar="URL",
        help="then send the entries to this remote cache (default: the one that requests use)",
    )  # fmt: skip
    warm.add_argument(
        "--as", dest="name", metavar="NAME", default="default",
        help="with --push: the list that `pypto_store pull` finds them by (default: default)",
    )  # fmt: skip
    complete = commands.add_parser("complete", help="build the binaries of a root's sources")
    complete.add_argument("--root", required=True, help="the cache root")
    complete.add_argument(
        "--cpu-level", action="append", default=[], metavar="LEVEL",
        help="build for this level (x86-64-v3, say), and others given so (default: this machine's)",
    )  # fmt: skip
    stat = commands.add_parser("stat", help="list the entries of a cache root")
    stat.add_argument("--root", required=True, help="the cache root")
    again = commands.add_parser("verify", help="build entries again, and compare every byte")
    if "verify" in arguments:
        from pypto.jit.verify import add_arguments

        add_arguments(again)
    return parser.parse_args(arguments)


def _run(options: argparse.Namespace) -> int:
    with contextlib.ExitStack() as stack:
        # A daemon's child may have been started without these streams.
        out, err = (
            stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
            if stream is None
            else stream
            for stream in (sys.stdout, sys.stderr)
        )
        return _command(options, out, err)


def _command(options: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    # Each command imports what it needs: `stat` must not pay for the compiler.
    if options.command == "stat":
        from pypto.jit.stat import stat as run_stat

        return run_stat(options.root, out, err)
    if options.command == "verify":
        from pypto.jit.verify import verify as run_verify

        return run_verify(options, out, err)
    if options.command == "complete":
        from pypto.jit.complete import complete as run_complete

        return run_complete(options.root, options.cpu_level, out, err)
    from pypto.jit.warm import warm as run_warm

    return run_warm(
        options.module, options.config, out, err,
        sources_only=options.sources_only, push_to=options.push, name=options.name,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
