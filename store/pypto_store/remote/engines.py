"""Which engine speaks to which URL, and what is around every one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pypto_store.remote.blob_store import Engine, EntryIndex
from pypto_store.remote.read_only import ReadOnlyEngine
from pypto_store.remote.verifying import VerifyingBlobs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pypto_store.remote_config import RemoteConfig


def _disk_cache(config: RemoteConfig) -> Engine:
    from pypto_store.remote.disk_cache import DiskCache

    return DiskCache(config)


def _http_cache(config: RemoteConfig) -> Engine:
    from pypto_store.remote.http_cache import HttpCache

    return HttpCache(config)


def _reapi(config: RemoteConfig) -> Engine:
    from pypto_store.remote.reapi import ReapiEngine

    return ReapiEngine(config)


# Each constructor imports its engine: who uses one does not load the transports of the others.
_ENGINES: Mapping[str, Callable[[RemoteConfig], Engine]] = {
    "file": _disk_cache,
    "http": _http_cache,
    "https": _http_cache,
    "grpc": _reapi,
    "grpcs": _reapi,
}


def open_engine(config: RemoteConfig) -> Engine:
    """The engine for a remote. What it hands on was verified; nothing is connected to yet.

    ValueError when the configuration names files that cannot be used.
    """
    raw = _ENGINES[config.scheme](config)
    engine: Engine = _VerifyingEngine(raw, config.shown_url)
    return ReadOnlyEngine(engine, config.shown_url) if config.readonly else engine


class _VerifyingEngine:
    """An engine with its blobs verified."""

    def __init__(self, inner: Engine, url: str) -> None:
        self.blobs = VerifyingBlobs(inner.blobs, url)
        self.entries: EntryIndex = inner.entries
        self._inner = inner

    def close(self) -> None:
        self._inner.close()
