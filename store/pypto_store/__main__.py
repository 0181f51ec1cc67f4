"""`python -m pypto_store`: look into a store, and look after it. See pypto_store.tools."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from pypto_store.tools.answer import Status
from pypto_store.tools.command_line import Edge, run

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str]) -> int:
    """Run one command in this process; gives the exit status."""
    _occupy_closed_streams()
    try:
        status = run(arguments, Edge(os.environ, sys.stdout, sys.stderr))
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return Status.INTERRUPTED
    except OSError as error:
        # Commands answer for what they read: only the report can be what was not written.
        if not isinstance(error, BrokenPipeError):
            print(f"error: the report cannot be written: {error.strerror}", file=sys.stderr)
        # The interpreter flushes once more at its end and would complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Status.UNUSABLE
    return status


def _occupy_closed_streams() -> None:
    """Have all three standard descriptors open, whatever the process was started with.

    The next file opened would get the number of a closed one, and all that is meant for it. Who
    reads or writes it is told so, but complaints are lost.
    """
    for descriptor, flags in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, flags)  # gets the lowest number that is free
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
