"""The files of an extern kernel, gathered so that they can be built anywhere.

Starting from the declared sources, every include that is named literally is followed. What is
found below the directories that belong to the kernel is taken along, each file at the same place
relative to the others, so that the compiler finds in the copy what it would have found in the
original, and nothing else. Those directories are the one of each source, the include directories,
and the one of the declaring file if any of the former is below it.

Where that cannot be promised, the package has a `problem` and its paths are the absolute ones:
such a kernel can be built here and now, but nobody else may be given the result.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import os
import re
import stat
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pypto.ir.external import ExternalKernel, ExternalPart
from pypto.language.includes import Include, IncludeList, scan
from pypto_store.digest import Digest
from pypto_store.paths import path_fault
from pypto_store.records import RecordBuilder

DIRECTORY = "extern"

_MAX_FILES = 2000
_MAX_BYTES = 64 << 20
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)
_OTHER = re.compile(r"[^A-Za-z0-9_]+")

_scanned = functools.lru_cache(maxsize=256)(scan)

# What headers of the system include of each other. An include directory stands before those of
# the system, so a file of such a name there would be opened although no text of the user names it.
_SYSTEM_FILES = frozenset(
    """
    alloca.h arm_neon.h assert.h byteswap.h complex.h ctype.h emmintrin.h endian.h errno.h error.h
    fcntl.h features.h fenv.h float.h immintrin.h inttypes.h iso646.h libintl.h limits.h locale.h
    malloc.h math.h memory.h mm_malloc.h pthread.h sched.h semaphore.h setjmp.h signal.h stdalign.h
    stdarg.h stdatomic.h stdbool.h stdc-predef.h stddef.h stdint.h stdio.h stdlib.h string.h
    strings.h tgmath.h time.h uchar.h unistd.h wchar.h wctype.h x86intrin.h xmmintrin.h
    algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv chrono
    cinttypes climits clocale cmath codecvt compare complex concepts condition_variable coroutine
    csetjmp csignal cstdarg cstddef cstdint cstdio cstdlib cstring ctime cuchar cwchar cwctype deque
    exception execution filesystem format forward_list fstream functional future initializer_list
    iomanip ios iosfwd iostream istream iterator latch limits list locale map memory
    memory_resource mutex new numbers numeric optional ostream queue random ranges ratio regex
    scoped_allocator semaphore set shared_mutex source_location span sstream stack stdexcept
    stop_token streambuf string string_view syncstream system_error thread tuple type_traits
    typeindex typeinfo unordered_map unordered_set utility valarray variant vector version
    """.split()
)
_SYSTEM_DIRECTORIES = frozenset(
    """
    asm asm-generic backward bits debug experimental ext gnu linux parallel pstl sys tbb tr1 tr2
    """.split()
)


@dataclass(frozen=True, slots=True)
class PackagedFile:
    """A file: its path in an artifact, its bytes, and the user's file they were read from."""

    path: str
    data: bytes
    origin: str


@dataclass(frozen=True, slots=True)
class ExternPackage:
    """What an artifact gets of an extern kernel.

    Sources and include directories are relative to the artifact; with a `problem`, which names the
    file and the line, they are absolute and there are no files. `digest` covers contents, their
    places relative to each other and the dispatch, and no absolute place.
    """

    parts: tuple[ExternalPart, ...]
    include_dirs: tuple[str, ...]
    files: tuple[PackagedFile, ...]
    problem: str | None
    digest: Digest


def read_package(kernel: ExternalKernel, provided: Sequence[str] = ()) -> ExternPackage:
    """The files of `kernel` as they are now. Raises nothing: what is wrong is the `problem`.

    `provided` are the directories that every kernel is compiled with, which come before the
    kernel's own; their contents have an identity of their own.
    """
    walk = _Walk(kernel, provided)
    try:
        return walk.run()
    except _Unpackaged as error:
        read = [hashlib.sha256(data).digest() for data in walk.contents.values()]
        record = _record("pypto.unpackaged-extern/v1", kernel).sequence("contents", read)
        return ExternPackage(kernel.parts, kernel.include_dirs, (), str(error), record.finish())


class _Unpackaged(Exception):
    """Why the files cannot be taken along; the text names the file and the line."""


class _Trees:
    """Directories whose files keep their places relative to each other.

    Each directory is the root of a tree of its own until an include leads from one to another;
    then the two share a tree. An include by ``..`` may lead beyond a root and back: then the tree
    begins above it.
    """

    def __init__(self, directories: Iterable[str]) -> None:
        found = list(dict.fromkeys(directories))
        outermost = [
            path
            for path in found
            if not any(path != other and _is_below(path, other) for other in found)
        ]
        # In the order in which they, or what is below them, were named.
        self._roots = list(
            dict.fromkeys(next(r for r in outermost if _is_below(path, r)) for path in found)
        )
        self._tree = {root: index for index, root in enumerate(self._roots)}
        # What a tree has to have inside.
        self._inside = {index: [root] for index, root in enumerate(self._roots)}

    def root_of(self, path: str) -> str | None:
        """The root that `path` is below."""
        return next((root for root in self._roots if _is_below(path, root)), None)

    def lead(self, one: str, other: str, through: str) -> bool:
        """Note an include that leads from one root to another, or to the same, by a directory.

        All three keep their places relative to each other. False if that cannot be, because only
        the root of the file system is above them.
        """
        keep, drop = sorted((self._tree[one], self._tree[other]))
        if keep != drop:
            self._inside[keep] += self._inside.pop(drop)
            for root in self._roots:
                if self._tree[root] == drop:
                    self._tree[root] = keep
        self._inside[keep].append(through)
        return self._top(keep) != "/"

    def place(self, path: str) -> str:
        """Where a path below a root is in the package."""
        root = self.root_of(path)
        assert root is not None
        tree = self._tree[root]
        inside = os.path.relpath(path, self._top(tree))
        number = sorted(self._inside).index(tree)
        return str(number) if inside == "." else f"{number}/{inside}"

    def _top(self, tree: int) -> str:
        return os.path.commonpath(self._inside[tree])


class _Walk:
    """One reading of all files of a kernel; `contents` has what was read, by absolute path."""

    def __init__(self, kernel: ExternalKernel, provided: Sequence[str]) -> None:
        self.contents: dict[str, bytes] = {}
        self._kernel = kernel
        self._provided = provided
        own = [os.path.dirname(part.source) for part in kernel.parts]
        own += kernel.include_dirs
        home = kernel.home
        if home is not None and home != "/" and any(_is_below(path, home) for path in own):
            own.append(home)
        self._trees = _Trees(own)
        self._real: set[str] = set()  # paths that are known to be no links
        self._size = 0

    def run(self) -> ExternPackage:
        for directory in self._kernel.include_dirs:
            self._check_names(directory)
        pending = deque(part.source for part in self._kernel.parts)
        while pending:
            path = pending.popleft()
            if path not in self.contents:
                found = self._read(path)
                pending += self._included(path, found)
        return self._package()

    # -- following -----------------------------------------------------------------------------

    def _read(self, path: str) -> IncludeList:
        root = self._trees.root_of(path)
        assert root is not None
        self._check_links(path, root)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                status = os.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode):
                    raise _Unpackaged(f"{path}: is no regular file")
                self._size += status.st_size
                if len(self.contents) >= _MAX_FILES or self._size > _MAX_BYTES:
                    raise _Unpackaged(
                        f"{path}: an extern kernel has at most {_MAX_FILES} files of "
                        f"{_MAX_BYTES >> 20} MiB together"
                    )
                parts = []
                while part := os.read(descriptor, 1 << 20):
                    parts.append(part)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise _Unpackaged(f"{path}: cannot be read: {error.strerror}") from error
        data = self.contents[path] = b"".join(parts)
        found = _scanned(data)
        if found.obstacle is not None:
            raise _Unpackaged(f"{path}:{found.obstacle.line}: {found.obstacle.reason}")
        return found

    def _included(self, path: str, found: IncludeList) -> list[str]:
        resolved = [self._resolve(path, include) for include in found.includes]
        return [name for name in resolved if name is not None]

    def _resolve(self, path: str, include: Include) -> str | None:
        """The file that an include in `path` opens; None for one that is not the kernel's."""
        steps = [step for step in include.name.split("/") if step not in ("", ".")]
        upward = next((i for i, step in enumerate(steps) if step != ".."), len(steps))
        if include.name.startswith("/"):
            raise _at(
                path, include, "is absolute; include it by a relative path or from include_dirs"
            )
        if ".." in steps[upward:]:
            # The directory that is only passed through might not be in the package.
            raise _at(path, include, "goes into a directory and back; name the file directly")
        try:
            beside = f"{os.path.dirname(path)}/{include.name}"
            if include.quoted and _is_file(beside):
                return self._beside(path, include, os.path.normpath(beside), upward)
            for directory in self._kernel.include_dirs:
                found = f"{directory}/{include.name}"
                if _is_file(found) and not self._is_provided(include.name):
                    if upward:
                        raise _at(path, include, "leads out of an include directory")
                    return os.path.normpath(found)
            if include.quoted and not include.query and not self._is_provided(include.name):
                raise _at(
                    path,
                    include,
                    "is neither beside this file nor in include_dirs, so only the compiler knows "
                    "which file that is; write <...> for a header of the system",
                )
        except OSError as error:
            raise _at(path, include, f"cannot be looked for: {error.strerror}") from error
        if upward:
            raise _at(path, include, "leads out of a directory of the system")
        return None

    def _beside(self, path: str, include: Include, found: str, upward: int) -> str:
        """A file that was found from the directory of the one that includes it."""
        own, root = self._trees.root_of(path), self._trees.root_of(found)
        assert own is not None
        if root is None:
            raise _at(
                path,
                include,
                "leads out of the directories of this kernel; name its directory in include_dirs",
            )
        if upward:
            through = os.path.normpath(os.path.dirname(path) + "/.." * upward)
            if not self._trees.lead(own, root, through):
                raise _at(path, include, "leads to the root of the file system")
        return found

    def _is_provided(self, name: str) -> bool:
        return any(_is_file(f"{directory}/{name}") for directory in self._provided)

    # -- checking ------------------------------------------------------------------------------

    def _check_links(self, path: str, root: str) -> None:
        """A link may lead to another file tomorrow, and ``..`` beyond it is not what it seems."""
        steps = os.path.relpath(path, root).split("/")
        current = root
        for step in steps:
            current = f"{current.rstrip('/')}/{step}"
            if current in self._real:
                continue
            try:
                mode = os.lstat(current).st_mode
            except OSError as error:
                raise _Unpackaged(f"{current}: cannot be read: {error.strerror}") from error
            if stat.S_ISLNK(mode):
                raise _Unpackaged(f"{current}: is a symbolic link")
            self._real.add(current)

    def _check_names(self, directory: str) -> None:
        try:
            names = os.listdir(directory)
        except OSError as error:
            raise _Unpackaged(f"{directory}: cannot be read: {error.strerror}") from error
        for name in sorted(_SYSTEM_FILES.union(_SYSTEM_DIRECTORIES).intersection(names)):
            path = f"{directory}/{name}"
            if os.path.isdir(path) == (name in _SYSTEM_DIRECTORIES):
                raise _Unpackaged(
                    f"{path}: headers of the system may take what is here for theirs; rename it "
                    "or move it into a directory"
                )

    # -- the result ----------------------------------------------------------------------------

    def _package(self) -> ExternPackage:
        kernel = self._kernel
        places = {path: self._trees.place(path) for path in self.contents}
        for path, place in places.items():
            if fault := path_fault(place):
                raise _Unpackaged(f"{path}: {fault}")
        # Others would not exist in the package.
        used = [
            directory
            for directory in dict.fromkeys(kernel.include_dirs)
            if any(_is_below(path, directory) for path in self.contents)
        ]
        sources = [places[part.source] for part in kernel.parts]
        include_dirs = [self._trees.place(directory) for directory in used]
        ordered = sorted((place, path) for path, place in places.items())
        record = _record("pypto.extern/v1", kernel)
        record.sequence("sources", sources)
        record.sequence("include_dirs", include_dirs)
        record.sequence(
            "files",
            [(place, hashlib.sha256(self.contents[path]).digest()) for place, path in ordered],
        )
        digest = record.finish()
        stem = os.path.splitext(os.path.basename(kernel.parts[0].source))[0]
        top = f"{DIRECTORY}/{_OTHER.sub('_', stem)[:40]}_{digest.hex[:16]}"
        return ExternPackage(
            parts=tuple(
                ExternalPart(part.core_type, f"{top}/{place}")
                for part, place in zip(kernel.parts, sources, strict=True)
            ),
            include_dirs=tuple(f"{top}/{place}" for place in include_dirs),
            files=tuple(
                PackagedFile(f"{top}/{place}", self.contents[path], path) for place, path in ordered
            ),
            problem=None,
            digest=digest,
        )


def _at(path: str, include: Include, reason: str) -> _Unpackaged:
    return _Unpackaged(f"{path}:{include.line}: {include.spelling} {reason}")


def _record(name: str, kernel: ExternalKernel) -> RecordBuilder:
    record = RecordBuilder(name)
    record.sequence("core_types", [part.core_type for part in kernel.parts])
    record.boolean("dual_aiv_dispatch", kernel.dual_aiv_dispatch)
    return record


def _is_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def _is_file(path: str) -> bool:
    """Whether the compiler would open `path`; OSError where that cannot be told.

    It passes over directories. Anything else there, it opens.
    """
    try:
        return not stat.S_ISDIR(os.stat(path).st_mode)
    except OSError as error:
        if error.errno in _NOT_THERE:
            return False
        raise
