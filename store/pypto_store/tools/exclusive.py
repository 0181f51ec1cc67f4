"""Having a store for oneself, as cleaning it takes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from pypto_store.layout import MARKER_NAME, Layout, resolve
from pypto_store.locks import LockUnavailable, try_acquire
from pypto_store.tools.answer import CommandError, Status


def marked_layout(root: str) -> Layout:
    """The layout of a root that is marked as a store; CommandError for any other directory.

    Nothing that is not a store is ever cleaned.
    """
    try:
        os.close(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        layout, marked = resolve(root)
    except OSError as error:
        told = f"{root}: {error.strerror}" if error.strerror else str(error)
        raise CommandError(f"{told}; name a store with --root") from None
    if not marked:
        raise CommandError(
            f"{root}: no store, it has no file {MARKER_NAME}; name a store with --root"
        )
    return layout


@contextlib.contextmanager
def sole_user(layout: Layout, instead: str) -> Iterator[None]:
    """Hold the store's exclusive lock; CommandError, naming who is in the way, without waiting.

    instead: the option that does without, for the message. Writers hold a shared lock for as long
    as they live. Read-only users hold none: nobody can see them from here.
    """
    try:
        lock = try_acquire(layout.store_lock, shared=False)
    except LockUnavailable as error:
        raise CommandError(
            f"{error}; run it as the store's owner where the store can be written, or use {instead}"
        ) from None
    if lock is None:
        raise CommandError(
            f"{layout.root}: in use by {_holder(layout.store_lock)}; "
            f"end it and try again, or use {instead}",
            Status.IN_USE,
        )
    with lock:
        yield


def _holder(path: str) -> str:
    from pypto_store.lock_holder import describe_holder

    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return "someone"
    try:
        return describe_holder(descriptor)[0]
    finally:
        os.close(descriptor)
