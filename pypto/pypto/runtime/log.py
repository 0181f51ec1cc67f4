"""The runtime's log: what is loaded, run and recorded, through the standard `logging` module.

``PYPTO_RUNTIME_LOG`` names the level from which records of `pypto.runtime` are written to standard
error; `configure_log` does the same and wins. Neither does anything for a program that has handlers
of its own, which then get the records.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging

LOG_VARIABLE = "PYPTO_RUNTIME_LOG"

TIMING = 25  # between INFO and WARNING: how long a stage took
LEVELS = {"debug": 10, "info": 20, "timing": TIMING, "warn": 30, "error": 40, "null": 1000}

RUNTIME = "pypto.runtime"
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class _Output:
    """The level in force, and the handler that was added for it."""

    def __init__(self) -> None:
        self.chosen: str | None = None
        self._shown: str | None = None
        self._handlers: dict[str, logging.Handler] = {}

    def show(self, level: str | None, trees: tuple[str, ...] = (RUNTIME,)) -> None:
        import logging

        if level == self._shown and trees == (RUNTIME,):
            return
        self._shown = level
        logging.addLevelName(TIMING, "TIMING")
        for tree in trees:
            logger = logging.getLogger(tree)
            handler = self._handlers.pop(tree, None)
            if handler is not None:
                logger.removeHandler(handler)
            logger.setLevel(logging.NOTSET if level is None else LEVELS[level])
            if level not in (None, "null") and not logger.hasHandlers():
                self._handlers[tree] = logging.StreamHandler()
                self._handlers[tree].setFormatter(logging.Formatter(_FORMAT))
                logger.addHandler(self._handlers[tree])


_OUTPUT = _Output()


def configure_log(level: str | None, *, sync_pypto: bool = False) -> None:
    """Write the runtime's records from ``level`` on to standard error.

    The levels are debug, info, timing, warn, error and null, which writes nothing. ``None`` leaves
    it to ``PYPTO_RUNTIME_LOG`` again. With ``sync_pypto`` the same holds for all of pypto. Raises
    ValueError for another level.
    """
    if level is not None:
        _check(level, "the log level")
    _OUTPUT.chosen = level
    _OUTPUT.show(log_level(), ("pypto", RUNTIME) if sync_pypto else (RUNTIME,))


def log_level() -> str | None:
    """The level in force: the configured one, else the environment's, else None.

    Raises ValueError where ``PYPTO_RUNTIME_LOG`` decides and is no level.
    """
    if _OUTPUT.chosen is not None:
        return _OUTPUT.chosen
    value = os.environ.get(LOG_VARIABLE)
    if value is not None:
        _check(value, LOG_VARIABLE)
    return value


def _check(level: str, what: str) -> None:
    if level not in LEVELS:
        raise ValueError(f"{what} is {level!r}, which is none of {', '.join(LEVELS)}")


def tell(level: str, message: str, *arguments: object) -> None:
    """Write a record of the runtime; for what happens once a program, not once a run."""
    in_force = log_level()
    if in_force is None:
        # Nobody asked by our means; a program that set logging up has imported it.
        import sys

        if "logging" not in sys.modules:
            return
    import logging

    _OUTPUT.show(in_force)
    logging.getLogger(RUNTIME).log(LEVELS[level], message, *arguments)
