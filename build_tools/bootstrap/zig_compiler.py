"""Zig, the C++ compiler of hermetic builds, unpacked from its wheel.

    <cache>/zig/<digest of lock file and recipe>/
        ziglang/zig, ziglang/lib    the compiler and what it compiles its C and C++ runtimes from
        cache                       zig's own cache, written by the actions that compile

The wheel needs no interpreter, so none is in the digest.
"""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

from bootstrap.locked_wheels import download_wheels, lock_file
from bootstrap.progress import Progress
from bootstrap.settings import Settings
from bootstrap.steps import is_complete, make_once, require_space
from bootstrap.tools import run

_SPACE = 1_000_000_000
_REMEDY = "build without --config=hermetic, or see whether the wheel is for this machine"


def zig_path(settings: Settings) -> Path:
    """The directory where zig is or will be."""
    digest = hashlib.sha256()
    for path in (lock_file("zig"), Path(__file__)):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return settings.cache / "zig" / digest.hexdigest()[:24]


def ensure_zig(settings: Settings, progress: Progress) -> Path:
    """Unpack zig unless it is there, and return its directory."""
    directory = zig_path(settings)
    if is_complete(directory):
        return directory
    require_space(directory, _SPACE, "zig")

    def make(target: Path) -> None:
        (wheel,) = download_wheels("zig", target, settings, progress)
        with progress.step("unpacking zig"), zipfile.ZipFile(wheel) as archive:
            archive.extractall(target)
        wheel.unlink()
        program = target / "ziglang" / "zig"
        program.chmod(0o755)  # zipfile keeps no modes
        (target / "cache").mkdir()
        run(
            [program, "version"],
            environ=settings.tool_environ(), log=settings.log("zig"), doing="trying zig",
            remedy=_REMEDY,
        )  # fmt: skip

    return make_once(directory, settings.lock("zig"), progress, make)
