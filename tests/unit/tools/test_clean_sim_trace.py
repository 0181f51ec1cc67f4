"""`python -m pypto.tools.clean_sim_trace`: what it reads, what it makes of it, how it ends."""

from __future__ import annotations

import json

import pytest
from pypto.tools.clean_sim_trace import Summary, chrome_trace, main, summaries
from pypto.tools.sim_trace import read
from pypto_store.tools.terminal import SilentProgress

TASKS = [
    {"id": 2, "name": "rows", "core": "aiv10", "start": 3000, "end": 5000, "deps": [1], "block": 0},
    {"id": 1, "name": "product", "core": "aic0", "start": 1000, "end": 3000},
    {"id": 3, "name": "rows", "core": "aiv2", "start": 3500, "end": 4500, "deps": [1, 7]},
]


def recording(**change):
    document = {
        "schema": 1, "kind": "chip_swimlane", "platform": "a2a3sim", "runtime": "host_build_graph",
        "clock": "ns", "tasks": TASKS,
    }  # fmt: skip
    return json.dumps({**document, **change})


@pytest.fixture
def build(tmp_path):
    directory = tmp_path / "build"
    (directory / "dfx_outputs").mkdir(parents=True)
    (directory / "dfx_outputs" / "chip_swimlane.json").write_text(recording())
    (directory / "dfx_outputs" / "args.json").write_text('{"kind": "dump_args"}')
    return directory


def test_tasks_come_in_time_and_cores_by_number(build):
    (run,) = read(build, SilentProgress())
    assert [task.number for task in run.tasks] == [1, 2, 3]
    assert run.cores == ["aic0", "aiv2", "aiv10"]
    assert run.span == 4000
    assert read(build / "dfx_outputs" / "chip_swimlane.json", SilentProgress()) == (run,)


def test_kernels_with_the_most_time_come_first(build):
    (run,) = read(build, SilentProgress())
    assert summaries(run) == [
        Summary("rows", ("aiv2", "aiv10"), tasks=2, total=3000, longest=2000),
        Summary("product", ("aic0",), tasks=1, total=2000, longest=2000),
    ]


@pytest.mark.conforms("entry.48")
def test_the_trace_has_a_thread_for_each_core_and_an_arrow_for_each_wait(build):
    events = chrome_trace(read(build, SilentProgress()))["traceEvents"]
    threads = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    work = [(threads[e["tid"]], e["name"], e["ts"], e["dur"]) for e in events if e["ph"] == "X"]
    assert work == [
        ("aic0", "product", 1.0, 2.0), ("aiv10", "rows", 3.0, 2.0), ("aiv2", "rows", 3.5, 1.0),
    ]  # fmt: skip
    begun, ended = ([e for e in events if e["ph"] == kind] for kind in "sf")
    # The seventh task was not recorded: nothing leads from it.
    assert [(threads[e["tid"]], e["ts"]) for e in begun] == [("aic0", 3.0)] * 2
    assert [(threads[e["tid"]], e["ts"]) for e in ended] == [("aiv10", 3.0), ("aiv2", 3.5)]
    assert [e["id"] for e in begun] == [e["id"] for e in ended] == ["1.1", "1.2"]


@pytest.mark.conforms("entry.48")
def test_the_command_writes_the_trace_and_says_what_took_long(build, told):
    status, out, err = told(main, [build])
    assert (status, err) == (0, "")
    path = build / "dfx_outputs" / "trace" / "sim_trace.json"
    assert json.loads(path.read_text())["traceEvents"]
    assert f"wrote {path}" in out
    assert "3 tasks in 4.0 us" in out
    assert max(map(len, out.splitlines()[:-1])) <= 100
    assert told(main, [build])[0] == 0, "what was written is not read as a recording"


def test_the_answer_is_json_if_asked(build, told):
    status, out, _ = told(main, [build, "--json"])
    document = json.loads(out)
    assert (status, document["trace"]) == (0, None)
    (run,) = document["runs"]
    assert run["cores"][0] == {"core": "aic0", "busy_ns": 2000}
    assert run["kernels"][1]["longest_ns"] == 2000


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("{", "not valid JSON"),
        (recording(schema=3), "schema is 3, but this reads 1"),
        (recording(tasks={}), "tasks must be an array"),
        (recording(tasks=[{**TASKS[0], "end": 1}]), r"tasks[0] ends before it starts"),
        (recording(tasks=[{**TASKS[0], "core": 3}]), r"tasks[0].core must be a non-empty string"),
        ('{"kind": "pmu"}', "no recording of kind chip_swimlane"),
    ],
)
def test_a_file_that_is_no_recording_is_one_clear_line(tmp_path, told, content, text):
    file = tmp_path / "file.json"
    file.write_text(content)
    status, out, err = told(main, [file])
    assert (status, out) == (2, "")
    assert text in err
    assert str(file) in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(("name", "text"), [("no", "no such"), ("empty", "enable_chip_swimlane")])
def test_a_directory_without_recordings_is_one_clear_line(tmp_path, told, name, text):
    (tmp_path / "empty").mkdir()
    status, _, err = told(main, [tmp_path / name])
    assert status == 2
    assert text in err


def test_a_task_in_parts_is_waited_for_until_the_last_is_done(build):
    parts = [
        {"id": 1, "name": "a", "core": "aiv0", "start": 0, "end": 9000, "block": 0},
        {"id": 1, "name": "a", "core": "aiv1", "start": 10, "end": 4000, "block": 1},
        {"id": 2, "name": "b", "core": "aiv1", "start": 9500, "end": 9900, "deps": [1]},
    ]
    (build / "dfx_outputs" / "chip_swimlane.json").write_text(recording(tasks=parts))
    events = chrome_trace(read(build, SilentProgress()))["traceEvents"]
    assert [event["ts"] for event in events if event["ph"] == "s"] == [9.0]
