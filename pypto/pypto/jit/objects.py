"""The live objects of one kernel: what earlier requests of this process made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pypto_store.digest import Digest
from pypto_store.flights import Flights

_Object = TypeVar("_Object")


@dataclass(frozen=True, slots=True)
class PersistentObject:
    """Names an object of an enabled request: full key, where it is kept, and how."""

    key: str
    root: str
    readonly: bool


@dataclass(frozen=True, slots=True)
class PrivateObject:
    """Names an object that has no artifact: of a disabled request, or of a bypass."""

    reason: str
    source: Digest
    application: str
    specialization: str


ObjectName = PersistentObject | PrivateObject


class ObjectTable(Generic[_Object]):
    """Objects by name. Overlapping requests for one name make one object.

    A forked child keeps the objects, and makes anew what its parent's threads were making.
    """

    def __init__(self) -> None:
        self._objects: dict[ObjectName, _Object] = {}
        self._flights: Flights[_Object] = Flights()

    def obtain(self, name: ObjectName, make: Callable[[], _Object]) -> tuple[_Object, bool]:
        """The object called `name`, and whether it was there or came from an overlapping call.

        What `make` raises is raised here and to every overlapping caller; nothing is kept of it.
        """
        found = self._objects.get(name)
        if found is not None:
            return found, True
        led = False

        def lead() -> _Object:
            nonlocal led
            # Another flight may have landed since the look above.
            present = self._objects.get(name)
            if present is not None:
                return present
            led = True
            made = self._objects[name] = make()
            return made

        return self._flights.run(name, lead), not led
