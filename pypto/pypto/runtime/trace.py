"""When the tasks of a run ran, and on which core."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TraceSpan:
    """One part of a task on one core. Times are nanoseconds since the run began.

    ``task`` numbers the tasks of the run in the order they were submitted, ``core`` is a core's
    name such as ``"aiv3"``, and ``waits_for`` are the tasks that had to end before.
    """

    name: str
    core: str
    task: int
    start_ns: int
    end_ns: int
    waits_for: tuple[int, ...] = ()

    @property
    def duration_ns(self) -> int:
        """How long the part ran."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class TraceInvocation:
    """One run: its spans in the order they began."""

    platform: str
    spans: tuple[TraceSpan, ...]

    @property
    def duration_ns(self) -> int:
        """From the beginning of the run to the end of its last span."""
        return max((span.end_ns for span in self.spans), default=0)
