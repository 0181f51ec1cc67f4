"""Hermetic toolchains written by hand: small ones that only have to be identified.

They follow the same grammar as those that the build makes, by code that shares nothing with what
reads them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mutations import House

FILES: Mapping[str, tuple[str, bool]] = {
    "LICENSE": ("free", False),
    "zig/lib/include/stddef.h": ("typedef unsigned long size_t;\n", False),
    "zig/zig": ("\x7fELF", True),
}

Edit = Callable[[House], object]

ZIG = ("zig/zig", "c++", "-target")


def write_toolchain(top: Path, sdk: Path, files: Mapping[str, tuple[str, bool]] = FILES) -> Path:
    """Make a toolchain for the SDK in `top`; gives the path of its description."""
    for name, (content, executable) in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        path.chmod(0o755 if executable else 0o644)
    return declare(top, sdk)


def declare(top: Path, sdk: Path) -> Path:
    """Write the inventory and the description of the files below `top`."""
    lines = []
    for path in sorted(_listed(top), key=lambda path: os.fsencode(str(path.relative_to(top)))):
        content = path.read_bytes()
        mode = "x" if os.access(path, os.X_OK) else "-"
        digest = hashlib.sha256(content).hexdigest()
        name = path.relative_to(top)
        lines.append(f"{digest} {len(content)} {mode} device_toolchain {name}\n")
    inventory = "".join(lines).encode()
    (top / "inventory.txt").write_bytes(inventory)
    tools = hashlib.sha256(inventory).hexdigest()
    revision = json.loads((sdk / "sdk.json").read_text())["revision"]
    assembler = hashlib.sha256((sdk / "bin/ptoas").read_bytes()).hexdigest()
    pin = (sdk / "pto_isa.pin").read_text().strip()
    document = {
        "schema": 1,
        "components": {
            "device_toolchain": {"label": "//zig:kernel", "digest": tools},
            "pto_isa": {"label": "//isa:headers", "digest": pin},
            "ptoas": {"label": "//ptoas", "digest": assembler},
            "runtime": {"label": "//pypto:sdk", "digest": revision},
        },
        "tools": {
            "host_cxx": {"argv": [*ZIG, "x86_64-linux-gnu.2.28"], "dialect": "zig"},
            "aarch64_cxx": {"argv": [*ZIG, "aarch64-linux-gnu.2.28"], "dialect": "zig"},
        },
        "inventory": {"path": "inventory.txt", "sha256": tools},
    }
    (top / "identity.json").write_text(json.dumps(document))
    return top / "identity.json"


def _listed(top: Path) -> list[Path]:
    own = {top / "identity.json", top / "inventory.txt"}
    return [path for path in top.rglob("*") if path.is_file() and path not in own]


def edit(description: Path, change: Callable[[Any], object]) -> None:
    """Change what a description says."""
    document = json.loads(description.read_text())
    change(document)
    description.write_text(json.dumps(document))


def description(house: House) -> Path:
    return house.cwd / house.environ["PYPTO_TOOLCHAIN"]


def toolchain(house: House) -> Path:
    return description(house).parent


def says(change: Callable[[Any], object]) -> Edit:
    """The description says something else."""
    return lambda house: edit(description(house), change)


def tool(**fields: object) -> Edit:
    """The description says something else of the host's compiler."""
    return says(lambda document: document["tools"]["host_cxx"].update(fields))


def component(name: str, **fields: object) -> Edit:
    """The description says something else of a component."""
    return says(lambda document: document["components"][name].update(fields))


def variable(name: str, value: str) -> Edit:
    return lambda house: house.environ.update({name: value})


def patch(path: str, text: str) -> Edit:
    """Overwrite a file of the toolchain in place."""
    return lambda house: (toolchain(house) / path).write_text(text)


def rebuild(path: str, text: str) -> Edit:
    """Another toolchain has another file."""

    def change(house: House) -> None:
        (toolchain(house) / path).write_text(text)
        declare(toolchain(house), house.sdk)

    return change
