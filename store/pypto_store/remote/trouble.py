"""What a log says of trouble with a remote: each kind of it once, however many requests it hits.

A kind is the type of the fault and its reason without what differs from request to request
(digests, names made of them, and numbers). The observer of a tier hears every fault; this is for
people.
"""

from __future__ import annotations

import logging
import re

from pypto_store.remote.blob_store import RemoteFault, plain
from pypto_store.remote.breaker import NotAsked

_KINDS = 32  # reports; a remote cannot fill a log by finding new words
_DIFFERING = re.compile(r"\b[0-9a-f]{2,}\b|\d+(?:\.\d+)?")
_log = logging.getLogger(__name__)


class ReportedOnce:
    """Logs a warning for each kind of trouble that is new."""

    def __init__(self) -> None:
        self._known: dict[tuple[type, str], object] = {}
        self._sending = True

    def __call__(self, error: Exception, described: str) -> None:
        """Log `described`, what `error` is in words, unless its kind was logged before."""
        if isinstance(error, NotAsked) or len(self._known) >= _KINDS:
            return  # what it follows from was logged
        reason = error.reason if isinstance(error, RemoteFault) else str(error)
        kind = (type(error), _DIFFERING.sub("#", reason))
        mine = object()
        if self._known.setdefault(kind, mine) is mine:  # of two threads, one
            _log.warning("%s (told once; builds go on without the remote)", described)

    def dropped(self, url: str, count: int) -> None:
        """Say that `count` entries are not sent, because the process ends or wants no more."""
        _log.warning("%s: %d entries were not sent in time; `push` sends them", url, count)

    def not_sending(self, url: str) -> None:
        """Say that nothing is sent to a remote whose entries have to be signed, without a key."""
        if self._sending:
            self._sending = False
            _log.info(
                "%s: nothing is sent there: RemoteConfig.trusted_keys wants entries to be signed, "
                "and RemoteConfig.signing_key names no key to sign with",
                url,
            )


def describe(url: str, error: Exception) -> str:
    """One line about what went wrong with the remote at `url`."""
    if isinstance(error, RemoteFault):
        return str(error)
    said = plain(str(error)) or "no reason given"
    if isinstance(error, ValueError):
        return f"{url}: {said}"
    return f"{url}: {type(error).__name__}: {said}"
