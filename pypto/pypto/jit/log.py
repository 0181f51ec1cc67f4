"""What becomes of requests, told through the standard `logging` module.

Records go to the loggers `pypto.jit`, `pypto_store` and below. Whoever embeds the package sets
`logging` up as for any other library, and nothing here is in the way. ``PYPTO_LOG`` is for the
others: it names a level, and records from that level on are written to standard error, unless the
program has handlers of its own: then those get them.

Requests that an entry or a live object answers log nothing, and do not import `logging` either.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from pypto.runtime.log import LEVELS, TIMING

if TYPE_CHECKING:
    import logging

LOG_VARIABLE = "PYPTO_LOG"

_TREES = ("pypto", "pypto_store", "pypto_toolchains")
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class LogOutput:
    """Follows what the environment says of a process's log."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._followed: str | None = None
        self._handler: logging.Handler | None = None

    def follow(self, value: str | None) -> None:
        """Log as `value` says from now on; None leaves everything to the program again.

        Raises ValueError, and changes nothing, for what is no level.
        """
        if value == self._followed:
            return
        if value is not None and value not in LEVELS:
            raise ValueError(
                f"{LOG_VARIABLE}={value!r} is none of {', '.join(LEVELS)}; correct it or unset it"
            )
        with self._lock:
            self._apply(value)
            self._followed = value

    def _apply(self, value: str | None) -> None:
        import logging

        logging.addLevelName(TIMING, "TIMING")
        handler, self._handler = self._handler, None
        for name in _TREES:
            logger = logging.getLogger(name)
            if handler is not None:
                logger.removeHandler(handler)
            logger.setLevel(logging.NOTSET if value is None else LEVELS[value])
        if value is None or value == "null":
            return
        self._handler = logging.StreamHandler()
        self._handler.setFormatter(logging.Formatter(_FORMAT))
        for name in _TREES:
            logger = logging.getLogger(name)
            if not logger.hasHandlers():
                logger.addHandler(self._handler)


def _logger() -> logging.Logger:
    import logging

    return logging.getLogger("pypto.jit")


def bypassed(kernel: str, reason: str) -> None:
    """A request goes on without the cache."""
    _logger().info("kernel %s goes without the cache: %s", kernel, reason)


def invalid_entry(kernel: str, path: str, reason: str) -> None:
    """An entry is damaged; it stays where it is and is not used."""
    _logger().warning(
        "kernel %s: %s is damaged (%s) and is not used; "
        "`python -m pypto_store fsck` puts it aside",
        kernel, path, reason,
    )  # fmt: skip


def storage_failed(kernel: str, reason: str) -> None:
    """The cache could not be read or written."""
    _logger().warning("kernel %s: the cache cannot be used: %s", kernel, reason)


def damaged_blobs(kernel: str, digests: tuple[object, ...]) -> None:
    """Known contents were not what their names say, and were written afresh."""
    _logger().warning(
        "kernel %s: contents of the cache were damaged and are written afresh: %s",
        kernel, ", ".join(map(str, digests)),
    )  # fmt: skip


def fetched(kernel: str, state: str, size: int) -> None:
    """A remote had an entry of `size` bytes."""
    _logger().info("kernel %s: %s, %d bytes, came from the remote", kernel, state, size)


def remote_missed(nanoseconds: int) -> None:
    """A remote was asked for an entry and has none."""
    _logger().debug("the remote has no such entry (%.3f s)", nanoseconds / 1e9)


def uploaded(size: int, nanoseconds: int) -> None:
    """An entry was stored at a remote, for which `size` bytes were sent."""
    _logger().info("an entry was sent to the remote: %d bytes, %.3f s", size, nanoseconds / 1e9)


def unexplained(kernel: str) -> None:
    """The readable inputs of a key could not be kept; for use where the reason is handled."""
    _logger().info("kernel %s: the inputs of its key are not kept", kernel, exc_info=True)


def built(kernel: str, stage: str, nanoseconds: int) -> None:
    """A stage of a build ended, well or not."""
    shown = stage.removesuffix("_builds")
    _logger().log(TIMING, "kernel %s: %s took %.3f s", kernel, shown, nanoseconds / 1e9)
