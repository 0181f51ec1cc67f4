"""What names an artifact: the key of a request and the specification of one state of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from pypto_store.paths import path_fault
from pypto_store.records import RecordBuilder

if TYPE_CHECKING:
    from pypto_store.digest import Digest

_TOKEN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}")


class State(Enum):
    """How far an artifact is: sources only, or complete with its binaries."""

    GENERATED = "generated"
    READY = "ready"


@dataclass(frozen=True, slots=True)
class ArtifactKey:
    """The five digests that together name a compilation request.

    format: version of the artifact's own layout. environment: tools that take part.
    source: the kernel and everything it refers to. application: extra sources and fingerprint.
    specialization: shapes, dtypes, constants and options.
    """

    format: Digest
    environment: Digest
    source: Digest
    application: Digest
    specialization: Digest
    digest: Digest = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        record = RecordBuilder("pypto.artifact-key/v1")
        for name, value in self.components():
            record.digest(name, value)
        object.__setattr__(self, "digest", record.finish())

    def components(self) -> tuple[tuple[str, Digest], ...]:
        """The named digests in their fixed (alphabetical) order."""
        return (
            ("application", self.application),
            ("environment", self.environment),
            ("format", self.format),
            ("source", self.source),
            ("specialization", self.specialization),
        )


@dataclass(frozen=True, slots=True)
class ArtifactSpec:
    """What an entry of a given state must be.

    build_kind: which builder made it. required_files: payload paths that must be present (kept
    sorted). execution: execution capabilities of the payload (kept sorted). cpu_level: the named
    CPU level of host binaries, or None where there are none; sources never have one.
    """

    state: State
    build_kind: str
    required_files: tuple[str, ...] = ()
    execution: tuple[str, ...] = ()
    cpu_level: str | None = None
    digest: Digest = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if type(self.state) is not State:
            raise TypeError(f"state must be a State, not {self.state!r}")
        _token("build_kind", self.build_kind)
        for name in ("required_files", "execution"):
            values = getattr(self, name)
            if isinstance(values, (str, bytes)):
                raise TypeError(f"{name} must be a tuple of str, not {values!r}")
            ordered = tuple(sorted(values))
            if len(set(ordered)) != len(ordered):
                raise ValueError(f"{name} names something twice: {values!r}")
            object.__setattr__(self, name, ordered)
        for path in self.required_files:
            if fault := path_fault(path):
                raise ValueError(f"required_files: {fault}")
        for capability in self.execution:
            _token("execution", capability)
        if self.cpu_level is not None:
            _token("cpu_level", self.cpu_level)
            if self.state is State.GENERATED:
                raise ValueError("generated sources have no cpu_level; leave it None")
        object.__setattr__(self, "digest", self._record().finish())

    def _record(self) -> RecordBuilder:
        return (
            RecordBuilder("pypto.artifact-spec/v1")
            .text("state", self.state.value)
            .text("build_kind", self.build_kind)
            .sequence("required_files", self.required_files)
            .sequence("execution", self.execution)
            .optional_text("cpu_level", self.cpu_level)
        )


def _token(name: str, value: object) -> None:
    if type(value) is not str or _TOKEN.fullmatch(value) is None:
        raise ValueError(f"{name} must be a short plain token, not {value!r}")
