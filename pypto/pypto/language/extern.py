"""What ``pl.jit.extern`` is told, checked: C++ files of a kernel, and how they are dispatched."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pypto.ir.external import ExternalKernel, ExternalPart

StrPath = str | os.PathLike[str]

_SINGLE = ("aiv", "aic")
_MIXED = "mixed"
# A file is named in the text of another one, where these cannot stand.
_UNSPEAKABLE = frozenset('"\n\r\0\\')


def external_kernel(
    *,
    core_type: str,
    source: StrPath | None,
    aic_source: StrPath | None,
    aiv_source: StrPath | None,
    dual_aiv_dispatch: bool,
    include_dirs: Sequence[StrPath],
    stub: str | None,
    where: str,
) -> ExternalKernel:
    """The kernel that the arguments describe.

    ``stub`` is the absolute path of the file that declares it, from whose directory relative paths
    count; None if there is none. ``where`` is the place of the declaration, for messages.

    Raises ValueError for a core type that is none, sources that do not go with it, and a file or
    directory that is not there; TypeError for an argument of the wrong type.
    """
    home = None if stub is None else str(Path(stub).parent)
    if core_type not in (*_SINGLE, _MIXED):
        raise ValueError(f"{where}: core_type must be 'aiv', 'aic' or 'mixed', not {core_type!r}")
    if not isinstance(dual_aiv_dispatch, bool):
        raise TypeError(
            f"{where}: dual_aiv_dispatch must be True or False, not {dual_aiv_dispatch!r}"
        )
    if core_type == _MIXED:
        if source is not None or aic_source is None or aiv_source is None:
            raise ValueError(
                f"{where}: an extern kernel with core_type='mixed' takes aic_source= and "
                "aiv_source=, which may be the same file, and no source="
            )
        given = {"aic": ("aic_source", aic_source), "aiv": ("aiv_source", aiv_source)}
    else:
        if source is None or aic_source is not None or aiv_source is not None:
            raise ValueError(
                f"{where}: an extern kernel with core_type={core_type!r} takes source= alone; "
                "aic_source= and aiv_source= go with core_type='mixed'"
            )
        if dual_aiv_dispatch:
            raise ValueError(f"{where}: dual_aiv_dispatch goes with core_type='mixed' alone")
        given = {core_type: ("source", source)}
    if isinstance(include_dirs, str | bytes | os.PathLike):
        raise TypeError(f"{where}: include_dirs must be a list of directories, not one")
    parts = []
    for core, (name, path) in given.items():
        found = _located(name, path, home, where)
        if not Path(found).is_file():
            raise ValueError(f"{where}: {name} {_shown(path)} is not a file: {found}")
        parts.append(ExternalPart(core, found))
    directories = []
    for path in include_dirs:
        found = _located("include_dirs", path, home, where)
        if not Path(found).is_dir():
            raise ValueError(f"{where}: include_dirs: {_shown(path)} is not a directory: {found}")
        directories.append(found)
    return ExternalKernel(tuple(parts), dual_aiv_dispatch, tuple(directories), home)


def _located(name: str, path: object, home: str | None, where: str) -> str:
    """The absolute path of an argument; ``..`` is taken by the name, not through links."""
    if not isinstance(path, str | os.PathLike) or not isinstance(text := os.fspath(path), str):
        raise TypeError(f"{where}: {name} must be a path, not {path!r}")
    if _UNSPEAKABLE.intersection(text) or not text or not _is_utf8(text):
        raise ValueError(
            f"{where}: {name} {text!r} cannot be named in C++: use a path without quotes, "
            "backslashes and line breaks"
        )
    if not Path(text).is_absolute():
        if home is None:
            raise ValueError(
                f"{where}: {name} {text!r} is relative, but the kernel is not declared in a file; "
                "use an absolute path"
            )
        text = f"{home}/{text}"
    # Two slashes at the beginning stay two otherwise.
    return os.path.normpath("/" + text.lstrip("/"))


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(path: StrPath) -> str:
    return repr(os.fspath(path))
