"""The text of the files kernels are defined in, as it was when they were imported."""

from __future__ import annotations

import importlib.util
import linecache
import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import CodeType


@dataclass(frozen=True, slots=True)
class ModuleText:
    """The lines of one file, without their ends. `on_disk` is false for an interactive cell."""

    filename: str
    lines: tuple[str, ...]
    on_disk: bool


class ModuleTexts:
    """Reads each module file once, when the first kernel in it is decorated, and keeps the text.

    A file is read again only if it is another one (by inode, size or modification time) when a
    further kernel of it is decorated: the module was edited and reloaded.
    """

    def __init__(self) -> None:
        self._texts: dict[str, tuple[tuple[int, int, int] | None, ModuleText]] = {}

    def of(self, code: CodeType, module_globals: Mapping[str, object]) -> ModuleText | None:
        """The text that `code` was compiled from, or None if there is no such text."""
        filename = code.co_filename
        stamp = _stamp(filename)
        kept = self._texts.get(filename)
        if kept is not None and kept[0] == stamp and stamp is not None:
            return kept[1]
        text = _read(filename) if stamp is not None else _from_loader(filename, module_globals)
        if text is not None:
            self._texts[filename] = (stamp, text)
        return text


def read_again(text: ModuleText) -> ModuleText | None:
    """The same file's text as it is now, or None if it cannot be read."""
    return _read(text.filename) if text.on_disk else text


def _stamp(filename: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(filename)
    except (OSError, ValueError):
        return None
    return (status.st_ino, status.st_size, status.st_mtime_ns)


def _read(filename: str) -> ModuleText | None:
    try:
        fd = os.open(filename, os.O_RDONLY | os.O_CLOEXEC)
        try:
            parts = []
            while part := os.read(fd, 1 << 20):
                parts.append(part)
        finally:
            os.close(fd)
        source = b"".join(parts)
        plain = b"coding" not in source[:512] and not source.startswith(b"\xef\xbb\xbf")
        text = source.decode("utf-8") if plain else importlib.util.decode_source(source)
    except (OSError, SyntaxError, UnicodeDecodeError):
        return None
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    # Only a line feed ends a line for the compiler; str.splitlines knows ten more.
    return ModuleText(filename, tuple(text.split("\n")), on_disk=True)


def _from_loader(filename: str, module_globals: Mapping[str, object]) -> ModuleText | None:
    """Interactive cells and archives have no file; linecache knows how to ask for them."""
    lines = linecache.getlines(filename, dict(module_globals))
    if not lines:
        return None
    return ModuleText(filename, tuple("".join(lines).split("\n")), on_disk=False)
