"""The runtime's log: what is loaded, run and recorded, through the standard `logging` module.

``PYPTO_RUNTIME_LOG`` names the level from which records of `pypto.runtime` are written to standard
error; `RuntimeLog.configure` does the same and wins. Neither does anything for a program that has
handlers of its own, which then get the records.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging

LOG_VARIABLE = "PYPTO_RUNTIME_LOG"

TIMING = 25  # between INFO and WARNING: how long a stage took
LEVELS = {"debug": 10, "info": 20, "timing": TIMING, "warn": 30, "error": 40, "null": 1000}

RUNTIME = "pypto.runtime"
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class RuntimeLog:
    """The level in force, and the handlers that were added for it.

    ``environment`` gives the variables of the moment; it is asked wherever nothing is configured.
    """

    def __init__(self, environment: Callable[[], Mapping[str, str]]) -> None:
        self._environment = environment
        self._lock = threading.Lock()
        self._configured: str | None = None
        self._shown: str | None = None
        self._handlers: dict[str, logging.Handler] = {}

    def configure(self, level: str | None, *, sync_pypto: bool = False) -> None:
        """Log from ``level`` on, or with None as the environment says.

        With ``sync_pypto`` the same holds for all of pypto. Raises ValueError for what is no level.
        """
        if level is not None:
            _check(level, "the log level")
        self._configured = level
        self._show(self.level(), ("pypto", RUNTIME) if sync_pypto else (RUNTIME,))

    def level(self) -> str | None:
        """The level in force: the configured one, else the environment's, else None.

        Raises ValueError where ``PYPTO_RUNTIME_LOG`` decides and is no level.
        """
        if self._configured is not None:
            return self._configured
        value = self._environment().get(LOG_VARIABLE)
        if value is not None:
            _check(value, LOG_VARIABLE)
        return value

    def tell(self, level: str, message: str, *arguments: object) -> None:
        """Write a record of the runtime; for what happens once a program, not once a run."""
        in_force = self.level()
        if in_force is None and "logging" not in sys.modules:
            # Nobody asked by our means, and a program that set logging up has imported it.
            return
        import logging

        self._show(in_force, (RUNTIME,))
        logging.getLogger(RUNTIME).log(LEVELS[level], message, *arguments)

    def _show(self, level: str | None, trees: tuple[str, ...]) -> None:
        if level == self._shown and trees == (RUNTIME,):
            return
        import logging

        with self._lock:
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


def _check(level: str, what: str) -> None:
    if level not in LEVELS:
        raise ValueError(f"{what} is {level!r}, which is none of {', '.join(LEVELS)}")
