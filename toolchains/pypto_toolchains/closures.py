"""Every file that the dynamic loader of glibc maps to run a native file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from pypto_toolchains.loader_search import ClosureUnknown, LibrarySearch, LoadedFile
from pypto_toolchains.process import ToolError, run_tool

PRELOAD_PATH = "/etc/ld.so.preload"

_MAX_FILES = 1000
_GLIBC_LOADER = re.compile(r"ld-linux[A-Za-z0-9_-]*\.so\.[0-9]+|ld64\.so\.[0-9]+|ld\.so\.1")
_LIST_SECONDS = 30.0
# A line of the loader's list; what the kernel provides has no path.
_MAPPED = re.compile(r"\s*(?:\S+ => )?(/.+) \(0x[0-9a-f]+\)")
_INTERPRETER_LIBRARY = re.compile(r"libpython[0-9.]*\.so[0-9.]*")


class Closure:
    """The files of one process, in the order in which the loader comes to them.

    It begins with an executable, and grows by what the running program loads (`add`). Where a
    library comes in several builds for different processors, each of them is in it.
    """

    def __init__(self, executable: str, search: LibrarySearch) -> None:
        """What is loaded to run `executable`, an absolute path. ClosureUnknown."""
        self._search = search
        self._loaded: list[LoadedFile] = []
        # By every name that a later request for it is recognised by.
        self._named: dict[str, LoadedFile] = {}
        if search.disk.exists(PRELOAD_PATH):
            raise ClosureUnknown(f"{PRELOAD_PATH} loads libraries into every tool; remove it")
        # The kernel tells a program where it lies without any link.
        main = self._load(search.disk.resolved(executable), None)
        self._form = main.facts.form
        interpreter = main.facts.interpreter
        if interpreter is not None:
            if not _GLIBC_LOADER.fullmatch(os.path.basename(interpreter)):
                raise ClosureUnknown(
                    f"{executable} is started by {interpreter}, which is not glibc's loader"
                )
            self._load(interpreter, main)
        elif main.facts.needed:
            raise ClosureUnknown(f"{executable} needs libraries but names no loader")
        self._complete(0)

    def add(self, library: str) -> None:
        """Count what the program maps when it loads `library`, an absolute path. ClosureUnknown.

        Interpreters load from a library of their own or from the executable; searching for the
        former covers the latter.
        """
        loaders = [
            one for one in self._loaded if _INTERPRETER_LIBRARY.match(os.path.basename(one.opened))
        ]
        begun = len(self._loaded)
        self._load(library, (loaders or self._loaded)[0])
        self._complete(begun)

    @property
    def files(self) -> tuple[str, ...]:
        """The paths by which the files are opened, each once."""
        return tuple(dict.fromkeys(one.opened for one in self._loaded))

    @property
    def sanitizer(self) -> tuple[str, str] | None:
        """A file that belongs to a sanitizer's build, and the name that shows it; or None."""
        for one in self._loaded:
            if one.facts.sanitizer is not None:
                return one.opened, one.facts.sanitizer
        return None

    def unforeseen(self, environ: Mapping[str, str]) -> str | None:
        """A file that the loader says it would map for the executable, and that is not here; None
        if there is none. The loader is run, the executable is not. ClosureUnknown."""
        main, *others = self.files
        loader = self._loaded[0].facts.interpreter
        if loader is None:
            return None
        try:
            listed = run_tool(
                [loader, "--list", main],
                cwd=Path("/"),
                environ=environ,
                timeout=_LIST_SECONDS,
                stage=f"list the libraries of {main}",
            ).stdout
        except ToolError as error:
            raise ClosureUnknown(str(error)) from error
        known = {os.path.realpath(path) for path in others}
        mapped = [found[1] for found in map(_MAPPED.fullmatch, listed.splitlines()) if found]
        return next((path for path in mapped if os.path.realpath(path) not in known), None)

    def _load(self, opened: str, loader: LoadedFile | None) -> LoadedFile:
        facts = self._search.facts(opened)
        if facts.unmodelled:
            raise ClosureUnknown(f"{opened} has {facts.unmodelled[0]}, which adds other libraries")
        one = LoadedFile(opened, os.path.dirname(opened), facts, loader)
        self._loaded.append(one)
        if len(self._loaded) > _MAX_FILES:
            raise ClosureUnknown(f"{self._loaded[0].opened} loads more than {_MAX_FILES} files")
        for name in (opened, facts.soname):
            if name is not None:
                self._named.setdefault(name, one)
        return one

    def _complete(self, begun: int) -> None:
        """Breadth first, as the loader does: what is found earlier decides by its name."""
        position = begun
        while position < len(self._loaded):
            one = self._loaded[position]
            for name in one.facts.needed:
                if name in self._named:
                    continue
                found = self._search.find(name, one, self._form)
                if not found:
                    raise ClosureUnknown(f"{one.opened} needs {name}, which is not found")
                for path in found:
                    if path not in self._named:
                        self._load(path, one)
                self._named.setdefault(name, self._named[found[-1]])
            position += 1
