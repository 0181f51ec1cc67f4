"""The action of the wheel rule.

    pack_wheel.py --out F.whl --version V --tag T --pyproject P --readme R --license NAME=SRC
                  --file NAME=SRC ... --tree PREFIX=DIR ... --executable NAME ...

Runs on a bare interpreter (-I -S): standard library only, and its own directory has to be named.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parent))

from project_metadata import Project
from wheel_archive import Member, members_below, write_wheel


def _pair(argument: str) -> tuple[str, Path]:
    name, _, source = argument.partition("=")
    return name, Path(source)


def main() -> None:
    """Entry of the action."""
    parser = argparse.ArgumentParser(fromfile_prefix_chars="@")
    for option in ("--out", "--pyproject", "--readme"):
        parser.add_argument(option, type=Path, required=True)
    for option in ("--version", "--tag"):
        parser.add_argument(option, required=True)
    for option in ("--license", "--file", "--tree"):
        parser.add_argument(option, type=_pair, action="append", default=[])
    parser.add_argument("--executable", action="append", default=[])
    arguments = parser.parse_args()

    project = Project.read(arguments.pyproject)
    if project.version != arguments.version:
        # The file's name holds the rule's attribute and METADATA holds pyproject.toml's.
        raise SystemExit(
            f"the wheel target says version {arguments.version}, pyproject.toml {project.version}"
        )
    members = {name: Member(source.read_bytes()) for name, source in arguments.file}
    for prefix, directory in arguments.tree:
        start = prefix + "/"
        executables = [
            name.removeprefix(start) for name in arguments.executable if name.startswith(start)
        ]
        members |= members_below(directory, prefix, executables)
    write_wheel(
        arguments.out,
        project,
        arguments.tag,
        arguments.readme.read_text(encoding="utf-8"),
        {name: source.read_bytes() for name, source in arguments.license},
        members,
    )


if __name__ == "__main__":
    main()
