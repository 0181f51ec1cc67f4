"""Files that describe a run: each is replaced whole, and read by the module that writes it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pypto.ir.dtypes import FP32
from pypto.runtime.options import DfxOptions
from pypto.runtime.run_records import RecordedRun
from pypto.runtime.swimlane import LaneTask, Swimlane
from pypto.runtime.whole_file import replace_file
from pypto_toolchains.json_fields import FieldError

EVERYTHING = DfxOptions(
    enable_chip_swimlane=4,
    enable_dump_args=2,
    enable_pmu=2,
    enable_dep_gen=True,
    enable_scope_stats=True,
)


def _record(value: float) -> dict[str, Any]:
    """Two tasks, of which the second waited for the first; each dumps one tensor of one element."""
    tensor = {
        "direction": "InOut",
        "dtype": FP32.abi_code,
        "shape": [1],
        "strides": [1],
        "address": 4096,
        "offset": 0,
    }
    numbers = {"cpu_ns": 5, "instructions": 7, "first_block": 0, "blocks": 1, "kernel": 0}
    return {
        "spans": [
            {"core": "aiv1", "task": 1, "start_ns": 20, "end_ns": 30, **numbers},
            {"core": "aiv0", "task": 0, "start_ns": 0, "end_ns": 10, **numbers},
        ],
        "tasks": [
            {
                "kernels": [0],
                "blocks": 1,
                "scope": 0,
                "submitted_ns": int(value),
                "waits_for": list(range(number)),
                "tensors": [tensor],
                "scalars": [int(value)],
                "dumps": 0,
                "contents": [(0, True, str(value).encode())],
            }
            for number in range(2)
        ],
        "scopes": [{"begin_ns": 0, "end_ns": 40, "tasks": 2}],
        "most_tasks": 2,
        "most_bytes": int(value),
        "duration_ns": 40,
    }


def _run(value: float) -> RecordedRun:
    return RecordedRun(_record(value), [f"kernel{value:g}"], "a2a3sim", "host_build_graph")


def _held(directory: Path) -> dict[str, Callable[[], bytes]]:
    """Readers of what every file holds that is open now, by its name."""
    found = {}
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        descriptor = os.open(path, os.O_RDONLY)
        found[str(path.relative_to(directory))] = lambda d=descriptor: os.pread(d, 1 << 20, 0)
    return found


def test_who_reads_a_record_of_a_run_keeps_it_while_another_run_writes(tmp_path: Path) -> None:
    _run(1.0).write(EVERYTHING, tmp_path)
    held = _held(tmp_path)
    assert {name.rpartition(".")[2] for name in held} == {"json", "dot", "bin"}
    assert len(held) == 8
    before = {name: read() for name, read in held.items()}
    _run(2.0).write(EVERYTHING, tmp_path)
    assert {name: read() for name, read in held.items()} == before
    after = {name: (tmp_path / name).read_bytes() for name in held}
    assert [name for name in held if after[name] == before[name]] == []
    assert sorted(held) == sorted(_held(tmp_path)), "nothing unfinished is left"


def test_an_index_of_arguments_names_only_files_that_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while the arguments of a run with fewer tasks take the place of the last run's."""
    run = _run(1.0)
    run.write(EVERYTHING, tmp_path)
    fewer = _record(2.0)
    fewer["tasks"], fewer["spans"] = fewer["tasks"][:1], fewer["spans"][1:]
    unlink, index = Path.unlink, tmp_path / "args_dump.json"

    def checked(path: Path, missing_ok: bool = False) -> None:
        if path.suffix == ".bin":
            assert path.name not in index.read_text()
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", checked)
    RecordedRun(fewer, ["kernel"], "a2a3sim", "host_build_graph").write(EVERYTHING, tmp_path)
    assert len(list((tmp_path / "args_dump").iterdir())) == 1


def test_a_file_that_cannot_be_written_keeps_its_content(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    replace_file(path, b"old")
    (tmp_path / "directory").mkdir()
    with pytest.raises(OSError):  # noqa: PT011  which error it is, the system says
        replace_file(tmp_path / "directory", b"new")
    assert path.read_bytes() == b"old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["directory", "file.json"]


def test_threads_may_write_the_same_file(tmp_path: Path) -> None:
    path, contents = tmp_path / "file", [bytes([65 + n]) * 50_000 for n in range(8)]
    failed: list[Exception] = []

    def write(content: bytes) -> None:
        try:
            for _ in range(20):
                replace_file(path, content)
                assert path.read_bytes() in contents
        except Exception as error:  # noqa: BLE001  told below, in the thread of the test
            failed.append(error)

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_a_timeline_is_read_as_it_was_written(level: int) -> None:
    lane = _run(1.0).lane(level)
    assert Swimlane.parse(lane.to_json()) == lane
    first, second, *scopes = lane.tasks
    assert (first.name, first.core, first.number, first.duration) == ("kernel1", "aiv0", 0, 10)
    assert second.deps == ((0,) if level >= 2 else None)
    assert scopes == ([LaneTask("scope 0", "aicpu", 0, 40)] if level >= 3 else [])
    counters = {"wall_ns": 10, "cpu_ns": 5, "instructions": 7}
    assert first.counters == (counters if level >= 4 else None)


def test_other_recordings_and_damage_are_told_apart() -> None:
    assert Swimlane.parse(b'{"kind": "pmu"}') is None
    with pytest.raises(FieldError, match="schema is 2, but this reads 1"):
        Swimlane.parse(b'{"kind": "chip_swimlane", "schema": 2}')
    with pytest.raises(FieldError, match=r"tasks\[0\]\.deps must be an integer"):
        Swimlane.parse(
            b'{"kind": "chip_swimlane", "schema": 1, "tasks": '
            b'[{"name": "k", "core": "aiv0", "start": 0, "end": 1, "deps": ["1"]}]}'
        )
