"""What is made only for the commands that need it: large, and of no use to the rest.

A row here is all that bazelw has to know of such a thing: it is made when a command's patterns take
in a package whose targets need it, and Bazel's repository rule is told its place by ``variable``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bootstrap.cache_servers import cache_servers_path, ensure_cache_servers
from bootstrap.command import Command
from bootstrap.debian_browser import browser_path, ensure_browser
from bootstrap.debian_compilers import compilers_path, ensure_compilers
from bootstrap.progress import Progress
from bootstrap.ptoas_wheel import ensure_ptoas_wheel, ptoas_wheel_path
from bootstrap.settings import Settings
from bootstrap.zig_compiler import ensure_zig, zig_path


@dataclass(frozen=True, slots=True)
class Supply:
    """One such thing. ``packages`` are written without slashes in front.

    Where ``config`` is set, every command with that ``--config`` needs it too, and its actions may
    write below the directory ``writable``.
    """

    variable: str
    path: Callable[[Settings], Path]
    ensure: Callable[[Settings, Progress], Path]
    packages: tuple[str, ...]
    config: str | None = None
    writable: str | None = None

    def is_wanted(self, command: Command) -> bool:
        """Whether it has to be there before Bazel runs ``command``."""
        if command.has_targets and self.config in command.configs:
            return True
        return any(map(command.takes_in, self.packages))


SUPPLIES = (
    Supply("PYPTO_BROWSER", browser_path, ensure_browser, ("tests/browser",)),
    Supply(
        "PYPTO_CACHE_SERVERS",
        cache_servers_path,
        ensure_cache_servers,
        ("tests/integration/remote",),
    ),
    Supply("PYPTO_COMPILERS", compilers_path, ensure_compilers, ("tests/integration/identity",)),
    Supply(
        "PYPTO_PTOAS_WHEEL",
        ptoas_wheel_path,
        ensure_ptoas_wheel,
        ("tests/integration/published_ptoas",),
    ),
    Supply(
        "PYPTO_ZIG",
        zig_path,
        ensure_zig,
        ("toolchains/zig", "tests/starlark", "tests/integration/hermetic", "tests/hermetic/zig"),
        config="hermetic",
        writable="cache",
    ),
)
