"""The bazelrc that bazelw writes: what depends on this machine and its cache directory."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from bootstrap.settings import Settings
from bootstrap.steps import write_atomically

_DISK_CACHE_LIMIT = "6G"


def write_bazelrc(
    settings: Settings, directories: Mapping[str, Path], compiler: str, writable: Mapping[str, Path]
) -> Path:
    """Write the file, named by its content, and return it.

    ``directories`` is what repository rules point at, by the variable that they read, and
    ``writable`` what actions may write below, by the ``--config`` that they need it for.
    """
    settings.cache.mkdir(parents=True, exist_ok=True)  # a mounted directory has to exist
    lines = [
        f"common --repo_env={variable}={path}" for variable, path in sorted(directories.items())
    ]
    lines += [
        # Part of every action's key; see host.compiler_identity.
        f"build --action_env=PYPTO_HOST_COMPILER={compiler}",
        f"build --host_action_env=PYPTO_HOST_COMPILER={compiler}",
        f"build --disk_cache={settings.cache / 'disk'}",
        f"build --experimental_disk_cache_gc_max_size={_DISK_CACHE_LIMIT}",
    ]
    lines += [
        f"build:{config} --sandbox_writable_path={path}"
        for config, path in sorted(writable.items())
    ]
    lines += [
        f"build --sandbox_add_mount_pair={path}"
        for path in hidden_by_sandbox(settings)
        if path.is_dir()
    ]
    text = "# Written by bazelw.\n" + "\n".join(lines) + "\n"
    path = settings.cache / "rc" / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.bazelrc"
    if not path.is_file():
        write_atomically(path, text)
    return path


def hidden_by_sandbox(settings: Settings) -> list[Path]:
    """What lies below /tmp, which Bazel's sandbox replaces by an empty directory."""
    tmp = Path("/tmp")  # noqa: S108 - the very directory that Bazel hides
    return sorted(path for path in {settings.cache, settings.home} if tmp in path.parents)
