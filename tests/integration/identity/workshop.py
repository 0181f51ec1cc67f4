"""A house whose compiler, libraries and headers may all be changed, and changes to make."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from mutations import House
from private_toolchain import PrivateToolchain, move_in

DEVICE = "device_toolchain"

Edit = Callable[["Workshop"], object]


class Workshop:
    """A house with a toolchain of its own, and a directory that the loader searches first."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.toolchain = PrivateToolchain(house.top / "toolchain")
        move_in(house, self.toolchain)
        for name in ("collect2", "liblto_plugin.so"):
            self.toolchain.own(self.toolchain.install / name)
        self.loader = house.top / "loader"
        self.loader.mkdir()
        # The compiler needs it, and finds it there.
        self.library = Path(shutil.copy(library("libzstd.so.1"), self.loader))
        house.environ["LD_LIBRARY_PATH"] = str(self.loader)


def library(name: str) -> str:
    """Where this machine's compiler finds a library that it needs."""
    compiler = subprocess.run(
        ["g++", "-print-prog-name=cc1plus"], capture_output=True, text=True, check=True
    ).stdout.strip()
    told = subprocess.run(["ldd", compiler], capture_output=True, text=True, check=True).stdout
    return next(line.split()[2] for line in told.splitlines() if line.split()[0] == name)


def append(path: Path, text: bytes = b"\n") -> None:
    """Other content, which a native file does not show: its Build-ID stays."""
    with path.open("ab") as file:
        file.write(text)


def variable(name: str, value: str) -> Edit:
    """Set a variable."""
    return lambda shop: shop.house.environ.update({name: value})


def new(path: Path, text: str = "\n") -> None:
    """A new file, with the directories above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def instrumented(path: Path, sanitizer: str) -> None:
    """A shared library built for a sanitizer, in the place of another file."""
    path.unlink(missing_ok=True)
    subprocess.run(
        ["g++", "-shared", "-fPIC", f"-fsanitize={sanitizer}", "-x", "c++", "-o", str(path), "-"],
        input="int twice(int value) { return value + value; }\nint table[3];\n"
        "int entry(int place) { return table[place]; }\n",
        text=True,
        check=True,
    )
