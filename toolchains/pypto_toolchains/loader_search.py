"""Where the dynamic loader of glibc looks for a library.

Its rules are followed, with one difference: where what it takes depends on the processor, or on
directories that are built into it, all that it could take is taken. So the answer is the same on
every processor, and never less than what is loaded.

Everything is asked through a `Disk`: also where a library was looked for and not found, because a
file that appears there would be loaded instead.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pypto_toolchains.disk import Disk
from pypto_toolchains.elf_dynamic import DynamicFacts, ElfForm, ElfUnreadable, read_dynamic
from pypto_toolchains.loader_cache import (
    CACHE_PATH,
    LoaderCache,
    LoaderCacheUnreadable,
    read_loader_cache,
)

# By the machine's name in pyelftools: what $LIB and the built-in directories have for it.
_MULTIARCH = {"EM_X86_64": ("lib/x86_64-linux-gnu",), "EM_AARCH64": ("lib/aarch64-linux-gnu",)}
_PLAIN_LIBRARIES = ("lib64", "lib")
_HARDWARE = "glibc-hwcaps"
# Directories below each one searched, which loaders before glibc 2.37 go into by the processor.
_LEGACY_CAPABILITIES = ("tls", "x86_64", "haswell", "avx512_1", "xeon_phi", "aarch64", "atomics")

_TOKEN = re.compile(r"\$(?:\{([A-Za-z_]+)\}|([A-Za-z_]+))")


class ClosureUnknown(Exception):
    """What would be loaded cannot be told; the text names the file and says why."""


@dataclass(frozen=True, slots=True, eq=False)
class LoadedFile:
    """A file that is mapped: the path it is opened by, the directory that $ORIGIN stands for in
    it, what it says, and who asked for it."""

    opened: str
    origin: str
    facts: DynamicFacts
    loader: LoadedFile | None


def library_directories(library_path: str | None) -> tuple[str, ...]:
    """The directories of a value of LD_LIBRARY_PATH.

    ClosureUnknown for entries that depend on the working directory or on who is loaded.
    """
    entries = re.split("[:;]", library_path) if library_path else []
    for entry in entries:
        if not entry.startswith("/") or "$" in entry:
            raise ClosureUnknown(
                f"LD_LIBRARY_PATH has the entry {entry!r}; give absolute directories only"
            )
    return tuple(entries)


class LibrarySearch:
    """The loader's search with one value of LD_LIBRARY_PATH; remembers what it has read."""

    def __init__(self, library_path: str | None, disk: Disk) -> None:
        self.disk = disk
        self._library_path = library_directories(library_path)
        self._facts: dict[str, DynamicFacts] = {}
        self._known_cache: LoaderCache | None = None

    def facts(self, path: str) -> DynamicFacts:
        """What the ELF file at `path` says. ClosureUnknown."""
        found = self._facts.get(path)
        if found is None:
            try:
                self.disk.sha256(path)  # for whoever watches what this rests on
                found = self._facts[path] = read_dynamic(path)
            except (OSError, ElfUnreadable) as error:
                raise ClosureUnknown(f"the loader would fail on {path}: {error}") from error
        return found

    def find(self, name: str, needing: LoadedFile, form: ElfForm) -> tuple[str, ...]:
        """What could be loaded for the library `name` of `needing`, in a process of `form`.

        The last one is what is loaded wherever no earlier one suits the processor. A name with a
        slash is a path. Any other is searched in, one after the other, the RPATH of `needing` and
        of those that loaded it, down to the executable (none of them if `needing` has a RUNPATH);
        LD_LIBRARY_PATH; the RUNPATH of `needing`; the cache; the built-in directories. Files for
        another machine are passed over. ClosureUnknown.
        """
        if "/" in name:
            paths = _expanded(name, needing)
            return tuple(path for path in paths if self._suits(path, form))
        found: list[str] = []
        for directories in self._directories(needing):
            if self._in_directories(directories, name, form, found):
                return tuple(found)
        for path, for_some_processors in self._cache().get(name, ()):
            if self._suits(path, form):
                found.append(path)
                if not for_some_processors:
                    return tuple(found)
        # Their order is the loader's secret, so all of them count.
        for directory in _built_in_directories(form):
            self._in_directories((directory,), name, form, found)
        return tuple(dict.fromkeys(found))

    def _directories(self, needing: LoadedFile) -> Iterator[tuple[str, ...]]:
        if needing.facts.runpath is None:
            loader: LoadedFile | None = needing
            while loader is not None:
                yield _listed(loader.facts.rpath, loader)
                loader = loader.loader
        yield self._library_path
        yield _listed(needing.facts.runpath, needing)

    def _in_directories(
        self, directories: tuple[str, ...], name: str, form: ElfForm, found: list[str]
    ) -> bool:
        """Add what is there; whether one of them is good for every processor."""
        for directory in directories:
            for variant in self._variants(directory):
                if self._suits(f"{variant}/{name}", form):
                    found.append(f"{variant}/{name}")
            if self._suits(f"{directory}/{name}", form):
                found.append(f"{directory}/{name}")
                return True
        return False

    def _variants(self, directory: str) -> Iterator[str]:
        """The directories below one that hold libraries for some processors only."""
        names = self.disk.listing(f"{directory}/{_HARDWARE}")
        for name in names.split("\0") if names else ():
            yield f"{directory}/{_HARDWARE}/{name}"
        yield from self._legacy_variants(directory, _LEGACY_CAPABILITIES)

    def _legacy_variants(self, directory: str, names: tuple[str, ...]) -> Iterator[str]:
        for name in names:
            below = f"{directory}/{name}"
            if self.disk.exists(below):
                others = tuple(other for other in names if other != name)
                yield from self._legacy_variants(below, others)
                yield below

    def _cache(self) -> LoaderCache:
        if self._known_cache is None:
            self._known_cache = {}
            if self.disk.exists(CACHE_PATH):
                try:
                    self.disk.sha256(CACHE_PATH)  # for whoever watches what this rests on
                    self._known_cache = read_loader_cache(CACHE_PATH)
                except (OSError, LoaderCacheUnreadable) as error:
                    raise ClosureUnknown(f"cannot read the loader's cache: {error}") from error
        return self._known_cache

    def _suits(self, path: str, form: ElfForm) -> bool:
        """Whether there is a file at `path` that a process of `form` would load."""
        return self.disk.exists(path) and self.facts(path).form == form


def _listed(search_path: str | None, owner: LoadedFile) -> tuple[str, ...]:
    """The directories of an RPATH or RUNPATH of `owner`."""
    if search_path is None:
        return ()
    every = (_expanded(entry, owner) for entry in search_path.split(":"))
    return tuple(itertools.chain.from_iterable(every))


def _expanded(text: str, owner: LoadedFile) -> tuple[str, ...]:
    """The absolute paths that `text` can stand for in `owner`."""
    names = {token[1] or token[2] for token in _TOKEN.finditer(text)}
    if not names <= {"ORIGIN", "LIB"}:
        raise ClosureUnknown(
            f"{owner.opened} looks for libraries in {text!r}, which depends on the processor"
        )
    libraries = _libraries(owner.facts.form) if "LIB" in names else ("",)
    paths = tuple(
        _TOKEN.sub(lambda token: owner.origin if "ORIGIN" in token[0] else library, text)  # noqa: B023
        for library in libraries
    )
    if not all(path.startswith("/") for path in paths):
        raise ClosureUnknown(
            f"{owner.opened} looks for libraries in {text!r}, which depends on the directory "
            f"that it is started in"
        )
    return paths


def _libraries(form: ElfForm) -> tuple[str, ...]:
    return (*_MULTIARCH.get(form.machine, ()), *_PLAIN_LIBRARIES)


def _built_in_directories(form: ElfForm) -> Iterator[str]:
    for library in _libraries(form):
        yield f"/{library}"
        yield f"/usr/{library}"
