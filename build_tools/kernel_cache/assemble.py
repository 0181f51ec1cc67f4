"""The action KernelCache: puts cache roots together.

    assemble.py --out DIR --part DIR ...

Files of one name have to be equal; all that two roots share is named by what it says. Runs on a
bare interpreter (-I -S): standard library only.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path


def assemble(out: Path, parts: list[Path]) -> None:
    """Copy every file of `parts` to `out`. ValueError for two of one name that differ."""
    for part in parts:
        for path in sorted(part.rglob("*")):
            if path.is_dir():
                continue
            place = out / path.relative_to(part)
            if not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, place)
            elif place.read_bytes() != path.read_bytes():
                raise ValueError(f"{path} differs from the file of that name in another part")


def main() -> int:
    """Entry of the action."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--part", type=Path, action="append", required=True)
    arguments = parser.parse_args()
    try:
        assemble(arguments.out, arguments.part)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
