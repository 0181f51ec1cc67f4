"""A remote that has what another store has, and notes what it is asked: for tests of what uses one.

Needs nothing but the standard library.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pypto_store.outcomes import Hit
from pypto_store.store import ArtifactStore

if TYPE_CHECKING:
    from pypto_store.entry import Entry
    from pypto_store.keys import ArtifactKey, ArtifactSpec
    from pypto_store.manifest import Manifest


class StockedRemote:
    """The entries of the store at `root`, where it also keeps what it is offered.

    asked, offered: the names of what was asked for and offered so far, by key and specification.
    """

    def __init__(self, root: Path) -> None:
        self.store = ArtifactStore(root)
        self._private = root.parent / f"{root.name}-private"
        self.asked: list[tuple[str, str]] = []
        self.offered: list[tuple[str, str]] = []

    def fetch(self, key: ArtifactKey, spec: ArtifactSpec, directory: str) -> Manifest | None:
        """As `Remote.fetch`."""
        self.asked.append((key.digest.hex, spec.digest.hex))
        found = self.store.lookup(key, spec)
        if not isinstance(found, Hit):
            return None
        found.entry.materialize(Path(directory))
        return found.entry.manifest

    def offer(self, entry: Entry) -> None:
        """As `Remote.offer`."""
        self.offered.append((entry.key.digest.hex, entry.spec.digest.hex))
        self.store.get_or_build(
            entry.key, entry.spec, entry.materialize, private_parent=self._private
        )
