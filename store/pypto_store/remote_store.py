"""What a store needs of a remote; `pypto_store.remote.tier` has one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pypto_store.entry import Entry
    from pypto_store.keys import ArtifactKey, ArtifactSpec
    from pypto_store.manifest import Manifest


class Remote(Protocol):
    """Another place that has entries. Its trouble is its own: a store is told of none of it."""

    def fetch(self, key: ArtifactKey, spec: ArtifactSpec, directory: str) -> Manifest | None:
        """Fill the empty `directory` with the payload of an entry, verified as its manifest says.

        None when there is none to be had; what is in the directory then is thrown away. OSError
        where the directory cannot be written.
        """
        ...

    def offer(self, entry: Entry) -> None:
        """Here is an entry that was just published; it may be stored there, now or later."""
        ...
