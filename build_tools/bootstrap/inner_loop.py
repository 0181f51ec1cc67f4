"""Links what Bazel built into the source tree, so that plain pytest and python find it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_PACKAGE = Path("pypto") / "pypto"
_OUTPUTS = ("_native.so", "_sdk")


def link_outputs(workspace: Path) -> None:
    """Link the native module and the SDK below ``bazel-bin`` into the package's directory.

    What is there is replaced only if it is a link: a file or directory was put there by someone.
    A tree that cannot be written is left as it is.
    """
    for name in _OUTPUTS:
        built = workspace / "bazel-bin" / _PACKAGE / name
        place = workspace / _PACKAGE / name
        target = Path("..") / ".." / "bazel-bin" / _PACKAGE / name
        if not built.exists() or (place.exists() and not place.is_symlink()):
            continue
        if place.is_symlink() and place.readlink() == target:
            continue
        staged = place.with_name(f".{name}.{os.getpid()}")
        with suppress(OSError):
            staged.symlink_to(target)
            staged.replace(place)
