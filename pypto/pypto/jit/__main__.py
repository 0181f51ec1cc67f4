"""``python -m pypto.jit``: warm kernels up, and list what a root holds."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and run the command; gives the exit status."""
    parser = argparse.ArgumentParser(prog="python -m pypto.jit", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    warm = commands.add_parser("warm", help="build the kernels of a configuration ahead of use")
    warm.add_argument("--module", required=True, help="the trusted module that has the kernels")
    warm.add_argument("--config", required=True, type=Path, help="the JSON configuration")
    stat = commands.add_parser("stat", help="list the entries of a cache root")
    stat.add_argument("--root", required=True, help="the cache root")
    options = parser.parse_args(arguments)
    # Each command imports what it needs: `stat` must not pay for the compiler.
    if options.command == "stat":
        from pypto.jit.stat import stat as run_stat

        return run_stat(options.root, sys.stdout, sys.stderr)
    from pypto.jit.warm import warm as run_warm

    return run_warm(options.module, options.config, sys.stdout, sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
