"""``python -m pypto.jit warm`` and ``stat`` as their users run them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

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
    house: Any, *arguments: str, stdout: int = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(house.modules), *house.import_roots]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(house.top),
    }
    return subprocess.run(
        [sys.executable, "-m", "pypto.jit", *arguments],
        cwd=house.work,
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


def test_a_failing_kernel_does_not_stop_the_others(house: Any) -> None:
    house.write(house.KERNELS + MORE)
    status, report, err = warm(house, {"kernel": "broken"}, {"kernel": "kernel"})
    assert status == 1
    assert [row["status"] for row in report["requests"]] == ["failed", "ok"]
    assert "unknown" in err


def test_a_private_result_is_reported_and_no_failure(filled: Any) -> None:
    filled.write(filled.KERNELS.replace("SCALE = 2.0", "SCALE = 9.0"))
    status, report, _ = warm(filled, {"kernel": "kernel"}, readonly=True)
    assert status == 0
    (row,) = report["requests"]
    assert (row["status"], row["shared"], row["key"]) == ("ok", False, None)


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
