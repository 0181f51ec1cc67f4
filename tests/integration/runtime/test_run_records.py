"""Diagnostics of a dispatch report what the run did, and change nothing of it."""

from __future__ import annotations

import itertools
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from compiled_kernels import tagged
from pypto import ir
from pypto.backend import RuntimeKind
from pypto.runtime import ChipWorker, DfxOptions, KernelFault, RunConfig
from pypto.runtime.compiled_program import CompiledProgram

Scale = Callable[..., Path]

KINDS = {
    "enable_chip_swimlane": "chip_swimlane",
    "enable_pmu": "pmu",
    "enable_dep_gen": "dep_graph",
    "enable_scope_stats": "scope_stats",
    "enable_dump_args": "args_dump",
}


def _report(directory: Path, kind: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((directory / f"dfx_outputs/{kind}.json").read_text())
    assert (document["schema"], document["kind"]) == (1, kind)
    assert document["platform"] == "a2a3sim"
    return document


@pytest.mark.parametrize("option", sorted(KINDS))
def test_each_option_writes_its_own_file_and_no_other(scale: Scale, option: str) -> None:
    directory = scale(1)
    compiled = CompiledProgram.from_dir(directory)
    out = torch.zeros(4)
    compiled(torch.ones(4), 2.0, 0, out, config=RunConfig(**{option: True}))  # type: ignore[arg-type]
    assert out.tolist() == [3.0] * 4
    written = {path.stem for path in (directory / "dfx_outputs").glob("*.json")}
    assert written == {KINDS[option]}
    _report(directory, KINDS[option])


def test_nothing_is_written_without_an_option(scale: Scale) -> None:
    directory = scale()
    compiled = CompiledProgram.from_dir(directory)
    compiled(torch.ones(4), 2.0, 0, torch.zeros(4), config=RunConfig())
    assert not (directory / "dfx_outputs").exists()


@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_a_timeline_has_every_task_on_one_core_in_its_order(slow: Path, level: int) -> None:
    CompiledProgram.from_dir(slow)(4, torch.zeros(1), config=RunConfig(enable_chip_swimlane=level))
    tasks = _report(slow, "chip_swimlane")["tasks"]
    own = [task for task in tasks if task["core"].startswith("aiv")]
    assert [task["id"] for task in own] == [0, 1, 2, 3]
    assert {task["name"] for task in own} == {"slow"}
    # Each sleeps for two milliseconds and waits for the one before.
    assert all(task["end"] - task["start"] >= 2_000_000 for task in own)
    assert all(one["end"] <= next_["start"] for one, next_ in itertools.pairwise(own))
    edges = [task.get("deps") for task in own]
    assert edges == ([[], [0], [1], [2]] if level >= 2 else [None] * 4)
    assert bool([task for task in tasks if task["core"] == "aicpu"]) is (level >= 3)
    assert all(("counters" in task) is (level >= 4) for task in own)


@pytest.mark.parametrize("runtime", list(RuntimeKind))
def test_the_graph_says_who_waited_for_whom(slow: Path, runtime: RuntimeKind) -> None:
    config = json.loads((slow / "kernel_config.json").read_text())
    config["runtime"] = runtime.value
    (slow / "kernel_config.json").write_text(json.dumps(config))
    CompiledProgram.from_dir(slow)(3, torch.zeros(1), config=RunConfig(enable_dep_gen=True))
    document = _report(slow, "dep_graph")
    assert document["runtime"] == runtime.value
    assert [task["waits_for"] for task in document["tasks"]] == [[], [0], [1]]
    assert {tuple(task["kernels"]) for task in document["tasks"]} == {("slow",)}
    dot = (slow / "dfx_outputs/dep_graph.dot").read_text()
    assert "t0 -> t1;" in dot and "t1 -> t2;" in dot and "t0 -> t2" not in dot


def test_counters_are_of_the_tasks(slow: Path) -> None:
    compiled = CompiledProgram.from_dir(slow)
    compiled(3, torch.zeros(1), config=RunConfig(enable_pmu=1))
    document = _report(slow, "pmu")
    spans = document["spans"]
    assert len(spans) == 3
    # It sleeps: the clock goes on and the processor does not.
    assert all(span["wall_ns"] >= 2_000_000 > span["cpu_ns"] > 0 for span in spans)
    assert document["kernels"]["slow"]["wall_ns"] == sum(span["wall_ns"] for span in spans)
    assert "bytes_read" not in spans[0]
    compiled(3, torch.zeros(1), config=RunConfig(enable_pmu=2))
    span = _report(slow, "pmu")["spans"][0]
    assert (span["bytes_read"], span["bytes_written"]) == (4, 4)


def test_instructions_are_counted(scale: Scale) -> None:
    directory = scale()
    compiled = CompiledProgram.from_dir(directory)
    compiled(torch.ones(4), 2.0, 0, torch.zeros(4), config=RunConfig(enable_pmu=1))
    # The kernel says once where it comes from.
    assert _report(directory, "pmu")["spans"][0]["instructions"] == 1


def test_scopes_tell_their_tasks_and_the_most_in_use(slow: Path) -> None:
    CompiledProgram.from_dir(slow)(5, torch.zeros(1), config=RunConfig(enable_scope_stats=True))
    document = _report(slow, "scope_stats")
    assert document["tasks"] == sum(scope["tasks"] for scope in document["scopes"]) == 5
    assert document["scopes"][0]["depth"] == 0
    assert 1 <= document["most_tasks_in_ring"] <= 5
    assert document["duration_ns"] >= 10_000_000


def test_arguments_are_dumped_as_the_task_met_and_left_them(slow: Path) -> None:
    compiled = CompiledProgram.from_dir(slow)
    compiled(2, torch.tensor([7.0]), config=RunConfig(enable_dump_args=2))
    document = _report(slow, "args_dump")
    tensor = document["tasks"][1]["tensors"][0]
    assert (tensor["direction"], tensor["dtype"], tensor["shape"]) == ("InOut", "fp32", [1])
    values = [
        struct.unpack("<f", (slow / "dfx_outputs" / tensor[when]).read_bytes())[0]
        for when in ("before", "after")
    ]
    assert values == [8.0, 9.0]
    compiled(1, torch.tensor([7.0]), config=RunConfig(enable_dump_args=1))
    left = {path.name for path in (slow / "dfx_outputs/args_dump").iterdir()}
    assert left == {"task0_arg0_before.bin", "task0_arg0_after.bin"}


@pytest.mark.conforms("language.79")
def test_what_a_program_tags_is_dumped_alone_unless_all_is_asked_for(tmp_path: Path) -> None:
    compiled = ir.compile(tagged.specialize(), output_dir=tmp_path / "out", dump_passes=False)
    arguments = [torch.ones(16, 64), torch.zeros(16, 64), torch.zeros(16, 64)]
    files = []
    for level in (1, 2):
        compiled(*arguments, config=RunConfig(enable_dump_args=level))
        files.append({path.name for path in (tmp_path / "out/dfx_outputs/args_dump").iterdir()})
    assert files[0] == {"task1_arg1_after.bin"}
    assert files[1] == files[0] | {
        "task0_arg0_before.bin",
        "task0_arg1_after.bin",
        "task1_arg0_before.bin",
    }
    contents = (tmp_path / "out/dfx_outputs/args_dump/task1_arg1_after.bin").read_bytes()
    assert struct.unpack("<1024f", contents) == (4.0,) * 1024


def test_scalars_are_dumped_as_their_bits(scale: Scale) -> None:
    directory = scale()
    compiled = CompiledProgram.from_dir(directory)
    compiled(torch.ones(4), 2.0, 0, torch.zeros(4), config=RunConfig(enable_dump_args=1))
    task = _report(directory, "args_dump")["tasks"][0]
    assert task["scalars"] == ["0x0000000040000000", "0x0000000000000000"]
    assert "before" not in task["tensors"][1] and "after" in task["tensors"][1]


@pytest.mark.conforms("entry.21", "entry.33")
def test_a_worker_and_a_directory_record_too(scale: Scale) -> None:
    directory = scale()
    with ChipWorker(RunConfig(enable_dep_gen=True)) as worker:
        worker.run(CompiledProgram.from_dir(directory), torch.ones(4), 2.0, 0, torch.zeros(4))
    assert len(_report(directory, "dep_graph")["tasks"]) == 1
    assert DfxOptions(enable_pmu=2).as_kwargs()["enable_pmu"] == 2


def test_a_recorded_run_checks_and_fails_like_another(scale: Scale) -> None:
    compiled = CompiledProgram.from_dir(scale())
    config = RunConfig(enable_pmu=1)
    with pytest.raises(TypeError, match="'x'"):
        compiled(1.0, 2.0, 0, torch.zeros(4), config=config)
    with pytest.raises(KernelFault, match="row 9 of 8") as caught:
        compiled(torch.ones(4), 2.0, 1, torch.zeros(4), config=config)
    assert caught.value.kernel == "scale"
    assert not (compiled.output_dir / "dfx_outputs").exists()
    out = torch.zeros(4)
    compiled(torch.ones(4), 2.0, 0, out, config=config)
    assert out.tolist() == [2.0] * 4
