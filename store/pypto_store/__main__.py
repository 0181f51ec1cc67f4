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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
