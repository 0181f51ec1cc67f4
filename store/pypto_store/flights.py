"""One build at a time per name within a process, shared by everyone who asked meanwhile."""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

Result = TypeVar("Result")


class _Flight(Generic[Result]):
    def __init__(self) -> None:
        self.landed = threading.Event()
        self.leader = threading.get_ident()
        self.result: Result | None = None
        self.error: BaseException | None = None


class Flights(Generic[Result]):
    """Calls in progress by name."""

    def __init__(self) -> None:
        self._reset()
        _all_flights.add(self)

    def _reset(self) -> None:
        self._mutex = threading.Lock()
        self._flights: dict[Hashable, _Flight[Result]] = {}

    def run(self, name: Hashable, action: Callable[[], Result]) -> Result:
        """The result of `action`, or of the call of the same name that is already running.

        An Exception of the action reaches every caller. An interruption (Ctrl-C) stops only the
        thread that it hit; one of the others takes over.
        """
        while True:
            with self._mutex:
                flight = self._flights.get(name)
                leading = flight is None
                if flight is None:
                    flight = self._flights[name] = _Flight()
            if leading:
                return self._lead(name, flight, action)
            if flight.leader == threading.get_ident():
                raise RuntimeError("a builder asked the store for the entry it is building")
            flight.landed.wait()
            if isinstance(flight.error, Exception):
                raise flight.error
            if flight.error is None:
                return flight.result  # type: ignore[return-value]  # set before landing

    def _lead(
        self, name: Hashable, flight: _Flight[Result], action: Callable[[], Result]
    ) -> Result:
        try:
            flight.result = result = action()
        except BaseException as error:
            flight.error = error
            raise
        else:
            return result
        finally:
            # Removed before landing: whoever comes now starts a new flight, and finds in the
            # store what this one published.
            with self._mutex:
                self._flights.pop(name, None)
            flight.landed.set()


_all_flights: weakref.WeakSet[Flights[Any]] = weakref.WeakSet()


def _forget_in_child() -> None:
    # The threads that lead the parent's flights do not exist in the child.
    for flights in _all_flights:
        flights._reset()


os.register_at_fork(after_in_child=_forget_in_child)
