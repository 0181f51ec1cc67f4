"""A build directory runs again with the edits made to it, by function, command and script."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from compiled_kernels import doubled, halved
from pypto import ir
from pypto.runtime import RunConfig
from pypto.runtime.debug import invalidate_binary_cache, rebuild_kernel_cpp_from_pto, replay
from pypto.runtime.errors import ArtifactError

GOLDEN = """
import torch
RTOL = 1e-6
def generate_inputs():
    return [("x", torch.arange(16 * 64).reshape(16, 64).float())]
def compute_golden(tensors):
    tensors["out"].copy_(tensors["x"] * FACTOR)
"""


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("replay") / "out"
    ir.compile(doubled.specialize(), output_dir=directory, dump_passes=False).complete()
    return directory


@pytest.fixture
def directory(compiled_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(compiled_once, tmp_path / "out"))


def _run(directory: Path, config: RunConfig | None = None, **options: object) -> float:
    x, out = torch.ones(16, 64), torch.zeros(16, 64)
    replay(directory, x, out, config=config, **options)  # type: ignore[operator]
    assert torch.equal(out, torch.full_like(out, out[0, 0].item()))
    return out[0, 0].item()


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    # A file system may keep times too coarse to tell two edits apart.
    later = time.time_ns() + 2_000_000_000
    os.utime(path, ns=(later, later))


def _edit_pto(directory: Path, factor: str = "3.0") -> Path:
    path = directory / "ptoas/twice.pto"
    text = path.read_text()
    spelling = next(s for s in ("2.000000e+00", "2.0e+00", "2.0") if s in text)
    _edit(path, spelling, factor)
    return path


def _command(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", *words],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            **environ,
        },
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        cwd="/",
    )


REPLAY = ("-m", "pypto.runtime.debug.replay")


def test_it_runs_without_compiling_the_program(directory: Path) -> None:
    assert _run(directory) == 2.0
    returned = replay(directory, torch.ones(16, 64), recompile=False)  # type: ignore[operator]
    assert torch.equal(returned, torch.full((16, 64), 2.0))


def test_an_edited_kernel_takes_effect(directory: Path) -> None:
    kernel = directory / "kernels/aiv/twice.cpp"
    before = (directory / "cache/binary_context.json").read_bytes()
    _edit(kernel, "tensor_data<float>(t0)", "tensor_data<float>(t1)")
    x, out = torch.ones(16, 64), torch.full((16, 64), 5.0)
    replay(directory, x, out)  # type: ignore[operator]
    assert out[0, 0].item() == 10.0
    assert (directory / "cache/binary_context.json").read_bytes() != before


def test_binaries_are_built_afresh_unless_told_otherwise(directory: Path) -> None:
    def times() -> list[int]:
        return sorted(path.stat().st_mtime_ns for path in (directory / "cache").glob("*.bin"))

    before = times()
    _run(directory, recompile=False)
    assert times() == before
    _run(directory)
    assert all(new not in before for new in times())


def test_an_edited_text_is_assembled_and_put_between_the_marks(directory: Path) -> None:
    kernel = directory / "kernels/aiv/twice.cpp"
    _edit(kernel, '#include "pypto_rt/kernel_abi.h"', '#include "pypto_rt/kernel_abi.h"\n// mine')
    old = kernel.read_text()
    text = _edit_pto(directory)
    assert _run(directory) == 3.0
    new = kernel.read_text()
    begin, end = "// --- ptoas-generated code ---", "// --- Kernel entry point ---"
    assert "// mine" in new
    assert new.partition(begin)[0] == old.partition(begin)[0]
    assert new.partition(end)[2] == old.partition(end)[2]
    assert new != old
    assert text.with_suffix(".cpp").stat().st_mtime_ns >= text.stat().st_mtime_ns
    assert rebuild_kernel_cpp_from_pto(directory) == ()


def test_an_edited_text_brings_the_headers_of_its_instructions(directory: Path) -> None:
    kernel = directory / "kernels/aiv/twice.cpp"
    assert "remainder.hpp" not in kernel.read_text()
    _edit(directory / "ptoas/twice.pto", "pto.tmuls", "pto.tfmods")
    assert _run(directory) == 1.0
    assert '#include "pto/sim/remainder.hpp"' in kernel.read_text()


def test_a_text_that_is_not_newer_runs_no_assembler(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PTOAS_ROOT", "/nowhere")
    assert rebuild_kernel_cpp_from_pto(directory) == ()
    assert _run(directory, recompile=False) == 2.0


@pytest.mark.parametrize("how", ["argument", "environment"])
def test_edited_texts_can_be_left_alone(
    directory: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _edit_pto(directory)
    if how == "environment":
        monkeypatch.setenv("PYPTO_REBUILD_FROM_PTO", "0")
        assert _run(directory, recompile=False) == 2.0
    else:
        assert _run(directory, rebuild_from_pto=False, recompile=False) == 2.0


def test_without_an_assembler_texts_are_left_alone(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _edit_pto(directory)
    monkeypatch.setenv("PTOAS_ROOT", "/nowhere")
    assert rebuild_kernel_cpp_from_pto(directory) == ()


def test_the_two_steps_are_there_by_themselves(directory: Path) -> None:
    _edit_pto(directory)
    kernel = directory / "kernels/aiv/twice.cpp"
    assert rebuild_kernel_cpp_from_pto(directory) == (kernel,)
    assert list((directory / "cache").glob("*.bin"))
    invalidate_binary_cache(directory)
    assert not list((directory / "cache").glob("*.bin"))
    out = torch.zeros(16, 64)
    ir.CompiledProgram.from_dir(directory)(torch.ones(16, 64), out)
    assert out[0, 0].item() == 3.0


def test_a_rejected_text_leaves_the_kernel_and_says_where(directory: Path) -> None:
    path = directory / "ptoas/twice.pto"
    _edit(path, "pto.tload", "pto.tnothing")
    before = {p: p.read_bytes() for p in directory.rglob("*.cpp")}
    with pytest.raises(ArtifactError, match=r"ptoas/twice\.pto was rejected: (.|\n)*twice.pto:\d"):
        _run(directory)
    assert {p: p.read_bytes() for p in directory.rglob("*.cpp")} == before
    assert not list((directory / "ptoas").glob(".*"))


@pytest.mark.parametrize("mark", ["// --- ptoas-generated code ---", "// --- Kernel entry point"])
def test_lost_marks_are_an_error_that_names_the_file(directory: Path, mark: str) -> None:
    _edit(directory / "kernels/aiv/twice.cpp", mark, "// gone")
    _edit_pto(directory)
    with pytest.raises(ArtifactError, match=r"kernels/aiv/twice\.cpp: has lost the line"):
        _run(directory)


def test_a_changed_signature_asks_for_a_new_compile(directory: Path) -> None:
    path = directory / "ptoas/twice.pto"
    _edit(path, "%arg1: !pto.ptr<f32>", "%arg1: !pto.ptr<f32>, %arg2: index")
    with pytest.raises(ArtifactError, match="needs a new compile"):
        _run(directory)


def test_a_cache_is_not_changed(directory: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "artifacts/v1").mkdir(parents=True)
    (root / "STORE").write_bytes(b"pypto-store 1\n")
    entry = Path(shutil.copytree(directory, root / "artifacts/v1/entry"))
    before = {p: p.read_bytes() for p in entry.rglob("*") if p.is_file()}
    for step in (replay, invalidate_binary_cache, rebuild_kernel_cpp_from_pto):
        with pytest.raises(ValueError, match=r"lies in the cache root .* export it first"):
            step(entry)  # type: ignore[operator]
    assert {p: p.read_bytes() for p in entry.rglob("*") if p.is_file()} == before


@pytest.mark.conforms("entry.49")
def test_a_directory_without_a_build_is_one_clear_line(directory: Path, tmp_path: Path) -> None:
    for path in (tmp_path / "nothing", tmp_path):
        with pytest.raises(FileNotFoundError, match=r"neither kernel_config\.py nor"):
            replay(path)  # type: ignore[operator]
        result = _command(*REPLAY, str(path))
        assert result.returncode == 1 and result.stderr.count("\n") == 1
        assert result.stderr.startswith(f"error: {path}: neither kernel_config.py nor")
    helped = _command(*REPLAY, "--help")
    assert helped.returncode == 0 and "--no-rebuild-from-pto" in helped.stdout
    (tmp_path / "orchestration").mkdir()
    (tmp_path / "orchestration/host_orch.py").write_text("")
    with pytest.raises(ir.DistributedUnavailable, match="several chips"):
        replay(tmp_path)  # type: ignore[operator]


@pytest.mark.conforms("entry.46")
def test_inputs_and_outputs_come_from_the_golden_file(directory: Path) -> None:
    with pytest.raises(ArtifactError, match=r"has no golden\.py"):
        replay(directory, validate=True)  # type: ignore[operator]
    result = _command(*REPLAY, str(directory))
    assert result.returncode == 1 and "has no golden.py" in result.stderr
    (directory / "golden.py").write_text(GOLDEN.replace("FACTOR", "2.0"))
    x, out = torch.ones(16, 64), torch.zeros(16, 64)
    replay(directory, x, out, validate=True, recompile=False)  # type: ignore[operator]
    assert out[0, 0].item() == 2.0
    result = _command(*REPLAY, str(directory), "--validate", "--no-recompile", "--swimlane")
    assert result.returncode == 0, result.stderr
    assert (directory / "dfx_outputs/chip_swimlane.json").is_file()
    (directory / "golden.py").write_text(GOLDEN.replace("FACTOR", "3.0"))
    with pytest.raises(AssertionError, match="output 'out' is not what"):
        replay(directory, x, out, validate=True, recompile=False)  # type: ignore[operator]
    assert _command(*REPLAY, str(directory), "--no-recompile").returncode == 0
    result = _command(*REPLAY, str(directory), "--no-recompile", "--validate")
    assert result.returncode == 1 and "error: output 'out'" in result.stderr


def test_the_command_has_the_runtimes_log_levels(directory: Path) -> None:
    (directory / "golden.py").write_text(GOLDEN.replace("FACTOR", "2.0"))
    words = (*REPLAY, str(directory), "--no-recompile", "--pmu", "2")
    told = _command(*words, "--log-level", "info")
    assert told.returncode == 0 and "records of the run are in" in told.stderr
    quiet = _command(*words, "--log-level", "warn")
    assert quiet.returncode == 0 and quiet.stderr == ""
    assert "records of the run" in _command(*words, PYPTO_RUNTIME_LOG="info").stderr
    refused = _command(*words, "--log-level", "loud")
    assert refused.returncode == 2
    assert all(level in refused.stderr for level in ("debug", "timing", "null"))


@pytest.mark.conforms("entry.46")
def test_the_script_runs_from_anywhere(directory: Path) -> None:
    result = _command(str(directory / "debug/run.py"))
    assert result.returncode == 0, result.stderr
    script = directory / "debug/run.py"
    script.write_text(
        script.read_text()
        .replace("torch.randn([16, 64], generator=random)", "torch.ones([16, 64])")
        .replace('"""Is called', 'assert out[0, 0] == 5, out[0, 0]\n    """Is called')
    )
    result = _command(str(script), "--no-recompile")
    assert result.returncode == 1 and "AssertionError: tensor(2.)" in result.stderr
    (directory / "golden.py").write_text(GOLDEN.replace("FACTOR", "2.0"))
    assert _command(str(script), "--no-recompile").returncode == 0
    (directory / "golden.py").write_text(GOLDEN.replace("FACTOR", "3.0"))
    result = _command(str(script), "--no-recompile")
    assert result.returncode == 1 and "error: output 'out'" in result.stderr


def test_the_script_puts_edited_texts_in_place_unless_told_otherwise(directory: Path) -> None:
    _edit_pto(directory)
    script = directory / "debug/run.py"
    kernel = directory / "kernels/aiv/twice.cpp"
    before = kernel.read_bytes()
    assert _command(str(script), "--no-rebuild-from-pto", "--no-recompile").returncode == 0
    assert kernel.read_bytes() == before
    assert _command(str(script)).returncode == 0
    assert kernel.read_bytes() != before


def test_an_edited_script_survives_loading_and_not_a_compile(directory: Path) -> None:
    script = directory / "debug/run.py"
    script.write_text("# mine\n")
    sidecar = (directory / "compiled_meta.json").stat().st_mtime_ns
    out = torch.zeros(16, 64)
    ir.CompiledProgram.from_dir(directory)(torch.ones(16, 64), out)
    assert script.read_text() == "# mine\n"
    assert (directory / "compiled_meta.json").stat().st_mtime_ns == sidecar
    ir.compile(doubled.specialize(), output_dir=directory, dump_passes=False)
    assert script.read_text() != "# mine\n"


def test_a_suppressed_script_leaves_the_directory_as_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYPTO_EMIT_DEBUG_RUNNER", "No")
    ir.compile(doubled.specialize(), output_dir=tmp_path / "out", dump_passes=False)
    assert not (tmp_path / "out/debug").exists()
    assert _run(tmp_path / "out") == 2.0


def test_a_request_that_saves_its_kernels_gets_a_script(tmp_path: Path) -> None:
    doubled.compile(config=RunConfig(save_kernels_dir=str(tmp_path / "out")))
    assert (tmp_path / "out/debug/run.py").is_file()


def test_run_time_extents_and_scalars_are_lines_of_the_script(tmp_path: Path) -> None:
    ir.compile(halved.specialize(), output_dir=tmp_path / "out", dump_passes=False)
    script = tmp_path / "out/debug/run.py"
    text = script.read_text()
    assert "    extent_N = 128\n" in text
    assert (
        "        torch.randn([extent_N, 64], generator=random).to(torch.float32),  # x\n"
        "        1,  # count\n" in text
    )
    assert "def _user_compare(x, count, out):" in text
    result = _command(str(script))
    assert result.returncode == 0, result.stderr
