"""The action KernelBinaries: compiles the kernels whose sources a tree has.

    compile_binaries --label LABEL --sources DIR --out DIR --cpu-level LEVEL ...

As `python -m pypto.jit complete` would. No module of kernels is asked, so none is an input.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from kernel_cache_roots import copy_tree, ship
from pypto.jit.complete import complete


def main() -> int:
    """Run the action; gives the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--label", required=True)
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cpu-level", action="append", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pypto-kernel-cache-") as scratch:
        os.environ["PYPTO_PROG_BUILD_DIR"] = f"{scratch}/build"
        root = Path(scratch, "root")
        copy_tree(options.sources, root)
        with Path(os.devnull).open("w", encoding="utf-8") as report:
            status = complete(str(root), options.cpu_level, report, sys.stderr)
        if status:
            print(f"error: {options.label}: not all kernels compile, see above", file=sys.stderr)
            return status
        ship(root, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
