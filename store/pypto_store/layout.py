"""Where things are under a root.

    <root>/STORE                                           marks a root; the layout's version
    <root>/cas/<2 hex>/<sha256>[.x][.2]                    inodes by content (.x: executable)
    <root>/artifacts/v1/<environment>/<key>/generated/     one entry
    <root>/artifacts/v1/<environment>/<key>/ready/<spec>/  one entry
    <root>/artifacts/v1/<environment>/<key>/.tmp.*         an entry being published
    <root>/locks/<key>.lock, locks/store.lock              never unlinked
    <root>/tools/                                          what probes said of compilers; not ours
    <root>/facts/                                          what kernels' texts say; not ours
    <root>/evidence/<component's digest>.json              readable inputs of keys (see evidence.py)
    <root>/quarantine/<time>/                              what fsck found damaged, with notes
    <root>/trash/                                          what gc has dropped and is removing

Marker history: "pypto-store 1", the first. Directories are 0700, files 0600 (0700 if executable).
A root with the set-group-ID bit is shared with its group: what is made below it gets the root's
permissions for the group, whatever the umask, but the group may write no payload file.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pypto_store.keys import ArtifactKey, ArtifactSpec, State

if TYPE_CHECKING:
    from pypto_store.digest import Digest

MARKER_NAME = "STORE"
MARKER = b"pypto-store 1\n"
STAGING_PREFIX = ".tmp."
DIRECTORY_MODE = 0o700
FILE_MODE = 0o600
EXECUTABLE_MODE = 0o700


class UnknownLayout(OSError):
    """The root is marked with something else than a layout this version knows."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths of one resolved root (an absolute directory, which need not exist)."""

    root: str

    @property
    def marker(self) -> str:
        """The file that marks the root."""
        return f"{self.root}/{MARKER_NAME}"

    @property
    def artifacts(self) -> str:
        """The directory of all environments."""
        return f"{self.root}/artifacts/v1"

    @property
    def cas(self) -> str:
        """The blob index."""
        return f"{self.root}/cas"

    @property
    def locks(self) -> str:
        """The directory of all lock files."""
        return f"{self.root}/locks"

    @property
    def tools(self) -> str:
        """The directory of probe records."""
        return f"{self.root}/tools"

    @property
    def evidence(self) -> str:
        """The directory of evidence records."""
        return f"{self.root}/evidence"

    def evidence_of(self, component: Digest) -> str:
        """The evidence record of a component's digest."""
        return f"{self.root}/evidence/{component.hex}.json"

    @property
    def quarantine(self) -> str:
        """Where damage is put aside."""
        return f"{self.root}/quarantine"

    @property
    def trash(self) -> str:
        """Where dropped entries wait to be removed."""
        return f"{self.root}/trash"

    @property
    def store_lock(self) -> str:
        """Shared by everyone who may write, exclusive for whoever cleans up."""
        return f"{self.root}/locks/store.lock"

    def key_lock(self, key: ArtifactKey) -> str:
        """The lock of everything under one key."""
        return f"{self.root}/locks/{key.digest.hex}.lock"

    def key_directory(self, key: ArtifactKey) -> str:
        """The directory of everything under one key."""
        return f"{self.root}/artifacts/v1/{key.environment.hex}/{key.digest.hex}"

    def generated(self, key: ArtifactKey) -> str:
        """The GENERATED slot of a key."""
        return f"{self.key_directory(key)}/{State.GENERATED.value}"

    def ready_slots(self, key: ArtifactKey) -> str:
        """The directory of the READY slots of a key."""
        return f"{self.key_directory(key)}/{State.READY.value}"

    def slot(self, key: ArtifactKey, spec: ArtifactSpec) -> str:
        """The slot of one specification."""
        if spec.state is State.GENERATED:
            return self.generated(key)
        return f"{self.ready_slots(key)}/{spec.digest.hex}"

    def blob(self, sha256: str, executable: bool) -> str:
        """The name of a content in the blob index."""
        return f"{self.root}/cas/{sha256[:2]}/{sha256}{'.x' if executable else ''}"

    def second_blob(self, sha256: str, executable: bool) -> str:
        """The name of another inode of the same content, for entries that must not share the first.

        Both states of a key hold some content, and share no inode: two serve all keys.
        """
        return f"{self.blob(sha256, executable)}.2"


def group_bits(directory: str) -> int:
    """What a group may do with things made in `directory`, as permission bits (0 to 0o070).

    Nothing, unless the directory hands its group on (set-group-ID): then what the group may do
    with the directory itself. OSError if that cannot be found out.
    """
    try:
        mode = os.stat(directory).st_mode
    except FileNotFoundError:
        return 0
    return mode & 0o070 if mode & stat.S_ISGID else 0


def make_directory(directory: str, group: int = 0) -> None:
    """Create one directory that its owner, and the group as far as `group` says, may use."""
    os.mkdir(directory, DIRECTORY_MODE | group)
    if group:
        # The umask took away what the root's owner gave. The bit itself is inherited.
        os.chmod(directory, stat.S_ISGID | DIRECTORY_MODE | group)


def make_file(path: str, flags: int, mode: int, group: int = 0) -> int:
    """Create a file; its descriptor. The group gets of `group` what `mode` gives the owner."""
    mode |= group & mode >> 3
    descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, mode)
    if group:
        os.fchmod(descriptor, mode)
    return descriptor


def make_directories(directory: str, group: int = 0) -> list[str]:
    """Create what is missing of an absolute directory; the new ones, outermost first."""
    missing = []
    while not os.path.isdir(directory):
        missing.append(directory)
        directory = os.path.dirname(directory)
    created = []
    for path in reversed(missing):
        try:
            make_directory(path, group)
        except FileExistsError:
            if not os.path.isdir(path):  # a file of that name; otherwise someone was faster
                raise
        else:
            created.append(path)
    return created


def lies_inside(path: str, root: str) -> bool:
    """Whether `path` is `root` or something below it, links followed."""
    top = os.path.realpath(root)
    return os.path.commonpath((os.path.realpath(path), top)) == top


def linked_root(root: str) -> str | None:
    """Where the files of a marked root are: `root` itself, or the directory that its marker's
    target is in, where the marker is a symbolic link. None for a root without a marker.

    A build system may show a directory as a tree of links, one for each file; what is stored lies
    elsewhere then. OSError if that cannot be found out, or the link leads nowhere.
    """
    marker = f"{root}/{MARKER_NAME}"
    try:
        status = os.lstat(marker)
    except FileNotFoundError:
        return None
    if not stat.S_ISLNK(status.st_mode):
        return root
    return os.path.dirname(os.path.realpath(marker, strict=True))


def resolve(root: str) -> tuple[Layout, bool]:
    """The layout of `root` and whether it is marked; OSError if that cannot be found out.

    Links are followed as `linked_root` does. UnknownLayout, an OSError, for a marker of another
    version.
    """
    root = os.path.abspath(root)
    found_root = linked_root(root)
    if found_root is None:
        return Layout(root), False
    marker = f"{found_root}/{MARKER_NAME}"
    descriptor = os.open(marker, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        found = os.read(descriptor, 256)
        while len(found) < len(MARKER) and (more := os.read(descriptor, 256)):
            found += more
    finally:
        os.close(descriptor)
    if found != MARKER:
        raise UnknownLayout(
            f"{marker} says {found[:40]!r}, this version knows {MARKER!r}; use another root"
        )
    return Layout(found_root), True
