"""A kernel whose code is C++ of the user's, as a program names it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExternalPart:
    """What one core type (``"aic"`` or ``"aiv"``) runs: the absolute path of a C++ file."""

    core_type: str
    source: str


@dataclass(frozen=True, slots=True)
class ExternalKernel:
    """The files of an extern kernel and how they are dispatched.

    One part, or one for each core type: these run at the same time, as one task. With
    ``dual_aiv_dispatch`` both vector cores run the vector part. ``include_dirs`` are absolute
    paths in the order of the search. ``home`` is the directory of the file that declares the
    kernel, None if that is no file. Paths say where the files are and are no part of any identity.
    """

    parts: tuple[ExternalPart, ...]
    dual_aiv_dispatch: bool = False
    include_dirs: tuple[str, ...] = ()
    home: str | None = None
