"""What a remote is asked for: into a private directory, and from there into the store.

    ask       the remote fills a directory of ours, outside of the store, and vouches for it
    publish   as for a build, but only what makes the very manifest that arrived
    keep      where it cannot be published, the directory becomes the caller's, as a whole entry

Imported only where there is a remote, on a miss.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pypto_store import crash_points
from pypto_store.build_directory import BuildDirectory
from pypto_store.entry import Entry, write_all
from pypto_store.layout import FILE_MODE, make_file
from pypto_store.outcomes import Failure, Fetched, Hit, Invalid, StorageError, reason_of
from pypto_store.paths import MANIFEST_NAME
from pypto_store.publication import SlotTaken, publish
from pypto_store.staging import WRITE_NEW, UnfitPayload

if TYPE_CHECKING:
    from pypto_store.keys import ArtifactKey, ArtifactSpec
    from pypto_store.manifest import Manifest
    from pypto_store.remote_store import Remote
    from pypto_store.store import ArtifactStore


def ask(remote: Remote, key: ArtifactKey, spec: ArtifactSpec, parent: str) -> Arrival | None:
    """What the remote has, in a new directory below `parent`; None if nothing can be had.

    A directory that cannot be written is no error yet: a build will say so.
    """
    try:
        directory = BuildDirectory(parent, key.digest.hex[:16])
    except OSError:
        return None
    try:
        crash_points.reach("fetch.asked")
        manifest = remote.fetch(key, spec, directory.path)
    except OSError:
        manifest = None
    except BaseException:
        directory.discard()
        raise
    if manifest is None:
        directory.discard()
        crash_points.reach("fetch.missed")
        return None
    crash_points.reach("fetch.arrived")
    return Arrival(directory, manifest)


class Arrival:
    """A payload that arrived, until it is published, kept or found to be unfit."""

    def __init__(self, directory: BuildDirectory, manifest: Manifest) -> None:
        self._directory = directory
        self._manifest = manifest

    def publish(self, store: ArtifactStore) -> Fetched | Hit | None:
        """Make it an entry of `store`, whose key is locked; None if it is none and is gone."""
        key, spec = self._manifest.key, self._manifest.spec
        try:
            layout = store.layout()
            outcome = publish(layout, key, spec, self._directory.path, expected=self._manifest)
        except UnfitPayload:
            self._directory.discard()
            return None
        except SlotTaken:
            # In spite of the lock, as it may happen to a build.
            found = store.lookup(key, spec)
            if isinstance(found, Hit):
                self._directory.discard()
                return found
            if isinstance(found, (Invalid, StorageError)):
                failure = Failure.INVALID if isinstance(found, Invalid) else Failure.STORAGE
                return self.keep(failure, f"{found.path}: {found.reason}")
            return self.keep(Failure.STORAGE, "the slot was taken and is gone again")
        except OSError as error:
            return self.keep(Failure.STORAGE, f"cannot publish: {reason_of(error)}")
        except BaseException:
            self._directory.discard()
            raise
        self._directory.discard()
        entry = Entry(layout.slot(key, spec), outcome.manifest, outcome.small_files)
        return Fetched(entry, damaged_blobs=outcome.damaged_blobs)

    def keep(self, failure: Failure | None, reason: str) -> Fetched | None:
        """Make the directory an entry by itself, which is the caller's; None if that fails, too."""
        try:
            path = f"{self._directory.path}/{MANIFEST_NAME}"
            descriptor = make_file(path, WRITE_NEW, FILE_MODE)
            try:
                write_all(descriptor, self._manifest.encode())
            finally:
                os.close(descriptor)
            crash_points.reach("fetch.kept")
        except OSError:
            self._directory.discard()
            return None
        except BaseException:
            self._directory.discard()
            raise
        entry = Entry(self._directory.keep(), self._manifest)
        return Fetched(entry, private=True, failure=failure, reason=reason)
