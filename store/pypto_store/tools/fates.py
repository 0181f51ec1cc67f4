"""What became of each entry that a command carried to a remote or from one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Generic, TypeVar

from pypto_store.tools.terminal import plain, size_text

if TYPE_CHECKING:
    from pypto_store.keys import ArtifactKey, ArtifactSpec
    from rich.console import Console

_Fate = TypeVar("_Fate", bound=Enum)
_KEY_DIGITS = 12
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Carried(Generic[_Fate]):
    """One entry with its fate and, where that says too little, the reason.

    spec: the digest of its specification, None where that is not known. size: bytes of the payload.
    kernel: "" where nothing tells it.
    """

    key: str
    state: str
    spec: str | None
    cpu_level: str | None
    size: int
    kernel: str
    fate: _Fate
    reason: str = ""

    @classmethod
    def of(
        cls,
        key: ArtifactKey,
        spec: ArtifactSpec,
        size: int,
        kernel: str,
        fate: _Fate,
        reason: str = "",
    ) -> Carried[_Fate]:
        """The fate of the entry of a key and a specification."""
        return Carried(
            key.digest.hex,
            spec.state.value,
            spec.digest.hex,
            spec.cpu_level,
            size,
            kernel,
            fate,
            reason,
        )

    def document(self) -> dict[str, object]:
        """How it reads in JSON."""
        return {
            "key": self.key,
            "kernel": self.kernel or None,
            "state": self.state,
            "cpu_level": self.cpu_level,
            "spec": self.spec,
            "size": self.size,
            "fate": self.fate.value,
            "reason": self.reason or None,
        }


@dataclass(frozen=True, slots=True)
class Stopped:
    """Why a command did not go on. left: entries that it did not come to."""

    reason: str
    left: int


def counts(carried: Iterable[Carried[_Fate]], fates: type[_Fate]) -> dict[str, int]:
    """How many entries had each fate."""
    found = {fate.value: 0 for fate in fates}
    for item in carried:
        found[item.fate.value] += 1
    return found


def painter(
    carried: Sequence[Carried[_Fate]], fates: type[_Fate], further: Sequence[str]
) -> Callable[[Console], None]:
    """Shows the counts, `further` lines, and each entry that there is a reason to name."""

    def paint(console: Console) -> None:
        told = ", ".join(
            f"{count} {fate}" for fate, count in counts(carried, fates).items() if count
        )
        size = size_text(sum(item.size for item in carried))
        console.print(f"{len(carried)} entries, {size}: {told or 'nothing to do'}")
        for line in further:
            console.print(plain(line))
        reasons = [item for item in carried if item.reason]
        for item in reasons[:_SHOWN]:
            name = f"{item.key[:_KEY_DIGITS]} {item.state}"
            console.print(plain(f"{name}, {item.fate.value}: {item.reason}", "red"), soft_wrap=True)
        if len(reasons) > _SHOWN:
            console.print(f"and {len(reasons) - _SHOWN} more, which --json names")

    return paint
