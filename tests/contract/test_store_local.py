"""The shipped contract, run over the local store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pypto_store import ArtifactStore
from pypto_store.testing import ArtifactStoreContract

if TYPE_CHECKING:
    from pathlib import Path


class TestLocalStore(ArtifactStoreContract):
    """A store on the local file system."""

    def make_store(self, root: Path, *, readonly: bool = False) -> ArtifactStore:
        return ArtifactStore(root, readonly=readonly, lock_timeout=20)


class TestStoreThroughALinkedMarker(ArtifactStoreContract):
    """The same, entered through a tree that only links to the marker (Bazel runfiles)."""

    def make_store(self, root: Path, *, readonly: bool = False) -> ArtifactStore:
        tree = root.parent / "runfiles"
        if not tree.exists():
            tree.mkdir()
        marker = tree / "STORE"
        if (root / "STORE").exists() and not marker.is_symlink():
            marker.symlink_to(root / "STORE")
        entrance = tree if marker.is_symlink() else root
        return ArtifactStore(entrance, readonly=readonly, lock_timeout=20)
