"""A remote as the store uses it: asked after a local miss, offered what was published, never fatal.

    fetch    the manifest    the entry is in the directory, verified as its manifest says
             None            a miss, or trouble
             OSError         the directory could not be written
    offer    nothing         it was sent, it waits to be sent, or it is not sent at all

Whatever goes wrong at the remote is told to an observer, who counts it, and logged once (see
`trouble`); the request goes on as if the remote had nothing. A request takes at most
REQUEST_TIMEOUTS timeouts, more for the bytes that it moves (see `time_limit`), and the exchange
that is under way then. What is known to fail is not tried for every request (see `breaker`).
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from pypto_store.remote.afresh import AfreshEngine
from pypto_store.remote.arrival import empty, fetch_entry
from pypto_store.remote.blob_store import CorruptBlob, RejectedEntry, RemoteUnavailable
from pypto_store.remote.breaker import Breaker, BreakingEngine
from pypto_store.remote.engines import open_engine
from pypto_store.remote.entry_name import entry_name
from pypto_store.remote.sending import send_entry
from pypto_store.remote.time_limit import TimeLimit, TimeLimitedEngine
from pypto_store.remote.trouble import ReportedOnce, describe
from pypto_store.remote.trust import signer_of, trust_of
from pypto_store.remote.upload_claim import claimed
from pypto_store.remote.uploads import Uploads

if TYPE_CHECKING:
    from collections.abc import Callable

    from pypto_store.entry import Entry
    from pypto_store.keys import ArtifactKey, ArtifactSpec
    from pypto_store.manifest import Manifest
    from pypto_store.remote.blob_store import BlobDigest, Engine
    from pypto_store.remote.sending import Sent
    from pypto_store.remote.trust import Signer, Trust
    from pypto_store.remote_config import RemoteConfig

REQUEST_TIMEOUTS = 3  # of RemoteConfig.timeout, for one fetch or upload as a whole
_DAMAGED = 1024  # entries; so many are remembered to be damaged at the remote


class RemoteObserver(Protocol):
    """Who counts what becomes of requests to a remote; called from several threads at once.

    size: bytes. ns: what it took, in nanoseconds. Every fetch is told by one call, unless the local
    disk fails it, and every upload, unless the remote had the entry already.
    """

    def hit(self, size: int, ns: int) -> None:
        """An entry came from the remote; `size` is that of its payload."""
        ...

    def miss(self, ns: int) -> None:
        """The remote has no such entry."""
        ...

    def fault(self, reason: str, ns: int) -> None:
        """A fetch or an upload failed; `reason` is one line for people."""
        ...

    def uploaded(self, size: int, ns: int) -> None:
        """An entry was stored at the remote; `size` bytes had to be sent for it."""
        ...


class Misfit(RejectedEntry):
    """An entry that is what its name says, and that whoever asked for it cannot use."""


class RemoteTier:
    """One remote of one process. Safe for threads and across fork.

    Nothing is opened before the first use. Keep one object per remote: what it found out about the
    remote, and what waits to be uploaded, belong to the object.

    clock: nanoseconds that only grow. misfit: why what arrived in a directory, with this manifest,
    is of no use to its reader, which is then a fault as if it were damaged; None if it is of use.
    """

    def __init__(
        self,
        config: RemoteConfig,
        observer: RemoteObserver,
        *,
        clock: Callable[[], int] = time.perf_counter_ns,
        open_engine: Callable[[RemoteConfig], Engine] = open_engine,
        misfit: Callable[[Manifest, str], str | None] = lambda manifest, directory: None,
    ) -> None:
        self._config = config
        self._url = config.shown_url
        self._observer = observer
        self._clock = clock
        self._open_engine = open_engine
        self._misfit = misfit
        self._breaker = Breaker(self._url, clock)
        self._report = ReportedOnce()
        self._uploads = Uploads(patience=config.timeout, abandon=self.close)
        self._damaged: OrderedDict[BlobDigest, None] = OrderedDict()
        self._known_trust: Trust | None = None
        self._known_signer: Signer | None = None
        self._opening = threading.Lock()
        self._engine: Engine | None = None
        self._engines_of_parents: list[Engine] = []
        self._closed = False
        _all_tiers.add(self)

    def fetch(self, key: ArtifactKey, spec: ArtifactSpec, directory: str) -> Manifest | None:
        """Fill the empty `directory` with the remote's entry of `key` and `spec`, and verify it.

        None where there is none, and for every trouble of the remote; then the directory is empty.
        OSError where it cannot be written.
        """
        begun = self._clock()
        try:
            manifest = self._fetch(key, spec, directory)
        except OSError:
            raise  # engines let none of a remote's out: it is of the directory
        except Exception as error:  # noqa: BLE001 - no trouble of a remote fails a request
            if isinstance(error, (CorruptBlob, Misfit)):
                self._remember_damage(entry_name(key, spec).digest)
            self._tell(error, begun)
            return None
        took = self._clock() - begun
        if manifest is None:
            self._observer.miss(took)
        else:
            self._observer.hit(manifest.payload_size, took)
        return manifest

    def offer(self, entry: Entry) -> None:
        """Have the remote store an entry that was just published, as RemoteConfig.upload says.

        Nothing is sent to a remote that is read only, or that refused to store something before;
        nor, where only signed entries are believed, by who cannot sign one.
        """
        config = self._config
        if config.readonly or config.upload == "off":
            return
        if config.trusted_keys and config.signing_key is None:
            self._report.not_sending(self._url)
            return
        if config.upload == "sync":
            self._upload(entry)
        elif not self._uploads.submit(lambda: self._upload(entry)):
            self._tell(
                RemoteUnavailable(
                    url=self._url,
                    operation=f"put entry of {entry.key.digest}",
                    reason="too much waits to be sent already, or the process is ending",
                    remedy="see whether the server is overloaded; `push` sends it later",
                ),
                self._clock(),
            )

    def flush(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds for uploads in the background; whether all are done."""
        return self._uploads.flush(timeout)

    def close(self) -> None:
        """Give back the connection; what waits to be uploaded is dropped (flush comes before)."""
        self._closed = True
        dropped = self._uploads.close()
        for _ in range(dropped):
            self._observer.fault(f"{self._url}: closed before everything was sent", 0)
        if dropped:
            self._report.dropped(self._url, dropped)
        with self._opening:
            engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    def _fetch(self, key: ArtifactKey, spec: ArtifactSpec, directory: str) -> Manifest | None:
        engine = self._engine_for_a_request()
        manifest = fetch_entry(engine, self._url, key, spec, directory, self._trust)
        if manifest is not None and (reason := self._misfit(manifest, directory)):
            empty(directory)
            raise Misfit(
                url=self._url,
                operation=f"use entry {entry_name(key, spec).digest}",
                reason=reason,
                remedy="it is not used, and replaced by whoever builds it and may write there",
            )
        return manifest

    def _upload(self, entry: Entry) -> None:
        if self._breaker.writes.refused:
            return  # told when it was
        begun = self._clock()
        try:
            sent = self._send(entry)
        except Exception as error:  # noqa: BLE001 - the entry is published here, whatever happens
            self._tell(error, begun)
            return
        if sent.blobs_sent or sent.entry_sent:
            self._observer.uploaded(sent.bytes_sent, self._clock() - begun)

    def _send(self, entry: Entry) -> Sent:
        config, signer = self._config, self._signer
        name = entry_name(entry.key, entry.spec).digest
        with claimed(self._url, config.instance, str(name), patience=config.timeout):
            engine = self._engine_for_a_request()
            if name in self._damaged:
                # A remote that lost bytes of a blob still says that it has it, and an entry that
                # nobody can use looks as good as any.
                engine = AfreshEngine(engine)
            sent = send_entry(engine, self._url, entry, self._trust, signer)
        self._damaged.pop(name, None)
        return sent

    # What cannot be read is tried again by the next request; what could is kept. Not by
    # functools.cached_property: in Python 3.11 that has a lock, which the child of a fork may find
    # taken by a thread that it does not have.
    @property
    def _trust(self) -> Trust:
        if self._known_trust is None:
            self._known_trust = trust_of(self._config)
        return self._known_trust

    @property
    def _signer(self) -> Signer | None:
        if self._known_signer is None:
            self._known_signer = signer_of(self._config)
        return self._known_signer

    def _engine_for_a_request(self) -> Engine:
        """An engine that ends in time, and knows what happened to earlier ones."""
        engine = self._opened()
        limit = TimeLimit(self._url, self._clock, REQUEST_TIMEOUTS * self._config.timeout)
        return BreakingEngine(TimeLimitedEngine(engine, limit), self._breaker)

    def _opened(self) -> Engine:
        """The engine; what hinders its opening is raised for every request, and may pass."""
        with self._opening:
            if self._closed:
                raise RemoteUnavailable(
                    url=self._url,
                    operation="use it",
                    reason="this process has closed it",
                    remedy="open another one",
                )
            if self._engine is None:
                try:
                    self._engine = self._open_engine(self._config)
                except OSError as error:
                    raise ValueError(f"the remote cannot be opened: {error}") from error
            return self._engine

    def _remember_damage(self, name: BlobDigest) -> None:
        self._damaged[name] = None
        if len(self._damaged) > _DAMAGED:
            with suppress(KeyError):
                self._damaged.popitem(last=False)

    def _tell(self, error: Exception, begun: int) -> None:
        reason = describe(self._url, error)
        self._observer.fault(reason, self._clock() - begun)
        if not self._closed:
            self._report(error, reason)

    def _begin_in_child(self) -> None:
        """Leave to the parent what is the parent's: threads, locks and connections."""
        self._opening = threading.Lock()
        self._breaker.forked()
        if self._engine is not None:
            # Neither used nor closed nor collected: that could end or hang what the parent uses.
            self._engines_of_parents.append(self._engine)
            self._engine = None


_all_tiers: weakref.WeakSet[RemoteTier] = weakref.WeakSet()


def _begin_in_child() -> None:
    for tier in _all_tiers:
        tier._begin_in_child()


os.register_at_fork(after_in_child=_begin_in_child)
