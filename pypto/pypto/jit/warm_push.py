"""What ``python -m pypto.jit warm --push`` adds: the warmed kernels' entries, sent to a remote.

All entries that the keys of the warm-up have in their root, whoever made them and when: sources,
and binaries of every CPU level. Nothing is left to the background, so that the command's end says
whether others can have them now.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from pypto.jit.policy import capture_policy
from pypto.jit.session import LEVELS
from pypto.jit.surroundings import read_surroundings
from pypto_store.layout import lies_inside, resolve
from pypto_store.listing import iterate_entries
from pypto_store.remote.collections import CollectionError, check_name
from pypto_store.remote_environment import REMOTE_VARIABLE, remote_from_environment
from pypto_store.tools.answer import CommandError, Progress
from pypto_store.tools.comparison import EvidenceShelf
from pypto_store.tools.fates import Carried, Stopped, counts
from pypto_store.tools.push import parcels_of, push_document
from pypto_store.tools.pushing import Parcel, Push, PushFate, push, refuse_unsigned
from pypto_store.tools.remote_options import opened, remote_at
from pypto_store.tools.terminal import SilentProgress, TerminalProgress

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pypto_store import CacheConfig, RemoteConfig


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a warm-up is sent, decided before anything is built. root: where it is kept."""

    remote: RemoteConfig
    name: str
    root: str


@dataclass(frozen=True, slots=True)
class PushResult:
    """What became of the entries; those with a damaged manifest among them."""

    url: str
    done: Push
    carried: list[Carried[PushFate]]

    @property
    def complaints(self) -> list[str]:
        """A line for everything that is not at the remote now."""
        lines = [
            f"{item.kernel or item.key} ({item.state}): {item.reason}"
            for item in self.carried
            if item.fate in (PushFate.DAMAGED, PushFate.FAILED)
        ]
        return lines if self.done.stopped is None else [*lines, self.done.stopped.reason]

    @property
    def summary(self) -> str:
        """How many entries had which fate, for a terminal."""
        found = counts(self.carried, PushFate)
        return ", ".join(f"{count} {fate}" for fate, count in found.items() if count) or "nothing"

    def document(self) -> Mapping[str, object]:
        """How it reads in the report."""
        return {"remote": self.url, **push_document(self.done, self.carried)}


def destination(cache: CacheConfig | None, url: str, name: str) -> Destination:
    """Where to send what is warmed under a configuration; None is that of process or environment.

    url: the remote; "" for the configuration's, or else the environment's. ValueError if there is
    none, if nothing may be sent there, or if nothing is kept that could be sent.
    """
    surroundings = read_surroundings()
    environ = surroundings.environ
    policy = capture_policy(LEVELS.effective(cache, environ), environ, surroundings.cwd)
    if policy.root is None:
        raise ValueError('--push: persistence is off; give the configuration a "cache"')
    remote = remote_at(url, environ) if url else policy.remote or remote_from_environment(environ)
    if remote is None:
        raise ValueError(f"--push: no remote is named; write --push URL, or set {REMOTE_VARIABLE}")
    try:
        refuse_unsigned(remote)
        check_name(name)
    except (CommandError, CollectionError) as error:
        raise ValueError(f"--push: {error}") from None
    if remote.directory is not None and lies_inside(remote.directory, policy.root):
        raise ValueError(f"--push: {remote.shown_url} lies inside the cache root {policy.root}")
    return Destination(remote, name, policy.root)


def push_keys(keys: Iterable[str], to: Destination, err: TextIO) -> PushResult:
    """Send all entries of these keys, and list them; trouble is in the result."""
    wanted = frozenset(keys)
    url = to.remote.shown_url
    if not wanted:
        return PushResult(url, Push([], 0, None, None), [])
    progress: Progress = SilentProgress()
    if err.isatty():
        progress = TerminalProgress(err, time.monotonic)
    parcels: list[Parcel] = []
    damaged: list[Carried[PushFate]] = []
    try:
        rows = [row for row in iterate_entries(to.root) if row.key in wanted]
        parcels, damaged = parcels_of(rows, EvidenceShelf(resolve(to.root)[0]))
        with opened(to.remote) as remote:
            done = push(parcels, remote, to.name, progress)
    except (CommandError, OSError) as error:
        done = Push([], 0, Stopped(str(error), len(parcels)), None)
    return PushResult(url, done, [*done.carried, *damaged])
