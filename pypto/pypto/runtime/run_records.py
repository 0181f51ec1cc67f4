"""What a run did, in the files that diagnostics of a dispatch ask for.

They lie in ``dfx_outputs/`` of the program's directory and are those of its last run::

    chip_swimlane.json   enable_chip_swimlane: when each task ran, and on which core
    pmu.json             enable_pmu: what each task cost
    dep_graph.json       enable_dep_gen: tasks, and which waited for which
    dep_graph.dot        the same for graphviz
    scope_stats.json     enable_scope_stats: tasks and memory of each scope, and the most in use
    args_dump.json       enable_dump_args: the arguments of each task
    args_dump/*.bin      contents of tensors: elements in row order, little-endian

Every JSON file has ``schema`` 1, ``kind`` (its name without the suffix), ``platform`` and
``runtime``. Tasks are numbered in the order they were submitted, times are nanoseconds since the
run began.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto.ir.dtypes import DTYPES
from pypto.runtime import swimlane
from pypto.runtime.options import DfxOptions
from pypto.runtime.swimlane import LaneTask, Swimlane
from pypto.runtime.trace import TraceInvocation, TraceSpan
from pypto.runtime.whole_file import replace_file

DIRECTORY = "dfx_outputs"
ARGUMENTS = "args_dump"

SCHEMA = 1

# From these levels on a swimlane has more in it.
_LANE_WITH_EDGES, _LANE_WITH_SCOPES, _LANE_WITH_COUNTERS = 2, 3, 4
# From this level on counters include the sizes of a task's tensors.
_PMU_WITH_BYTES = 2
# From this level on arguments are dumped whatever the program tags.
_DUMP_ALL = 2

_DTYPES = {dtype.abi_code: dtype for dtype in DTYPES}

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """The native record of one run of a program, and the names of its kernels by number."""

    record: Record
    kernels: Sequence[str]
    platform: str
    runtime: str

    def trace(self) -> TraceInvocation:
        """When each part of a task ran."""
        return TraceInvocation(self.platform, tuple(self._span(s) for s in self._spans()))

    def _spans(self) -> list[Record]:
        return sorted(self.record["spans"], key=lambda span: (span["start_ns"], span["core"]))

    def _span(self, span: Record) -> TraceSpan:
        return TraceSpan(
            self.kernel(span["kernel"]),
            span["core"],
            span["task"],
            span["start_ns"],
            span["end_ns"],
            tuple(self.record["tasks"][span["task"]]["waits_for"]),
        )

    def kernel(self, number: int) -> str:
        """The name of a kernel."""
        return self.kernels[number] if 0 <= number < len(self.kernels) else str(number)

    def lane(self, level: int) -> Swimlane:
        """One entry for each part of a task on a core."""
        tasks = [
            LaneTask(
                name=trace.name,
                core=trace.core,
                start=trace.start_ns,
                end=trace.end_ns,
                number=trace.task,
                block=span["first_block"],
                blocks=span["blocks"],
                deps=trace.waits_for if level >= _LANE_WITH_EDGES else None,
                counters=_counters(span) if level >= _LANE_WITH_COUNTERS else None,
            )
            for trace, span in zip(self.trace().spans, self._spans(), strict=True)
        ]
        if level >= _LANE_WITH_SCOPES:
            tasks += [
                LaneTask(f"scope {index}", "aicpu", scope["begin_ns"], scope["end_ns"])
                for index, scope in enumerate(self.record["scopes"])
            ]
        return Swimlane(self.platform, self.runtime, tuple(tasks))

    def counters(self, level: int) -> dict[str, Any]:
        """What each part of a task cost, and what all parts of a kernel did."""
        spans = []
        totals: dict[str, dict[str, int]] = {}
        for span in self._spans():
            counted = _counters(span)
            if level >= _PMU_WITH_BYTES:
                counted |= _bytes(self.record["tasks"][span["task"]])
            name = self.kernel(span["kernel"])
            spans.append({"task": span["task"], "kernel": name, "core": span["core"], **counted})
            total = totals.setdefault(name, dict.fromkeys(counted, 0))
            for counter, value in counted.items():
                total[counter] += value
        return {"spans": spans, "kernels": totals}

    def graph(self) -> dict[str, Any]:
        """The tasks, and for each those that it waited for."""
        tasks = [
            {
                "id": number,
                "kernels": [self.kernel(kernel) for kernel in task["kernels"]],
                "blocks": task["blocks"],
                "scope": task["scope"],
                "submitted": task["submitted_ns"],
                "waits_for": task["waits_for"],
            }
            for number, task in enumerate(self.record["tasks"])
        ]
        return {"tasks": tasks}

    def dot(self) -> str:
        """The graph in graphviz's language."""
        lines = ["digraph tasks {"]
        for number, task in enumerate(self.record["tasks"]):
            name = " + ".join(self.kernel(kernel) for kernel in task["kernels"])
            lines.append(f'  t{number} [label="{number}: {name}"];')
            lines += [f"  t{earlier} -> t{number};" for earlier in task["waits_for"]]
        return "\n".join([*lines, "}"]) + "\n"

    def scopes(self) -> dict[str, Any]:
        """Figures of every scope, and of the run as a whole."""
        scopes = [{"id": index, **scope} for index, scope in enumerate(self.record["scopes"])]
        return {
            "scopes": scopes,
            "tasks": len(self.record["tasks"]),
            "most_tasks_in_ring": self.record["most_tasks"],
            "most_bytes_in_heap": self.record["most_bytes"],
            "duration_ns": self.record["duration_ns"],
        }

    def arguments(self, level: int) -> tuple[dict[str, Any], dict[str, bytes]]:
        """The arguments of the tasks, and the contents of tensors by file name."""
        tagged = level < _DUMP_ALL and any(task["dumps"] for task in self.record["tasks"])
        tasks, files = [], {}
        for number, task in enumerate(self.record["tasks"]):
            tensors = [_tensor(tensor) for tensor in task["tensors"]]
            for index, after, data in task["contents"]:
                if tagged and not task["dumps"] >> index & 1:
                    continue
                when = "after" if after else "before"
                name = f"task{number}_arg{index}_{when}.bin"
                files[name] = data
                tensors[index][when] = f"{ARGUMENTS}/{name}"
            name = " + ".join(self.kernel(kernel) for kernel in task["kernels"])
            scalars = [f"0x{bits:016x}" for bits in task["scalars"]]
            tasks.append({"id": number, "name": name, "tensors": tensors, "scalars": scalars})
        return {"tasks": tasks}, files

    def write(self, dfx: DfxOptions, directory: Path) -> None:
        """Put the files that ``dfx`` asks for into ``directory``, each whole."""
        directory.mkdir(parents=True, exist_ok=True)
        if dfx.enable_chip_swimlane:
            lane = self.lane(dfx.enable_chip_swimlane)
            replace_file(directory / swimlane.FILE_NAME, lane.to_json())
        if dfx.enable_pmu:
            self._put(directory, "pmu", self.counters(dfx.enable_pmu))
        if dfx.enable_dep_gen:
            self._put(directory, "dep_graph", self.graph())
            replace_file(directory / "dep_graph.dot", self.dot().encode())
        if dfx.enable_scope_stats:
            self._put(directory, "scope_stats", self.scopes())
        if dfx.enable_dump_args:
            self._put_arguments(directory, dfx.enable_dump_args)

    def _put(self, directory: Path, kind: str, content: Mapping[str, Any]) -> None:
        document = {
            "schema": SCHEMA,
            "kind": kind,
            "platform": self.platform,
            "runtime": self.runtime,
            **content,
        }
        replace_file(directory / f"{kind}.json", (json.dumps(document, indent=1) + "\n").encode())

    def _put_arguments(self, directory: Path, level: int) -> None:
        index, files = self.arguments(level)
        place = directory / ARGUMENTS
        place.mkdir(exist_ok=True)
        for name, data in files.items():
            replace_file(place / name, data)
        self._put(directory, ARGUMENTS, index)
        # Now that the index no longer names them.
        for path in place.glob("*.bin"):
            if path.name not in files:
                path.unlink()


def _counters(span: Record) -> dict[str, int]:
    return {
        "wall_ns": span["end_ns"] - span["start_ns"],
        "cpu_ns": span["cpu_ns"],
        "instructions": span["instructions"],
    }


def _bytes(task: Record) -> dict[str, int]:
    found = {"bytes_read": 0, "bytes_written": 0}
    for tensor in task["tensors"]:
        size = _DTYPES[tensor["dtype"]].get_byte()
        for extent in tensor["shape"]:
            size *= extent
        if tensor["direction"] != "Out":
            found["bytes_read"] += size
        if tensor["direction"] in ("Out", "InOut"):
            found["bytes_written"] += size
    return found


def _tensor(tensor: Record) -> dict[str, Any]:
    return {
        "direction": tensor["direction"],
        "dtype": _DTYPES[tensor["dtype"]].name,
        "shape": tensor["shape"],
        "strides": tensor["strides"],
        "address": f"0x{tensor['address']:x}",
        "offset": tensor["offset"],
    }


# Is given the native record of each run.
Recorder = Callable[[Record], None]


def recorder(
    dfx: DfxOptions, directory: Path, kernels: Sequence[str], platform: str, runtime: str
) -> Recorder:
    """Writes what ``dfx`` asks for into ``dfx_outputs`` of ``directory`` after each run."""
    from pypto.runtime.host import process_log

    def write(record: Record) -> None:
        RecordedRun(record, kernels, platform, runtime).write(dfx, directory / DIRECTORY)
        process_log().tell("info", "records of the run are in %s", directory / DIRECTORY)

    return write
