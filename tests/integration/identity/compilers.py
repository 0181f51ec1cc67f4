"""Compilers for tests: this machine's, Debian's others, and installations that tests may change."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from mutations import other_build_id

VARIABLE = "PYPTO_TEST_COMPILERS"

_PT_NOTE = 4


def machine_gcc() -> Path:
    """The g++ of this machine, wherever links lead. The test is skipped without one."""
    found = shutil.which("g++")
    if found is None:
        pytest.skip("needs g++")
    return Path(os.path.realpath(found))


@cache
def debian_compilers() -> dict[str, Path]:
    """The programs that bazelw unpacked, by name: aarch64_gcc, other_gcc, clang, ccache."""
    listing = os.environ.get(VARIABLE)
    if not listing:
        pytest.fail(
            f"{VARIABLE} does not name a compilers.json: run ./bazelw test "
            "//tests/integration/identity/..., or set it to the file that ./bazelw setup makes"
        )
    named: dict[str, str] = json.loads(Path(listing).read_text())
    return {name: Path(path) for name, path in named.items()}


def build_program(path: Path, body: str = "return 0;", *flags: str) -> Path:
    """Compile a C program of one function for this machine."""
    path.parent.mkdir(parents=True, exist_ok=True)
    source = (
        "#include <stdio.h>\n#include <string.h>\n#include <sys/wait.h>\n#include <unistd.h>\n"
        f"int main(int argc, char **argv) {{ {body} }}\n"
    )
    subprocess.run(
        [machine_gcc(), "-x", "c", "-", "-o", path, *flags],
        input=source, text=True, check=True, env={"PATH": os.environ["PATH"]},
    )  # fmt: skip
    return path


def change_bytes(path: Path) -> None:
    """Change what an ELF file does, and nothing that it says of itself.

    It is another file then, as after a package was patched; no link shares the change.
    """
    content = bytearray(path.read_bytes())
    assert content[:6] == b"\x7fELF\x02\x01"
    content[-1] ^= 0xFF
    path.unlink()
    path.write_bytes(content)
    path.chmod(0o755)


def without_build_id(path: Path) -> None:
    """Take the notes out of an ELF file, by having its program headers call them nothing."""
    content = bytearray(path.read_bytes())
    table, size, count = (
        struct.unpack_from("<Q", content, 32)[0],
        *struct.unpack_from("<HH", content, 54),
    )
    for index in range(count):
        at = table + index * size
        if struct.unpack_from("<I", content, at)[0] == _PT_NOTE:
            struct.pack_into("<I", content, at, 0)
    path.unlink()
    path.write_bytes(content)
    path.chmod(0o755)


def own_copy(path: Path) -> None:
    """Put a copy in the place of a link, so that it can be changed alone."""
    target = path.resolve(strict=True)
    path.unlink()
    shutil.copy(target, path)


@dataclass(frozen=True, slots=True)
class GccInstallation:
    """A GCC in a directory of its own, made of links to this machine's files.

    The driver is a copy, so that it takes its directory for the installation's.
    """

    top: Path
    machine: str
    version: str

    @classmethod
    def make(cls, top: Path) -> GccInstallation:
        """Lay one out below `top`."""
        driver = machine_gcc()
        told = subprocess.run(
            [driver, "-print-file-name=crtbegin.o"],
            stdout=subprocess.PIPE, text=True, check=True, env={"PATH": os.environ["PATH"]},
        )  # fmt: skip
        own = Path(told.stdout.strip()).parent
        made = cls(top, own.parent.name, own.name)
        made.programs.mkdir(parents=True)
        made.tools.mkdir(parents=True)
        made.bin.mkdir()
        for entry in own.iterdir():
            (made.programs / entry.name).symlink_to(entry.resolve())
        shutil.copy(driver, made.driver)
        for tool in ("as", "ld"):
            found = shutil.which(tool)
            assert found is not None
            (made.tools / tool).symlink_to(os.path.realpath(found))
        return made

    @property
    def bin(self) -> Path:
        """Where the driver is."""
        return self.top / "bin"

    @property
    def driver(self) -> Path:
        """The driver."""
        return self.bin / "g++"

    @property
    def programs(self) -> Path:
        """Where cc1plus, collect2 and the linker's plugin are: searched first."""
        return self.top / "lib/gcc" / self.machine / self.version

    @property
    def tools(self) -> Path:
        """Where as and ld are: searched last."""
        return self.top / self.machine / "bin"

    def helper(self, name: str) -> Path:
        """A helper by the name that facts have for it, as a file of its own."""
        directory = self.tools if name in ("as", "ld") else self.programs
        path = directory / ("liblto_plugin.so" if name == "plugin" else name)
        if path.is_symlink():
            own_copy(path)
        return path

    def rebuild(self, name: str) -> None:
        """Another build of a helper, or of the driver."""
        other_build_id(self.driver if name == "driver" else self.helper(name))
