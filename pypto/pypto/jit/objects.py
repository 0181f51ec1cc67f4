"""The live objects of one kernel: what earlier requests of this process made."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

_Object = TypeVar("_Object")


@dataclass(frozen=True, slots=True)
class PersistentObject:
    """Names an object of an enabled request: full key, where it is kept, and how."""

    key: str
    root: str
    readonly: bool


@dataclass(frozen=True, slots=True)
class PrivateObject:
    """Names an object that has no artifact: of a disabled request, or of a bypass.

    `source` is a digest, or the snapshot itself where it has none.
    """

    reason: str
    source: Hashable
    application: str
    specialization: str


ObjectName = PersistentObject | PrivateObject


class _Flight(Generic[_Object]):
    """One object in the making, and whoever waits for it."""

    __slots__ = ("done", "error", "made")

    def __init__(self) -> None:
        self.done = threading.Event()
        self.made: _Object | None = None
        self.error: BaseException | None = None


class ObjectTable(Generic[_Object]):
    """Objects by name. Overlapping requests for one name make one object."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._objects: dict[ObjectName, _Object] = {}
        self._flights: dict[ObjectName, _Flight[_Object]] = {}

    def get(self, name: ObjectName) -> _Object | None:
        """The object called `name`, if it is there."""
        return self._objects.get(name)

    def obtain(self, name: ObjectName, make: Callable[[], _Object]) -> tuple[_Object, bool]:
        """The object called `name`, and whether it was there or came from an overlapping call.

        What `make` raises is raised here and to every overlapping caller; nothing is kept of it.
        """
        with self._lock:
            found = self._objects.get(name)
            if found is not None:
                return found, True
            flight = self._flights.get(name)
            leads = flight is None
            if flight is None:
                flight = self._flights[name] = _Flight()
        if not leads:
            flight.done.wait()
            if flight.error is not None:
                raise flight.error
            assert flight.made is not None
            return flight.made, True
        try:
            made = make()
        except BaseException as error:
            flight.error = error
            raise
        else:
            flight.made = made
            with self._lock:
                self._objects[name] = made
            return made, False
        finally:
            with self._lock:
                self._flights.pop(name, None)
            flight.done.set()
