"""Wheels that are wanted as files: downloaded by pip, held against the digests of a lock file."""

from __future__ import annotations

from pathlib import Path

from bootstrap.environments import RECIPES, ensure_environment
from bootstrap.progress import Progress
from bootstrap.settings import Settings
from bootstrap.tools import run


def lock_file(name: str) -> Path:
    """The lock file ``name``.lock; relock.py writes it from ``name``.in."""
    return Path(__file__).parents[1] / "python" / f"{name}.lock"


def download_wheels(
    name: str, directory: Path, settings: Settings, progress: Progress
) -> list[Path]:
    """Put every wheel that ``name``.lock names for this machine into ``directory``."""
    tools = ensure_environment(RECIPES["tools"], settings, progress)
    with progress.step(f"downloading {name}"):
        run(
            [
                *(tools / "bin" / "python", "-I", "-m", "pip", "download", "--quiet", "--no-deps"),
                *("--only-binary=:all:", "--require-hashes", "-r", lock_file(name)),
                *("--dest", directory),
            ],
            environ=settings.tool_environ(), log=settings.log(f"wheel-{name}"),
            doing=f"downloading {name}",
            remedy="check that the index serves the locked version, then run the command again",
        )  # fmt: skip
    return sorted(directory.glob("*.whl"))
