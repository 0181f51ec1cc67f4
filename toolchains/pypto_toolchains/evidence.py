"""What a component of the toolchain is known by, or why it is not known."""

from __future__ import annotations

import os
from dataclasses import dataclass

from pypto_store.digest import Digest
from pypto_store.records import RecordBuilder


@dataclass(frozen=True, slots=True)
class Evidence:
    """A component and the readable facts that identify it.

    `facts` are (name, value) pairs in a fixed order; the digest covers the component's name,
    every fact's name and every value, framed.
    """

    component: str
    facts: tuple[tuple[str, str], ...]
    digest: Digest

    @classmethod
    def of(cls, component: str, facts: tuple[tuple[str, str], ...]) -> Evidence:
        """The evidence that `facts` are, with its digest."""
        record = RecordBuilder("pypto.toolchain.component/v1").text("component", component)
        # Paths are bytes to the system, and not always text.
        told = [(name, os.fsencode(value)) for name, value in facts]
        return cls(component, facts, record.sequence("facts", told).finish())


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A component whose identity cannot be established; `reason` names what is wrong.

    It never becomes part of a key: the request goes on without persistence.
    """

    component: str
    reason: str

    def __str__(self) -> str:
        return f"{self.component}: {self.reason}"
