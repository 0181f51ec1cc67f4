"""The bazelrc that bazelw writes: what depends on this machine and its cache directory."""

from __future__ import annotations

import hashlib
from pathlib import Path

from bootstrap.find_bazel import Bazel
from bootstrap.settings import Settings
from bootstrap.steps import write_atomically

_DISK_CACHE_LIMIT = "6G"


def write_bazelrc(
    settings: Settings, bazel: Bazel, environments: dict[str, Path], compiler: str
) -> Path:
    """Write the file, named by its content, and return it."""
    lines = [
        f"common --repo_env=PYPTO_{name.upper()}_ENV={path}"
        for name, path in sorted(environments.items())
    ]
    lines += [
        # Part of every action's key; see host.compiler_identity.
        f"build --action_env=PYPTO_HOST_COMPILER={compiler}",
        f"build --host_action_env=PYPTO_HOST_COMPILER={compiler}",
        f"build --disk_cache={settings.cache / 'disk'}",
        f"build --experimental_disk_cache_gc_max_size={_DISK_CACHE_LIMIT}",
    ]
    lines += [f"build --sandbox_add_mount_pair={path}" for path in _hidden_by_sandbox(settings)]
    text = "# Written by bazelw.\n" + "\n".join(lines) + "\n"
    path = settings.cache / "rc" / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.bazelrc"
    if not path.is_file():
        write_atomically(path, text)
    return path


def _hidden_by_sandbox(settings: Settings) -> list[Path]:
    """What lies below /tmp, which Bazel's sandbox replaces by an empty directory."""
    tmp = Path("/tmp")  # noqa: S108 - the very directory that Bazel hides
    homes = (
        {settings.cache, settings.home.resolve()} if settings.home.is_dir() else {settings.cache}
    )
    return sorted(path for path in homes if tmp in path.parents)
