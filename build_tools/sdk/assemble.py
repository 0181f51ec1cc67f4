"""Assembles the SDK directory that the package carries.

    assemble.py --out DIR --targets targets.json [--executable DEST=SRC ...] [--file DEST=SRC ...]

Two files are computed. `pto_isa.pin` is one line, the digest of the ISA model below include/pto.
`sdk.json` is targets.json with `revision`, the digest of every other file, the pin included. A
digest of a set of files is the sha256 of the lines "<path>\\0<sha256 of content>\\n"
in order of path.

Runs on a bare interpreter (-I -S): standard library only.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from collections.abc import Iterable
from pathlib import Path

_ISA = "include/pto/"


def digest_of(root: Path, names: Iterable[str]) -> str:
    """The digest of the files `names` below `root`, lower-case hex."""
    digest = hashlib.sha256()
    for name in sorted(names):
        content = hashlib.sha256((root / name).read_bytes()).hexdigest()
        digest.update(f"{name}\0{content}\n".encode())
    return digest.hexdigest()


def assemble(
    out: Path, targets: Path, files: dict[str, Path], executables: dict[str, Path]
) -> None:
    """Copy the files to their places below `out` and write the two computed ones."""
    for places, mode in ((files, 0o644), (executables, 0o755)):
        for name, source in places.items():
            place = out / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, place)
            place.chmod(mode)
    pin = digest_of(out, [name for name in files if name.startswith(_ISA)])
    (out / "pto_isa.pin").write_text(pin + "\n", encoding="utf-8")

    description = json.loads(targets.read_text(encoding="utf-8"))
    description["revision"] = digest_of(out, [*files, *executables, "pto_isa.pin"])
    (out / "sdk.json").write_text(
        json.dumps(description, indent=1, sort_keys=True) + "\n", encoding="utf-8"
    )


def _place(argument: str) -> tuple[str, Path]:
    name, _, source = argument.partition("=")
    return name, Path(source)


def main() -> None:
    """Entry of the action."""
    parser = argparse.ArgumentParser(fromfile_prefix_chars="@")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--targets", type=Path, required=True)
    parser.add_argument("--file", type=_place, action="append", default=[])
    parser.add_argument("--executable", type=_place, action="append", default=[])
    arguments = parser.parse_args()
    assemble(arguments.out, arguments.targets, dict(arguments.file), dict(arguments.executable))


if __name__ == "__main__":
    main()
