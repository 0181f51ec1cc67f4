"""Doing the same with many things, a few at a time, as long as nobody has had enough of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from queue import SimpleQueue
from typing import Generic, TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# Seconds that an interrupted command waits for what it had begun.
_PATIENCE = 2.0


class Lanes(Generic[_Item, _Result]):
    """Threads that each take the next item, until there is none or somebody says `stop`.

    They die with the process: whoever is interrupted leaves what a crash would leave.
    """

    def __init__(self, work: Callable[[_Item], _Result], count: int) -> None:
        self._work = work
        self._count = count
        self._stopped = threading.Event()
        # What one lane says: a result, what it raised, or None for its end.
        self._said: SimpleQueue[tuple[_Result | None, BaseException | None] | None] = SimpleQueue()

    def stop(self) -> None:
        """Begin nothing further. Results of what was begun still come."""
        self._stopped.set()

    def run(self, items: Iterable[_Item]) -> Iterator[_Result]:
        """The result of each item, in the order in which they come; what work raises is raised."""
        pending = list(items)
        pending.reverse()
        lanes = [
            threading.Thread(target=self._lane, args=(pending,), daemon=True)
            for _ in range(min(self._count, len(pending)))
        ]
        for lane in lanes:
            lane.start()
        left = len(lanes)
        try:
            while left:
                said = self._said.get()
                if said is None:
                    left -= 1
                    continue
                result, error = said
                if error is not None:
                    raise error
                yield result  # type: ignore[misc]  # one of the two is there
        finally:
            self.stop()
            end = time.monotonic() + _PATIENCE
            for lane in lanes:
                lane.join(max(0.0, end - time.monotonic()))

    def _lane(self, pending: list[_Item]) -> None:
        try:
            while not self._stopped.is_set():
                try:
                    item = pending.pop()
                except IndexError:
                    return
                self._said.put((self._work(item), None))
        except BaseException as error:  # noqa: BLE001 - it is raised where results are taken
            self._said.put((None, error))
        finally:
            self._said.put(None)
