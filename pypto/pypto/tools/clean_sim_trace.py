"""``python -m pypto.tools.clean_sim_trace``: recordings of the simulator as readable traces."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pypto.runtime.run_records import DIRECTORY
from pypto.runtime.swimlane import LaneTask
from pypto.tools import sim_trace
from pypto.tools.command import Command
from pypto.tools.sim_trace import Run
from pypto_store.tools.terminal import plain, table

if TYPE_CHECKING:
    from rich.console import Console

TRACE = "sim_trace.json"


@dataclass(frozen=True, slots=True)
class Summary:
    """What the tasks of one kernel came to in one run; times are nanoseconds."""

    name: str
    cores: tuple[str, ...]
    tasks: int
    total: int
    longest: int


def summaries(run: Run) -> list[Summary]:
    """The kernels of a run, that with the most time first."""
    names = dict.fromkeys(task.name for task in run.tasks)
    made = []
    for name in names:
        tasks = [task for task in run.tasks if task.name == name]
        durations = [task.duration for task in tasks]
        used = {task.core for task in tasks}
        made.append(
            Summary(
                name=name,
                cores=tuple(core for core in run.cores if core in used),
                tasks=len(tasks),
                total=sum(durations),
                longest=max(durations),
            )
        )
    return sorted(made, key=lambda summary: (-summary.total, summary.name))


def chrome_trace(runs: Sequence[Run]) -> dict[str, object]:
    """The runs in the trace event format: a process for each, a thread for each core.

    Times are microseconds. An arrow leads from the end of a task to the start of each that waited
    for it.
    """
    events: list[dict[str, object]] = []
    for process, run in enumerate(runs, start=1):
        threads = {core: number for number, core in enumerate(run.cores, start=1)}
        events += _named(run, process, threads)
        events += (_worked(task, process, threads[task.core]) for task in run.tasks)
        events += _waited(run, process, threads)
    return {"displayTimeUnit": "ns", "traceEvents": events}


def _named(run: Run, process: int, threads: Mapping[str, int]) -> Iterator[dict[str, object]]:
    title = " ".join(filter(None, (run.file, run.platform, run.runtime)))
    yield {"ph": "M", "name": "process_name", "pid": process, "args": {"name": title}}
    for core, thread in threads.items():
        about = {"ph": "M", "pid": process, "tid": thread}
        yield {"name": "thread_name", **about, "args": {"name": core}}
        yield {"name": "thread_sort_index", **about, "args": {"sort_index": thread}}


def _worked(task: LaneTask, process: int, thread: int) -> dict[str, object]:
    told = {"task": task.number, "block": task.block, "deps": list(task.deps or ()) or None}
    return {
        "ph": "X",
        "name": task.name,
        "cat": "task",
        "pid": process,
        "tid": thread,
        "ts": task.start / 1e3,
        "dur": task.duration / 1e3,
        "args": {name: value for name, value in told.items() if value is not None},
    }


def _waited(run: Run, process: int, threads: Mapping[str, int]) -> Iterator[dict[str, object]]:
    # A task may have run in several parts; it is done when the last of them is.
    done: dict[int, LaneTask] = {}
    for task in run.tasks:
        if task.number is not None and task.end >= done.get(task.number, task).end:
            done[task.number] = task
    pairs = (
        (done[number], task) for task in run.tasks for number in task.deps or () if number in done
    )
    for arrow, (before, after) in enumerate(pairs, start=1):
        same = {"name": "waits for", "cat": "dep", "id": f"{process}.{arrow}", "pid": process}
        yield {"ph": "s", **same, "tid": threads[before.core], "ts": before.end / 1e3}
        yield {"ph": "f", "bp": "e", **same, "tid": threads[after.core], "ts": after.start / 1e3}


def _busy(run: Run) -> list[tuple[str, int]]:
    """The nanoseconds that each core worked."""
    return [
        (core, sum(task.duration for task in run.tasks if task.core == core)) for core in run.cores
    ]


@dataclass(frozen=True, slots=True)
class _Recordings:
    """The runs that a path names."""

    path: Path
    runs: tuple[Run, ...]

    @property
    def place(self) -> Path:
        beside = self.path if self.path.is_dir() else self.path.parent
        if (beside / DIRECTORY).is_dir():
            beside /= DIRECTORY
        # In a directory of its own: what lies beside the recordings would be read as one.
        return beside / "trace" / TRACE

    def text(self) -> str:
        return json.dumps(chrome_trace(self.runs), separators=(",", ":")) + "\n"

    def document(self, written: str | None) -> dict[str, object]:
        return {"schema_version": 1, "trace": written, "runs": [_run(run) for run in self.runs]}

    def paint(self, console: Console) -> None:
        for run in self.runs:
            _paint(console, run)


def _run(run: Run) -> dict[str, object]:
    return {
        "file": run.file,
        "platform": run.platform,
        "runtime": run.runtime,
        "tasks": len(run.tasks),
        "span_ns": run.span,
        "cores": [{"core": core, "busy_ns": busy} for core, busy in _busy(run)],
        "kernels": [
            {
                "name": one.name,
                "cores": list(one.cores),
                "tasks": one.tasks,
                "total_ns": one.total,
                "longest_ns": one.longest,
            }
            for one in summaries(run)
        ],
    }


def _paint(console: Console, run: Run) -> None:
    about = " ".join(filter(None, (run.platform, run.runtime)))
    console.print(
        plain(f"{run.file} ({about}): {len(run.tasks)} tasks in {run.span / 1e3:,.1f} us")
    )
    numbers = ("tasks", "total us", "mean us", "longest us")
    kernels = table("kernel", "cores", *numbers, right=numbers)
    for one in summaries(run):
        times = (one.total, one.total / one.tasks, one.longest)
        kernels.add_row(
            plain(one.name),
            plain(" ".join(one.cores)),
            str(one.tasks),
            *(f"{time / 1e3:,.1f}" for time in times),
        )
    console.print(kernels)
    cores = table("core", "busy us", "busy", right=("busy us", "busy"))
    for core, busy in _busy(run):
        share = f"{busy / run.span:.0%}" if run.span else ""
        cores.add_row(plain(core), f"{busy / 1e3:,.1f}", share)
    console.print(cores)


COMMAND = Command(
    program="python -m pypto.tools.clean_sim_trace",
    description="Turn what the simulator recorded of runs into a trace in Chrome's format, for "
    "chrome://tracing or ui.perfetto.dev, and say which kernels took how long.",
    epilog="Runs are recorded with RunConfig(enable_chip_swimlane=True). Times are those of the "
    "simulation on this machine, not of a chip.",
    path="path",
    path_help="a build directory, its dfx_outputs, or one file",
    made="trace",
    default=f"{TRACE} beside the recordings",
    told="summary",
    answer=lambda path, progress: _Recordings(path, sim_trace.read(path, progress)),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry of the command; gives the exit status."""
    return COMMAND.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
