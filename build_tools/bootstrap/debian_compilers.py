"""Debian's other C++ compilers in a directory of their own, for tests of what identifies them.

    <cache>/compilers/<digest of lock file and recipe>/
        usr/...            the packages, unpacked
        compilers.json     {"aarch64_gcc": program, "other_gcc": ..., "clang": ..., "ccache": ...}

They are of a released suite, which stays as it is, and not newer than the hosts that run them: the
host's loader, C and C++ libraries are new enough for them, so the programs need no loader of their
own. Their other libraries are unpacked with them and found by RPATH (patchelf). Headers and start
files are found by the drivers themselves, which take them from beside where they lie.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from bootstrap.apt import PrivateApt, checked, unpack
from bootstrap.environments import RECIPES, ensure_environment
from bootstrap.progress import Progress
from bootstrap.settings import Settings
from bootstrap.steps import is_complete, make_once, require_space
from bootstrap.tools import run

SUITE = "bookworm"
PACKAGES = ["g++-aarch64-linux-gnu", "g++-11", "clang-14", "ccache"]
LOCK = Path(__file__).with_name("compilers.lock")

_SPACE = 1_200_000_000
_LIBRARIES = "usr/lib/x86_64-linux-gnu"
_REMEDY = "run the other tests alone: ./bazelw test -- //... -//tests/integration/identity/..."

_PROGRAMS = {
    "aarch64_gcc": "usr/bin/aarch64-linux-gnu-g++",
    "other_gcc": "usr/bin/g++-11",
    "clang": "usr/bin/clang++-14",
    "ccache": "usr/bin/ccache",
}

# What a host with g++ has, and the run-time libraries of what is never run here.
_PRETENDED = (
    "binutils gcc-12-cross-base libasan6 libasan8-arm64-cross"
    " libatomic1 libatomic1-arm64-cross libc6 libc6-dev libcc1-0 libgcc-12-dev libgcc-s1"
    " libgomp1 libgomp1-arm64-cross libhwasan0-arm64-cross libitm1 libitm1-arm64-cross liblsan0"
    " liblsan0-arm64-cross libobjc-12-dev libquadmath0 libstdc++-12-dev libstdc++6 libtsan0"
    " libtsan2-arm64-cross libubsan1 libubsan1-arm64-cross"
).split()


def compilers_path(settings: Settings) -> Path:
    """The directory where the compilers are or will be; ``compilers.json`` in it names them."""
    digest = hashlib.sha256()
    for path in (LOCK, Path(__file__), Path(__file__).with_name("apt.py")):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return settings.cache / "compilers" / digest.hexdigest()[:24]


def ensure_compilers(settings: Settings, progress: Progress) -> Path:
    """Set the compilers up unless they are there, and return their directory."""
    directory = compilers_path(settings)
    if is_complete(directory):
        return directory
    require_space(directory, _SPACE, "the compilers for tests")

    def make(prefix: Path) -> None:
        tools = ensure_environment(RECIPES["tools"], settings, progress)
        files = compilers_apt(settings).download(PACKAGES, progress)
        checked(files, LOCK, settings, progress)
        with progress.step("unpacking and patching the compilers"):
            unpack(files, prefix, settings)
            _assemble(prefix, tools, settings)
        for file in files:
            file.unlink()

    return make_once(directory, settings.lock("compilers"), progress, make)


def compilers_apt(settings: Settings) -> PrivateApt:
    """The apt that downloads the compilers."""
    return PrivateApt.open(settings, SUITE, "the compilers", _REMEDY, _PRETENDED)


def _assemble(prefix: Path, tools: Path, settings: Settings) -> None:
    log, environ = settings.log("compilers"), settings.tool_environ()
    remedy = f"remove {prefix} and run the command again, or {_REMEDY}"
    libraries = prefix / _LIBRARIES
    for program in _patched(prefix):
        run(
            [tools / "bin" / "patchelf", "--force-rpath", "--set-rpath", libraries, program],
            environ=environ, log=log, doing=f"patching {program.name}", remedy=remedy,
        )  # fmt: skip
    paths = {name: str(prefix / program) for name, program in _PROGRAMS.items()}
    for path in paths.values():
        run(
            [path, "--version"],
            environ=environ, log=log, doing=f"trying {path}", remedy=remedy,
        )  # fmt: skip
    text = json.dumps(paths, indent=2, sort_keys=True)
    (prefix / "compilers.json").write_text(text + "\n", encoding="utf-8")


def _patched(prefix: Path) -> Iterator[Path]:
    """The programs that a build by one of the compilers starts, each file once."""
    helpers = ("cc1plus", "collect2")
    found = [
        *(prefix / program for program in _PROGRAMS.values()),
        *(path for path in prefix.glob("usr/lib/gcc*/*/*/*") if path.name in helpers),
        *(prefix / "usr/bin" / f"aarch64-linux-gnu-{name}" for name in ("as", "ld")),
    ]
    yield from sorted({path.resolve(strict=True) for path in found})
