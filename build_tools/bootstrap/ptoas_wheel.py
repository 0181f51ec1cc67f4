"""The assembler that is published as a wheel, for the test that installs it.

<cache>/ptoas-wheel/<digest of lock file and recipe>/ptoas-*.whl
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from bootstrap.locked_wheels import download_wheels, lock_file
from bootstrap.progress import Progress
from bootstrap.settings import Settings
from bootstrap.steps import is_complete, make_once, require_space

_SPACE = 100_000_000


def ptoas_wheel_path(settings: Settings) -> Path:
    """The directory where the wheel is or will be."""
    digest = hashlib.sha256()
    for path in (lock_file("ptoas"), Path(__file__)):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return settings.cache / "ptoas-wheel" / digest.hexdigest()[:24]


def ensure_ptoas_wheel(settings: Settings, progress: Progress) -> Path:
    """Download the wheel unless it is there, and return its directory."""
    directory = ptoas_wheel_path(settings)
    if is_complete(directory):
        return directory
    require_space(directory, _SPACE, "the wheel of ptoas")

    def make(target: Path) -> None:
        download_wheels("ptoas", target, settings, progress)

    return make_once(directory, settings.lock("ptoas-wheel"), progress, make)
