"""A g++ of one's own, every file of which may be changed: the real one, moved.

A GCC driver finds its installation from where it lies itself, so a copy of it finds what lies
around the copy. With ``--sysroot`` it finds there the headers and startup files of the system too.
Large executables are links to the real ones until somebody needs to change them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from mutations import House

# What a link of everything reads; links of the product read the objects alone.
_LINKED = (
    "crti.o crtn.o crt1.o Scrt1.o libc.so libm.so libc_nonshared.a".split(),
    "crtbegin.o crtbeginS.o crtendS.o crtend.o libgcc.a libgcc_s.so libgcc_s.so.1 libstdc++.so "
    "libgcc_eh.a".split(),
)
_HELPERS = ("cc1plus", "collect2", "liblto_plugin.so", "lto-wrapper")


def asked(*command: str) -> str:
    """What a tool answers."""
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    return found.stdout.strip()


class PrivateToolchain:
    """See the module. `top` is its system root."""

    def __init__(self, top: Path) -> None:
        self.top = top
        driver = Path(os.path.realpath(str(shutil.which("g++"))))
        install = Path(asked(str(driver), "-print-prog-name=cc1plus")).parent
        self.machine = asked(str(driver), "-dumpmachine")
        self.bin = self.below("/usr/bin")
        self.driver = self.bin / "g++"
        shutil.copy(driver, self.driver)
        for name in ("as", "ld"):
            (self.bin / name).symlink_to(os.path.realpath(str(shutil.which(name))))
        self.install = self.below(str(install))
        for name in _HELPERS:
            (self.install / name).symlink_to(os.path.realpath(install / name))
        self.libraries = self.below(f"/usr/lib/{self.machine}")
        for names, place in zip(_LINKED, (self.libraries, self.install), strict=True):
            for name in names:
                found = asked(str(driver), f"-print-file-name={name}")
                if os.path.isabs(found):
                    shutil.copy(found, place / name)
        self.include = self.below("/usr/include")
        self.own_include = self.below(str(install / "include"))

    def below(self, path: str) -> Path:
        """The directory that has the absolute path `path` in this root, made if need be."""
        made = self.top / path.lstrip("/")
        made.mkdir(parents=True, exist_ok=True)
        return made

    def add_headers(self, sdk: Path, forced: Iterable[str], options: Iterable[str]) -> None:
        """Copy the headers of the system that those of an SDK include."""
        for header in forced:
            listed = asked("g++", "-std=c++20", *options, f"-I{sdk}/include", "-M", "-x", "c++",
                           f"{sdk}/{header}")  # fmt: skip
            for word in listed.replace("\\\n", " ").split()[1:]:
                if not word.startswith(f"{sdk}/"):
                    place = self.below(os.path.dirname(word)) / os.path.basename(word)
                    shutil.copy(word, place)

    def add_own_headers(self) -> None:
        """Copy the headers that belong to the compiler, for use with the others of the system."""
        shutil.copytree(
            asked("g++", "-print-file-name=include"), self.own_include, dirs_exist_ok=True
        )

    def add_c_library(self) -> None:
        """Copy the libraries that the scripts beside the startup files name."""
        named = [f"/lib/{self.machine}/{name}" for name in ("libc.so.6", "libm.so.6")]
        named += [f"/lib/{self.machine}/libmvec.so.1", *map(str, Path("/lib64").glob("ld-*"))]
        for path in filter(os.path.exists, named):
            shutil.copy(path, self.below(os.path.dirname(path)))

    def own(self, path: Path) -> Path:
        """Put a copy in the place of a link, for somebody who will change it."""
        real = path.resolve()
        if path.is_symlink():
            path.unlink()
            shutil.copy(real, path)
        return path


def move_in(house: House, toolchain: PrivateToolchain) -> None:
    """Let the house compile with a toolchain of its own."""
    options: list[str] = [f"--sysroot={toolchain.top}"]

    def edit(metadata: dict[str, object]) -> None:
        targets = metadata["targets"]
        assert isinstance(targets, dict)
        for target in targets.values():
            for recipe in (target["incore"], *target["orchestration"].values()):
                if recipe is not None:
                    recipe["flags"] = [*recipe["flags"], *options]

    house.build_sdk(edit)
    house.environ["PATH"] = f"{house.bin}:{toolchain.bin}:{house.environ['PATH']}"
    toolchain.add_headers(
        house.sdk,
        ("include/pto/sim/target_a2a3.hpp", "src/orchestration_support.cpp"),
        ("-DPTO_SIM_ADMITTED_A2A3=1", "-D__DAV_VEC__"),
    )
