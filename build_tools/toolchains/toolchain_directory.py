"""Makes a toolchain directory: copies of the tools, and what says which tools they are.

    toolchain_directory.py --out DIR --sdk DIR
        --label COMPONENT=LABEL ... --tool JSON ... --file PLACE=SRC ...

    DIR/identity.json     the document below
    DIR/inventory.txt     a line for each other file, in order of path (compared as bytes):
                          <sha256> <size> <x or -> <component> <path>
    DIR/<PLACE>           a copy of SRC; of all that is below it where SRC is a directory

    {"schema": 1,
     "components": {"device_toolchain": {"label": ..., "digest": ...}, "pto_isa": ..., "ptoas": ...,
                    "runtime": ...},
     "tools": {<name in the SDK>: {"argv": [<PLACE or below it>, ...], "dialect": ...}},
     "inventory": {"path": "inventory.txt", "sha256": ...}}

Digests are lower-case hex: of the device toolchain, the sha256 of its lines in the inventory; of
the others, what the SDK says (its pin of the instruction set, its revision) or the sha256 of its
assembler. Labels are for messages. Everything is a function of the arguments' content: no path
outside DIR and no date gets in.

Runs on a bare interpreter (-I -S): standard library only.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

SCHEMA = 1
_DEVICE_TOOLCHAIN = "device_toolchain"
_COMPONENTS = (_DEVICE_TOOLCHAIN, "pto_isa", "ptoas", "runtime")
_IDENTITY = "identity.json"
_INVENTORY = "inventory.txt"


@dataclass(frozen=True, slots=True)
class Tool:
    """A command by the name that the SDK has for it. ``argv[0]`` is a path below the directory."""

    name: str
    argv: tuple[str, ...]
    dialect: str

    @classmethod
    def parse(cls, text: str) -> Tool:
        """The tool that a JSON object with these fields describes."""
        fields = json.loads(text)
        return cls(fields["name"], tuple(fields["argv"]), fields["dialect"])


def assemble(
    out: Path,
    sdk: Path,
    labels: Mapping[str, str],
    tools: Sequence[Tool],
    places: Mapping[str, Path],
) -> None:
    """Fill the directory ``out``; SystemExit names a place or tool that cannot be right."""
    if missing := sorted(set(_COMPONENTS) - labels.keys()):
        raise SystemExit(f"no label is given for {', '.join(missing)}")
    programs = {tool.argv[0] for tool in tools}
    lines = []
    for place, source in sorted(_files(places), key=lambda item: os.fsencode(item[0])):
        copy = out / place
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
        executable = place in programs
        copy.chmod(0o755 if executable else 0o644)
        content = _sha256(copy)
        mark = "x" if executable else "-"
        lines.append(f"{content} {copy.stat().st_size} {mark} {_DEVICE_TOOLCHAIN} {place}\n")
        programs.discard(place)
    if programs:
        tool = next(tool for tool in tools if tool.argv[0] in programs)
        raise SystemExit(
            f"the program of {tool.name} is {tool.argv[0]}, and no file of the toolchain is there"
        )
    inventory = "".join(lines).encode()
    (out / _INVENTORY).write_bytes(inventory)
    digest = hashlib.sha256(inventory).hexdigest()
    document = {
        "schema": SCHEMA,
        "components": {
            name: {"label": labels[name], "digest": value}
            for name, value in ({_DEVICE_TOOLCHAIN: digest} | _digests_of_sdk(sdk)).items()
        },
        "tools": {tool.name: {"argv": tool.argv, "dialect": tool.dialect} for tool in tools},
        "inventory": {"path": _INVENTORY, "sha256": digest},
    }
    (out / _IDENTITY).write_text(
        json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8"
    )


def _files(places: Mapping[str, Path]) -> Iterator[tuple[str, Path]]:
    """Every file with its place; a directory stands for all files below it, links followed."""
    for place, source in places.items():
        path = PurePosixPath(place)
        if path.is_absolute() or ".." in path.parts or len(path.parts) < 2 or "\n" in place:
            raise SystemExit(
                f"{place!r} is no place for a file of a tool: name a path below a directory"
            )
        if not source.is_dir():
            yield place, source
            continue
        for parent, directories, names in os.walk(source, followlinks=True):
            directories.sort()
            below = Path(parent).relative_to(source)
            for name in sorted(names):
                yield (path / below / name).as_posix(), Path(parent) / name


def _digests_of_sdk(sdk: Path) -> dict[str, str]:
    description: Any = json.loads((sdk / "sdk.json").read_text(encoding="utf-8"))
    return {
        "pto_isa": (sdk / "pto_isa.pin").read_text(encoding="utf-8").strip(),
        "ptoas": _sha256(sdk / "bin" / "ptoas"),
        "runtime": description["revision"],
    }


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _pair(argument: str) -> tuple[str, str]:
    name, _, value = argument.partition("=")
    return name, value


def main() -> None:
    """Entry of the action."""
    parser = argparse.ArgumentParser(fromfile_prefix_chars="@")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sdk", type=Path, required=True)
    parser.add_argument("--label", type=_pair, action="append", default=[])
    parser.add_argument("--tool", type=Tool.parse, action="append", default=[])
    parser.add_argument("--file", type=_pair, action="append", default=[])
    arguments = parser.parse_args()
    assemble(
        arguments.out,
        arguments.sdk,
        dict(arguments.label),
        arguments.tool,
        {place: Path(source) for place, source in arguments.file},
    )


if __name__ == "__main__":
    main()
