"""One upload of an entry at a time on a machine, whoever's stores published it.

The claim is an abstract Unix socket, bound under a name made of what is uploaded and where to. The
kernel gives it to one process and takes it back when that ends, however it ends. Nothing is ever
sent over it. Who finds it taken waits, and sees at the remote what the other has done: a claim
saves work, and nothing depends on it. So there is none where the system has no such sockets, where
they are forbidden, and between containers that have networks of their own.
"""

from __future__ import annotations

import errno
import hashlib
import os
import socket
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PAUSES = (0.005, 0.01, 0.02, 0.05)  # seconds between looks; the last one lasts
_held: set[socket.socket] = set()


@contextmanager
def claimed(
    url: str,
    instance: str,
    name: str,
    *,
    patience: float,
    sleep: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[bool]:
    """Hold the claim to upload the entry `name` to a remote; whether it is really held.

    patience: seconds to wait for another holder; after that the upload goes on without a claim.
    """
    claim = _obtain(_address(url, instance, name), patience, sleep, clock)
    try:
        yield claim is not None
    finally:
        if claim is not None:
            _give_up(claim)


def _address(url: str, instance: str, name: str) -> bytes:
    framed = "".join(f"{len(part)}:{part}," for part in (url, instance, name))
    return b"\0pypto-upload-" + hashlib.sha256(framed.encode()).hexdigest().encode()


def _obtain(
    address: bytes,
    patience: float,
    sleep: Callable[[float], object],
    clock: Callable[[], float],
) -> socket.socket | None:
    if sys.platform != "linux":
        return None
    try:
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    except OSError:
        return None
    # Before it is bound: the child of a fork in between has it, too, and would hold the claim.
    _held.add(claim)
    bound = False
    try:
        bound = _bind(claim, address, patience, sleep, clock)
    finally:
        if not bound:
            _give_up(claim)
    return claim if bound else None


def _give_up(claim: socket.socket) -> None:
    _held.discard(claim)
    claim.close()


def _bind(
    claim: socket.socket,
    address: bytes,
    patience: float,
    sleep: Callable[[float], object],
    clock: Callable[[], float],
) -> bool:
    """Bind the claim once nobody else has; False when that takes too long or cannot be."""
    end = clock() + patience
    pauses = iter(_PAUSES)
    pause = 0.0
    while True:
        try:
            claim.bind(address)
        except OSError as error:
            pause = next(pauses, pause)
            if error.errno != errno.EADDRINUSE or clock() + pause > end:
                return False
        else:
            return True
        sleep(pause)


def _release_in_child() -> None:
    # The claim is the parent's thread's; a child that lives on would hold it for all that time.
    for claim in _held:
        claim.close()
    _held.clear()


os.register_at_fork(after_in_child=_release_in_child)
