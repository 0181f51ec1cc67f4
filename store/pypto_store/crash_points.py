"""Named points at which the fault tests kill the process.

Every step that changes the disk is followed by one. In production no hook is set and reaching a
point costs one comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

POINTS: Mapping[str, str] = MappingProxyType(
    {
        "store.marker_staged": "the STORE marker is written under a temporary name",
        "store.marker": "the root is marked as a store",
        "build.leased": "the shared store lock is held",
        "build.locked": "the key's lock is held; nothing was looked at",
        "build.built": "the builder returned; its directory is private",
        "publish.directories": "the slot's parent directories exist",
        "publish.swept": "older staging directories of the key are gone",
        "publish.staging": "an empty staging directory exists",
        "publish.payload": "one payload file is staged (reached once per file)",
        "publish.written": "every payload file is staged, none is known to be durable",
        "publish.validated": "the staged tree was read back and is right",
        "publish.marker": "the manifest is written, nothing is known to be durable",
        "publish.files_synced": "every new file is durable, the manifest last",
        "publish.tree_synced": "the staged directories are durable",
        "publish.ancestors_synced": "new directories above the slot are durable",
        "publish.renamed": "the entry is visible, its name not yet durable",
        "publish.slot_synced": "the entry is visible and durable",
        "publish.adopted": "one new file is in the blob index (reached once per file)",
        "publish.done": "publication is complete; the locks are still held",
        "build.released": "the key's lock is released",
    }
)

# What a remote adds to a build.
REMOTE_POINTS: Mapping[str, str] = MappingProxyType(
    {
        "fetch.asked": "an empty private directory exists; the remote was not asked",
        "fetch.missed": "the remote has nothing; the private directory is gone",
        "fetch.arrived": "an entry from the remote is in the private directory, verified",
        "fetch.kept": "it has its manifest there, because it cannot go into the store",
        "offer.done": "an entry just published was offered to the remote",
    }
)

# What offline cleaning does to a store that it has for itself.
CLEANING_POINTS: Mapping[str, str] = MappingProxyType(
    {
        "fsck.noted": "the note on one damaged thing is written; the thing is where it was",
        "fsck.moved": "one damaged thing is in quarantine (reached once per thing)",
        "gc.locked": "the exclusive store lock is held; nothing was looked at",
        "gc.emptied": "what an earlier run left in the trash is gone",
        "gc.trashed": "one dropped slot is in the trash (reached once per slot)",
        "gc.key": "every slot of one dropped key is in the trash (reached once per key)",
        "gc.removed": "one thing in the trash is gone (reached once per thing)",
        "gc.blob": "one blob that nothing names is out of the index (reached once per blob)",
        "gc.record": "one record of evidence or of a probe is gone (reached once per record)",
        "gc.done": "cleaning is complete; the lock is still held",
    }
)

# What carrying entries from store to store adds; an import also reaches what publishing reaches.
BUNDLE_POINTS: Mapping[str, str] = MappingProxyType(
    {
        "output.complete": "a command's file is complete and durable under a temporary name",
        "output.named": "that file has its name",
        "import.index": "a bundle's index is read and right; nothing is written",
        "import.blob": "one content is outside the store (reached once per content)",
        "import.verified": "the whole bundle is read and right; nothing is in the store",
        "import.entry": "one entry of a bundle is in the store or refused (once per entry)",
    }
)

# What `push` and `pull` add; a pull also reaches what publishing reaches.
FLEET_POINTS: Mapping[str, str] = MappingProxyType(
    {
        "push.entry": "one entry is at the remote, or cannot be (reached once per entry)",
        "push.listed": "every entry is at the remote, and on the list there",
        "pull.entry": "one entry of a list is in the store, or is not to be had (once per entry)",
    }
)

_TABLES = (POINTS, REMOTE_POINTS, CLEANING_POINTS, BUNDLE_POINTS, FLEET_POINTS)

Hook = Callable[[str], None]
_hook: Hook | None = None


def reach(name: str) -> None:
    """Tell the hook, if any, that execution has come to the point `name`."""
    if _hook is not None:
        if not any(name in table for table in _TABLES):
            raise LookupError(f"crash point {name!r} is not in the table")
        _hook(name)


@contextmanager
def armed(hook: Hook) -> Iterator[None]:
    """Call `hook` at every point reached meanwhile, in this process (for tests only)."""
    global _hook
    previous, _hook = _hook, hook
    try:
        yield
    finally:
        _hook = previous
