"""``python -m pypto.jit warm`` and ``stat`` as their users run them."""

from __future__ import annotations

import fcntl
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pypto.jit.complete import complete
from pypto.jit.stat import stat

MORE = """

@pl.jit
def scaled(x: pl.Tensor, out: pl.Out[pl.Tensor], s: pl.Scalar[pl.FP32]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.store(pl.mul(pl.load(x, [0, 0], [16, 64]), s), [0, 0], out)
    return out


@pl.jit
def broken(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    out = unknown(x, out)
    return out
"""


def command(
    house: Any, *arguments: str, stdout: int = subprocess.PIPE, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(house.modules), *house.import_roots]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(house.top),
    }
    return subprocess.run(
        [sys.executable, "-m", "pypto.jit", *arguments],
        cwd=cwd or house.work,
        env=environ,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )


def configure(house: Any, *requests: dict[str, Any], **cache: Any) -> str:
    document = {
        "schema_version": 1,
        "cache": {"enabled": True, "root": "../cache", **cache},
        "requests": list(requests),
    }
    path = house.work / "warm.json"
    path.write_text(json.dumps(document))
    return str(path)


def warm(house: Any, *requests: dict[str, Any], **cache: Any) -> tuple[int, dict[str, Any], str]:
    config = configure(house, *requests, **cache)
    result = command(house, "warm", "--module", "kernels", "--config", config)
    return result.returncode, json.loads(result.stdout or "{}"), result.stderr


TENSOR = {"shape": [16, 64], "dtype": "FP32"}


def declared(**change: Any) -> dict[str, Any]:
    """A request whose `x` is not what the kernel declares."""
    return {"kernel": "kernel", "tensors": {"x": {**TENSOR, **change}, "out": TENSOR}}


@pytest.mark.conforms("cache.107", "cache.111")
def test_kernels_are_warmed_and_served(house: Any) -> None:
    house.write(house.KERNELS + MORE)
    status, report, err = warm(
        house,
        {"kernel": "kernel", "run_config": {"platform": "a2a3sim"}},
        {"kernel": "scaled", "tensors": {"x": TENSOR, "out": TENSOR}, "scalars": {"s": 2}},
    )
    assert status == 0, err
    rows = report["requests"]
    assert [(row["kernel"], row["status"], row["shared"]) for row in rows] == [
        ("kernel", "ok", True),
        ("scaled", "ok", True),
    ]
    assert report["statistics"]["binary_builds"] == 2
    assert house.run(house.WARM)["stats"]["ready_hits"] == 1
    listed = command(house, "stat", "--root", str(house.root))
    assert listed.returncode == 0
    stat = json.loads(listed.stdout)
    assert stat["schema_version"] == 1
    assert stat["totals"]["ready"] == stat["totals"]["generated"] == 2
    assert {row["key"] for row in rows} == {entry["key"] for entry in stat["entries"]}
    assert all(entry["bytes"] > 0 and entry["damage"] is None for entry in stat["entries"])


@pytest.mark.conforms("cache.106", "cache.107", "cache.108")
def test_one_bad_request_means_no_build_at_all(house: Any) -> None:
    house.write(house.KERNELS + MORE)
    for bad, word in (
        ({"kernel": "nothing"}, "nothing"),
        ({"kernel": "SCALE"}, "float"),
        ({"kernel": "helper"}, "helper"),
        ({"kernel": "scaled"}, "bare 'pl.Tensor'"),
        ({"kernel": "scaled", "tensors": {"x": TENSOR, "y": TENSOR}}, "'y'"),
        ({"kernel": "scaled", "tensors": {"x": TENSOR, "out": TENSOR}}, "'s'"),
        ({"kernel": "kernel", "tensors": {"x": {**TENSOR, "dtype": "FP64"}}}, "FP64"),
        (declared(dtype="FP16"), "fp16[16, 64]"),
        (declared(shape=[16, 65]), "fp32[16, 65]"),
        (declared(shape=[16]), "fp32[16]"),
    ):
        status, _, err = warm(house, {"kernel": "kernel"}, bad)
        assert status == 2
        assert word in err
        assert len(err.splitlines()) == 1
        assert not house.root.exists()
    status, _, err = warm(house, {"kernel": "no"}, {"kernel": "kernel"}, declared(shape=[1]))
    assert status == 2
    assert ["requests[0]" in line or "requests[2]" in line for line in err.splitlines()] == [
        True
    ] * 2


def test_what_the_module_prints_is_no_part_of_the_report(house: Any) -> None:
    noise = "print('loading')\n"
    house.write(noise + house.KERNELS)
    status, report, err = warm(house, {"kernel": "kernel"})
    assert (status, report["requests"][0]["status"]) == (0, "ok")
    assert "loading" in err


def test_a_module_that_ends_the_process_is_an_error(house: Any) -> None:
    house.write("import sys\nsys.exit(0)\n")
    status, _, err = warm(house, {"kernel": "kernel"})
    assert status == 2
    assert "SystemExit" in err
    house.write("raise KeyboardInterrupt\n")
    status, _, err = warm(house, {"kernel": "kernel"})
    assert (status, err) == (130, "error: interrupted\n")


def test_a_report_that_nobody_takes_is_no_traceback(filled: Any) -> None:
    reader, closed = os.pipe()
    os.close(reader)
    full = os.open("/dev/full", os.O_WRONLY)
    for out, told in ((full, "No space left"), (closed, "")):
        listed = command(filled, "stat", "--root", str(filled.root), stdout=out)
        os.close(out)
        assert listed.returncode == 1
        assert told in listed.stderr
        assert len(listed.stderr.splitlines()) == bool(told)


@pytest.mark.conforms("cache.111")
def test_a_failing_kernel_does_not_stop_the_others(house: Any) -> None:
    house.write(house.KERNELS + MORE)
    status, report, err = warm(house, {"kernel": "broken"}, {"kernel": "kernel"})
    assert status == 1
    assert [row["status"] for row in report["requests"]] == ["failed", "ok"]
    assert "unknown" in err


@pytest.mark.conforms("cache.111")
def test_a_private_result_is_reported_and_no_failure(filled: Any) -> None:
    filled.write(filled.KERNELS.replace("SCALE = 2.0", "SCALE = 9.0"))
    status, report, _ = warm(filled, {"kernel": "kernel"}, readonly=True)
    assert status == 0
    (row,) = report["requests"]
    assert (row["status"], row["shared"], row["key"]) == ("ok", False, None)
    assert "read-only" in row["reason"]


def test_a_configuration_that_keeps_nothing_says_so(house: Any) -> None:
    house.write(house.KERNELS)
    status, report, err = warm(house, {"kernel": "kernel"}, enabled=False)
    assert status == 0, err
    (row,) = report["requests"]
    assert not row["shared"]
    assert "persistence is off" in row["reason"]


def test_unusable_invocations_exit_with_two(house: Any) -> None:
    config = configure(house, {"kernel": "kernel"})
    for arguments in (
        ("warm", "--module", "no_such_module", "--config", config),
        ("warm", "--module", "kernels", "--config", str(house.work / "gone.json")),
        ("warm", "--module", "kernels"),
        ("stat", "--root", str(house.top / "gone")),
        ("other",),
    ):
        result = command(house, *arguments)
        assert result.returncode == 2, arguments
        assert result.stderr


@pytest.mark.conforms("cache.112")
def test_a_damaged_manifest_is_a_row(filled: Any) -> None:
    (ready,) = filled.slots("ready")
    manifest = ready / "artifact_manifest.json"
    manifest.chmod(0o644)
    manifest.write_text("{")
    before = filled.tree(filled.root)
    stat = json.loads(command(filled, "stat", "--root", str(filled.root)).stdout)
    assert stat["totals"]["damaged"] == 1
    (row,) = [entry for entry in stat["entries"] if entry["damage"]]
    assert row["state"] == "ready"
    assert filled.tree(filled.root) == before


@pytest.mark.conforms("cache.112")
def test_stat_imports_no_compiler_and_no_torch(filled: Any) -> None:
    script = (
        "import sys, pypto.jit.__main__ as m\n"
        f"m.main(['stat', '--root', {str(filled.root)!r}])\n"
        "loaded = [n for n in sys.modules if n in ('torch', 'pypto.compiler', 'pypto._native',\n"
        "    'pypto.language', 'pypto_store.publication')]\n"
        "sys.exit(f'loaded {loaded}' if loaded else 0)\n"
    )
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filled.import_roots)}
    result = subprocess.run(
        [sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.conforms("cache.107")
def test_paths_are_relative_to_the_file_and_not_to_the_directory_of_the_call(house: Any) -> None:
    (house.work / "more").mkdir()
    (house.work / "more" / "notes.txt").write_text("one")
    paths = {"root": "../cache", "extra_source_paths": ["more/notes.txt"]}
    config = configure(house, {"kernel": "kernel"}, **paths)
    keys = []
    for text, places in (("one", ("work", "modules")), ("two", ("modules",))):
        (house.work / "more" / "notes.txt").write_text(text)
        for place in places:
            result = command(
                house, "warm", "--module", "kernels", "--config", config, cwd=house.top / place
            )
            assert result.returncode == 0, result.stderr
            keys.append(json.loads(result.stdout)["requests"][0]["key"])
    assert keys[0] == keys[1] != keys[2]
    assert [path.name for path in house.top.glob("**/artifacts")] == ["artifacts"]
    assert house.root.is_dir()


@pytest.mark.conforms("cache.107")
def test_only_what_a_name_of_the_module_says_is_found(house: Any) -> None:
    house.write(house.KERNELS + "\n\nclass Inner:\n    hidden = kernel\n")
    for name in ("hidden", "Inner.hidden", "Inner", "pl"):
        status, _, err = warm(house, {"kernel": name})
        assert status == 2
        assert name in err
    assert not house.root.exists()


@pytest.mark.conforms("cache.108")
def test_a_tensor_of_terabytes_is_warmed(house: Any) -> None:
    house.write(house.KERNELS + MORE)
    huge = {"shape": [1 << 20, 1 << 20], "dtype": "FP32"}
    status, report, err = warm(
        house, {"kernel": "scaled", "tensors": {"x": huge, "out": huge}, "scalars": {"s": 2}}
    )
    assert status == 0, err
    assert report["requests"][0]["shared"]


@pytest.mark.conforms("cache.109")
def test_requests_that_differ_in_a_scalar_share_their_artifact(house: Any) -> None:
    house.write(house.KERNELS + MORE)
    status, report, err = warm(
        house,
        *(
            {"kernel": "scaled", "tensors": {"x": TENSOR, "out": TENSOR}, "scalars": {"s": value}}
            for value in (2, 0.5, -3.25)
        ),
    )
    assert status == 0, err
    assert len({row["key"] for row in report["requests"]}) == 1
    assert report["statistics"]["generation_builds"] == 1
    assert report["statistics"]["binary_builds"] == 1


STAT_WATCHED = """
import os, sys
seen = []
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
def watch(event, detail):
    if event == "open" and not str(detail[0]).startswith("/proc") and (
        (detail[2] or 0) & WRITING or set(detail[1] or "") & set("wax+")
    ):
        seen.append((event, str(detail[0])))
    if event.startswith("fcntl.") or event in CHANGES:
        seen.append((event, str(detail)))
CHANGES = {"os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.chmod",
           "os.utime", "os.truncate", "os.mkfifo"}
sys.addaudithook(watch)
import pypto.jit.__main__ as m
status = m.main(["stat", "--root", sys.argv[1]])
sys.exit(f"touched {seen}" if seen else status)
"""


@pytest.mark.conforms("cache.112")
def test_stat_reads_beside_a_writer_and_touches_nothing(filled: Any) -> None:
    for slot in (*filled.slots("generated"), *filled.slots("ready")):
        for path in slot.rglob("*.py"):
            path.chmod(0o644)
            path.write_text("raise SystemExit(9)\n")
    locks = [path for path in filled.root.rglob("*") if path.is_file() and "lock" in str(path)]
    assert locks
    held = [path.open("r+") for path in locks]
    for file in held:
        fcntl.flock(file, fcntl.LOCK_EX)
    before = filled.tree(filled.root)
    for directory in (filled.root, *(path for path in filled.root.rglob("*") if path.is_dir())):
        directory.chmod(0o555)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filled.import_roots)}
    result = subprocess.run(
        [sys.executable, "-Bc", STAT_WATCHED, str(filled.root)],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    for file in held:
        file.close()
    assert result.returncode == 0, result.stderr
    totals = json.loads(result.stdout)["totals"]
    assert (totals["generated"], totals["ready"], totals["damaged"]) == (1, 1, 0)
    assert filled.tree(filled.root) == before


@pytest.mark.conforms("cache.114")
def test_every_spelling_of_a_target_gives_the_same_key(house: Any) -> None:
    report = house.run(
        """
import warnings
from pypto.backend import BackendType, ExecutionMode
from pypto.runtime import RunConfig
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    configs = [
        RunConfig(backend_type=BackendType.Ascend950, execution_mode=ExecutionMode.SIM),
        RunConfig(arch=BackendType.Ascend950),
    ]
    report["silent"] = not caught
    configs.append(RunConfig(platform="a5sim"))
    report["warned"] = [item.category.__name__ for item in caught]
report["keys"] = [kernels.kernel.compile(config=config).artifact_key for config in configs]
report["other"] = kernels.kernel.compile().artifact_key
"""
    )
    assert report["silent"]
    assert report["warned"] == ["DeprecationWarning"]
    assert None not in report["keys"]
    assert len(set(report["keys"])) == 1
    assert report["other"] not in report["keys"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_is_told_how_far_completing_is(filled: Any) -> None:
    for err, told in ((Terminal(), True), (io.StringIO(), False)):
        complete(str(filled.root), ["x86-64"], io.StringIO(), err)
        assert ("0/1 kernels:kernel for x86-64" in err.getvalue()) is told


def test_a_terminal_tells_entries_of_one_key_apart(filled: Any) -> None:
    out = Terminal()
    assert stat(str(filled.root), out, io.StringIO()) == 0
    heading, *rows, totals = out.getvalue().splitlines()
    assert heading.split() == ["state", "bytes", "files", "cpu", "key"]
    generated, ready = sorted(row.split() for row in rows)
    assert (generated[0], len(generated)) == ("generated", 4)
    assert (ready[0], len(ready)) == ("ready", 5)
    assert generated[-1] == ready[-1]
    assert totals.startswith("2 entries")
    assert max(map(len, out.getvalue().splitlines())) <= 100
