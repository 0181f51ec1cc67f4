"""Directories run without their programs: one, or a batch in which failures hide nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from compiled_kernels import halved
from pypto import ir
from pypto.runtime import DfxOptions
from pypto.runtime.compiled_meta import CompiledMeta
from pypto.runtime.errors import ArtifactError
from pypto.runtime.execute_artifact import execute_artifact_dir, execute_batch_manifest
from pypto.runtime.golden_file import GoldenFile
from pypto.runtime.golden_writer import write_golden

Scale = Callable[..., Path]

GOLDEN = """
import torch
def generate_inputs(params):
    return {"x": torch.ones(4), "factor": 3.0, "fault": 0, "out": torch.zeros(4)}
def compute_golden(tensors, params):
    return {"out": tensors["x"] * tensors["factor"] + OFFSET}
"""


def _command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "pypto.runtime.execute_artifact", *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        cwd="/",
    )


def _manifest(directory: Path, *items: dict[str, Any], **fields: Any) -> Path:
    path = directory / "batch.json"
    path.write_text(json.dumps({"schema": 1, "items": list(items), **fields}))
    return path


@pytest.fixture(scope="module")
def halved_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("halved") / "out"
    ir.compile(halved.specialize(), output_dir=directory, dump_passes=False)
    return directory


@pytest.mark.conforms("entry.33")
def test_a_directory_runs_with_the_arguments_that_it_is_given(scale: Scale) -> None:
    directory = scale(1)
    out = torch.zeros(4)
    result = execute_artifact_dir(
        directory, [torch.ones(4), 2.0, 0, out], dfx=DfxOptions(enable_pmu=1)
    )
    assert out.tolist() == [3.0] * 4
    assert (result.passed, result.test_name, result.error) == (True, "output", None)
    assert result.execution_time is not None and result.execution_time > 0
    assert (directory / "dfx_outputs/pmu.json").is_file()


def test_arguments_are_random_where_nobody_gives_them(halved_directory: Path) -> None:
    saved = halved_directory / "saved.pt"
    written = []
    state = torch.get_rng_state()
    for _ in range(2):
        execute_artifact_dir(halved_directory, extents={"N": 17}, outputs=saved)
        written.append(torch.load(saved, weights_only=True))
    assert set(written[0]) == {"out"} and written[0]["out"].shape == (17, 64)
    assert written[0]["out"].abs().sum() > 1
    assert torch.equal(written[0]["out"], written[1]["out"])
    assert torch.equal(torch.get_rng_state(), state), "the caller's random numbers go on"


def test_a_golden_file_gives_inputs_and_judges(scale: Scale) -> None:
    directory = scale(1)
    with pytest.raises(ArtifactError, match=r"has no golden\.py to validate"):
        execute_artifact_dir(directory, validate=True)
    (directory / "golden.py").write_text(GOLDEN.replace("OFFSET", "1"))
    assert execute_artifact_dir(directory).passed
    (directory / "golden.py").write_text(GOLDEN.replace("OFFSET", "2"))
    with pytest.raises(AssertionError, match="output 'out'"):
        execute_artifact_dir(directory)
    assert execute_artifact_dir(directory, validate=False).passed
    (directory / "golden.py").write_text("RTOL = 1\n")
    with pytest.raises(ArtifactError, match=r"defines no function generate_inputs\(\)"):
        execute_artifact_dir(directory)


def test_a_golden_file_is_written_from_arguments_and_results(scale: Scale, tmp_path: Path) -> None:
    directory = scale(1)
    x = torch.randn(5, generator=torch.Generator().manual_seed(3))
    arguments = {"x": x, "factor": 2.0, "fault": 0}
    path = write_golden(directory, arguments, {"out": x * 2 + 1}, rtol=1e-4, atol=1e-6)
    assert path == directory / "golden.py"
    data = {str(p.relative_to(directory)) for p in directory.rglob("*.pt")}
    assert data == {"data/in/x.pt", "data/out/out.pt"}
    golden = GoldenFile.find(directory, CompiledMeta.load(directory).params)
    assert golden is not None and (golden.rtol, golden.atol) == (1e-4, 1e-6)
    moved = directory.rename(tmp_path / "moved")
    assert execute_artifact_dir(moved).passed
    write_golden(moved, {**arguments, "out": torch.zeros(5)}, {"out": x * 2})
    with pytest.raises(AssertionError, match="output 'out'"):
        execute_artifact_dir(moved)
    write_golden(moved, {**arguments, "factor": float("inf")}, {"out": x * float("inf")})
    assert execute_artifact_dir(moved).passed


@pytest.mark.parametrize(
    ("arguments", "expected", "text"),
    [
        ({"x": 1, "factor": 2.0}, {"out": 1}, "arguments lacks 'fault'"),
        ({"x": 1, "factor": 2.0, "fault": 0, "y": 1}, {"out": 1}, "arguments has unknown 'y'"),
        ({"x": 1, "factor": 2.0, "fault": 0}, {}, "expected lacks 'out'"),
        ({"x": 1, "factor": 2.0, "fault": 0}, {"out": 1, "x": 1}, "expected has unknown 'x'"),
    ],
)
def test_what_a_golden_file_lacks_is_named(
    scale: Scale, arguments: dict[str, Any], expected: dict[str, Any], text: str
) -> None:
    directory = scale()
    with pytest.raises(ValueError, match=text):
        write_golden(directory, arguments, expected)
    assert not (directory / "golden.py").exists() and not (directory / "data").exists()


@pytest.mark.conforms("entry.45")
def test_a_failing_item_hides_none_of_the_others(
    scale: Scale, halved_directory: Path, tmp_path: Path
) -> None:
    scale(1)
    torch.save([torch.ones(4), 2.0, 0, torch.zeros(4)], tmp_path / "good.pt")
    torch.save([torch.ones(4), 2.0, 1, torch.zeros(4)], tmp_path / "fault.pt")
    manifest = _manifest(
        tmp_path,
        {"directory": "output", "name": "first", "inputs": "good.pt", "outputs": "first.pt"},
        {"directory": "output", "name": "faulty", "inputs": "fault.pt"},
        {"directory": "gone"},
        {"directory": "output", "name": "other", "platform": "a5sim"},
        {"directory": str(halved_directory), "name": "last", "extents": {"N": 16}},
    )
    results = execute_batch_manifest(manifest)
    assert [r.test_name for r in results] == ["first", "faulty", "gone", "other", "last"]
    assert [r.passed for r in results] == [True, False, False, False, True]
    said = [result.error or "" for result in results]
    assert said[1].startswith("KernelFault: ") and "row 9 of 8" in said[1]
    assert said[2].startswith("FileNotFoundError: ") and "compiled_meta.json" in said[2]
    assert said[3].startswith("ValueError: ") and "a5sim" in said[3]
    assert torch.load(tmp_path / "first.pt", weights_only=True)["out"].tolist() == [3.0] * 4

    shown = _command(str(manifest))
    assert shown.returncode == 1, shown.stderr
    assert shown.stdout.splitlines()[-1] == "2 passed, 3 failed"
    assert "FAILED  faulty  KernelFault" in shown.stdout
    parsed = json.loads(_command(str(manifest), "--json").stdout)
    assert [item["passed"] for item in parsed["results"]] == [r.passed for r in results]
    good = _manifest(tmp_path, {"directory": "output", "inputs": "good.pt"})
    assert _command(str(good)).returncode == 0


@pytest.mark.conforms("entry.45")
def test_the_command_runs_one_directory(halved_directory: Path) -> None:
    directory = halved_directory
    done = _command(str(directory), "--extent", "N=16", "--dep-gen")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "1 passed, 0 failed"
    assert (directory / "dfx_outputs/dep_graph.json").is_file()
    failed = _command(str(directory), "--validate")
    assert failed.returncode == 1 and "has no golden.py" in failed.stdout


@pytest.mark.conforms("entry.49")
def test_a_bad_path_or_option_is_one_clear_line(tmp_path: Path) -> None:
    for words, said in (
        ([str(tmp_path / "gone")], "No such file"),
        ([str(tmp_path), "--extent", "N"], "--extent takes SYMBOL=N, got 'N'"),
    ):
        result = _command(*words)
        assert result.returncode == 2
        assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
        assert said in result.stderr
    helped = _command("--help")
    assert helped.returncode == 0 and "manifest" in helped.stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "must be an object"),
        ("{", "not valid JSON"),
        ('{"schema": 2, "items": []}', "schema is 2"),
        ('{"schema": 1}', "items"),
        ('{"schema": 1, "items": [], "more": 1}', "more"),
        ('{"schema": 1, "items": [{}]}', r"items\[0\]"),
        ('{"schema": 1, "items": [{"directory": 1}]}', r"items\[0\]\.directory"),
        ('{"schema": 1, "items": [{"directory": "a", "platform": "gpu"}]}', "'gpu' is none of"),
        ('{"schema": 1, "items": [{"directory": "a", "device_id": -1}]}', "device_id"),
        ('{"schema": 1, "items": [{"directory": "a", "extents": {"N": -1}}]}', "extents"),
        ('{"schema": 1, "items": [{"directory": "a", "validate": 1}]}', "validate"),
        ('{"schema": 1, "items": [{"directory": "a", "colour": 1}]}', "colour"),
    ],
)
def test_a_malformed_manifest_runs_nothing_and_names_the_place(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "batch.json"
    path.write_text(text)
    with pytest.raises(ArtifactError, match=rf"batch\.json: .*{said}"):
        execute_batch_manifest(path)
