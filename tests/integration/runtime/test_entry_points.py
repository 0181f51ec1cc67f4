"""The entry points lead to one another as their map says, and a configuration drives them all."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from compiled_kernels import Arithmetic, doubled, halved
from pypto import compiler, ir
from pypto.backend import BackendType, ExecutionMode
from pypto.runtime import (
    ChipWorker,
    CompileOptions,
    DfxOptions,
    RunConfig,
    benchmark,
    compile_program,
    configure_log,
    execute_compiled,
    execute_distributed_compiled,
    run,
)
from pypto.runtime.errors import ToolchainUnavailable
from pypto.runtime.runner import RunOptions

Scale = Callable[..., Path]


def _arguments() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.ones(16, 64), torch.zeros(16, 64)


@pytest.mark.conforms("language.120")
@pytest.mark.conforms("entry.2")
def test_a_kernel_runs_or_gives_its_artifact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    x, out = _arguments()
    assert doubled(x, out, config=RunConfig()) is None
    assert out[0, 0].item() == 2.0
    out.zero_()
    compiled = doubled.compile(x, out, config=RunConfig())
    assert isinstance(compiled, ir.CompiledProgram)
    assert out[0, 0].item() == 0.0
    compiled(x, out)
    assert out[0, 0].item() == 2.0


@pytest.mark.conforms("entry.3")
def test_lowering_writes_nothing_and_assembles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PTOAS_ROOT", "/nowhere")
    for program in (doubled.lower(*_arguments()), doubled.specialize(*_arguments())):
        assert isinstance(program, ir.Program)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.conforms("entry.4", "entry.6", "entry.37")
def test_one_configuration_drives_compiling_and_running(tmp_path: Path) -> None:
    config = RunConfig(arch=BackendType.Ascend950, save_kernels_dir=str(tmp_path / "out"))
    compiled = ir.compile(doubled.specialize(), **config.compile_kwargs())
    assert isinstance(compiled, ir.CompiledProgram)
    assert compiled.output_dir == tmp_path / "out"
    assert compiled.platform == "a5sim"
    x, out = _arguments()
    compiled(x, out, config=config)
    assert out[0, 0].item() == 2.0
    with ChipWorker(config) as worker:
        first, second = worker.alloc_tensor((16, 64), torch.float32, init=x), None
        second = worker.alloc_tensor((16, 64), torch.float32)
        worker.run(compiled, first, second)
        worker.run(compiled, second, first)
        worker.copy_from(out.data_ptr(), first.data_ptr, first.nbytes)
    assert out[0, 0].item() == 4.0


def test_compiling_and_running_a_program_in_one_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    x, out = _arguments()
    compiled = run(doubled.specialize(), x, out, config=RunConfig(codegen_only=True))
    assert out[0, 0].item() == 0.0
    assert run(doubled.specialize(), x, out).program is not None
    assert out[0, 0].item() == 2.0
    assert compile_program(doubled.specialize()).param_names == compiled.param_names


@pytest.mark.conforms("entry.7")
def test_a_directory_runs_by_the_same_path_without_a_compile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = ir.compile(doubled.specialize(), output_dir=tmp_path / "out", dump_passes=False)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("compiled")

    for module in (compiler.driver, compiler.entry):
        for name in ("build_sources", "lower", "compile", "build_installed"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, refuse)
    restored = ir.CompiledProgram.from_dir(tmp_path / "out")
    assert restored.program is None
    assert type(restored.dispatcher_for(None)) is type(live.dispatcher_for(None))
    x, out = _arguments()
    restored(x, out, config=RunConfig())
    assert torch.equal(out, live(x))


@pytest.mark.conforms("entry.8")
def test_live_and_restored_programs_are_timed(tmp_path: Path) -> None:
    live = ir.compile(doubled.specialize(), output_dir=tmp_path / "out", dump_passes=False)
    for compiled in (live, ir.CompiledProgram.from_dir(tmp_path / "out")):
        x, out = _arguments()
        stats = benchmark(compiled, [x, out], rounds=5)
        assert (stats.rounds, out[0, 0].item()) == (5, 2.0)
        assert 0 < stats.min_ns <= stats.median_ns <= stats.max_ns
    for wrong in ({"rounds": 0}, {"warmup": -1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            benchmark(live, [x, out], **wrong)


@pytest.mark.conforms("entry.18", "entry.19")
def test_the_deprecated_spelling_takes_ring_sizes_alone_from_its_configuration(
    scale: Scale,
) -> None:
    directory = scale(1)
    x, out = torch.ones(4), torch.zeros(4)
    other = RunConfig(
        arch=BackendType.Ascend950,
        execution_mode=ExecutionMode.ONBOARD,
        ring_heap=2048,
        enable_pmu=1,
        aicpu_thread_num=4,
    )
    with pytest.warns(DeprecationWarning, match=r"CompiledProgram\.from_dir"):
        assert execute_compiled(directory, [x, 2.0, 0, out], config=other) is None
    assert out.tolist() == [3.0] * 4
    assert not (directory / "dfx_outputs").exists()
    with pytest.warns(DeprecationWarning, match="from_dir"):
        execute_compiled(
            directory,
            [x, 2.0, 0, out],
            platform="a2a3sim",
            device_id=1,
            dfx=DfxOptions(enable_dep_gen=True),
            aicpu_thread_num=2,
            config=other,
        )
    assert [path.name for path in (directory / "dfx_outputs").glob("*.json")] == ["dep_graph.json"]
    with pytest.warns(DeprecationWarning), pytest.raises(ToolchainUnavailable):  # noqa: PT030
        execute_compiled(directory, [x, 2.0, 0, out], platform="a2a3")


@pytest.mark.conforms("entry.20")
def test_the_deprecated_spelling_for_several_chips_warns_and_refuses(tmp_path: Path) -> None:
    with (
        pytest.warns(DeprecationWarning, match=r"DistributedCompiledProgram\.from_dir"),
        pytest.raises(ir.DistributedUnavailable, match=r"from_dir\("),
    ):
        execute_distributed_compiled(tmp_path, [], platform="a2a3sim")


@pytest.mark.conforms("entry.21", "entry.22")
def test_a_configuration_decides_everything_of_a_call(scale: Scale) -> None:
    directory = scale(1, platform="a2a3")
    x, out = torch.ones(4), torch.zeros(4)
    compiled = ir.CompiledProgram.from_dir(directory)
    with pytest.raises(ToolchainUnavailable, match="'a2a3'"):
        compiled(x, 2.0, 0, out)
    # Made for a ring alone, it moves the run to its own platform all the same.
    compiled(x, 2.0, 0, out, config=RunConfig(ring_task_window=8))
    assert out.tolist() == [3.0] * 4
    out.zero_()
    ir.CompiledProgram.from_dir(directory, platform="a2a3sim")(x, 2.0, 0, out)
    assert out.tolist() == [3.0] * 4
    out.zero_()
    ir.CompiledProgram.from_dir(directory, platform="a2a3sim")(
        x, 2.0, 0, out, config=RunConfig(enable_scope_stats=True)
    )
    assert (directory / "dfx_outputs/scope_stats.json").is_file()


@pytest.mark.conforms("entry.23")
def test_replacing_fields_of_a_configuration() -> None:
    config = RunConfig(arch=BackendType.Ascend950)
    with pytest.warns(DeprecationWarning, match="arch="):
        moved = dataclasses.replace(config, platform="a2a3", device_id=0)
    assert (moved.platform, moved.device_id) == ("a2a3", 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        changed = dataclasses.replace(moved, device_id=1)
    assert (changed.platform, changed.device_id) == ("a2a3", 1)


@pytest.mark.conforms("entry.34")
def test_the_dispatch_half_alone_is_no_configuration(scale: Scale, tmp_path: Path) -> None:
    half = RunOptions(platform="a2a3sim")
    compiled = ir.CompiledProgram.from_dir(scale())
    x, out = _arguments()
    calls: list[Callable[[], object]] = [
        lambda: compiled(torch.ones(4), 2.0, 0, torch.zeros(4), config=half),  # type: ignore[arg-type]
        lambda: benchmark(compiled, [], config=half),  # type: ignore[arg-type]
        lambda: ChipWorker(config=half),  # type: ignore[arg-type]
        lambda: doubled(x, out, config=half),  # type: ignore[arg-type]
        lambda: doubled.compile(config=half),  # type: ignore[arg-type]
        lambda: run(doubled.specialize(), config=half),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(AttributeError, match=r"must be a pypto\.runtime\.RunConfig, got Run"):
            call()


@pytest.mark.conforms("entry.36")
def test_the_mapping_to_compile_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[CompileOptions] = []
    original = RunConfig.compile_options

    def counted(self: RunConfig) -> CompileOptions:
        seen.append(original(self))
        return seen[-1]

    monkeypatch.setattr(RunConfig, "compile_options", counted)
    config = RunConfig(
        arch=BackendType.Ascend950, save_kernels_dir=str(tmp_path / "out"), dump_passes=True
    )
    assert config.compile_kwargs() == seen[-1].as_compile_kwargs()
    compiled = doubled.compile(config=config)
    assert (compiled.platform, compiled.output_dir) == ("a5sim", tmp_path / "out")
    assert (tmp_path / "out/passes_dump").is_dir()
    assert all(options == seen[0] for options in seen)


@pytest.mark.conforms("entry.39")
def test_a_worker_takes_programs_of_its_whole_platform(scale: Scale) -> None:
    compiled = ir.CompiledProgram.from_dir(scale(1, platform="a2a3"))
    x, out = torch.ones(4), torch.zeros(4)
    with ChipWorker(RunConfig()) as worker:
        with pytest.raises(ValueError, match=r"'a2a3', this worker for 'a2a3sim'"):
            worker.run(compiled, x, 2.0, 0, out)
        with pytest.raises(ValueError, match="compile it for the worker's platform"):
            worker.register(compiled)


@pytest.mark.conforms("entry.40")
def test_platforms_are_texts_where_they_are_kept(tmp_path: Path) -> None:
    compiled = ir.compile(
        doubled.specialize(), output_dir=tmp_path / "out", platform="a5sim", dump_passes=False
    )
    assert '"platform": "a5sim"' in (tmp_path / "out/compiled_meta.json").read_text()
    assert compiled.platform == "a5sim" and type(compiled.platform) is str
    with ChipWorker(RunConfig(arch=BackendType.Ascend950)) as worker:
        assert worker.platform == "a5sim" and type(worker.platform) is str


def test_outputs_of_run_time_extents_are_passed_in_place(tmp_path: Path) -> None:
    compiled = ir.compile(halved.specialize(), output_dir=tmp_path / "out", dump_passes=False)
    assert compiled.output_indices == (2,)
    with pytest.raises(ValueError, match=r"'out' has an extent .* pass it in place"):
        compiled(torch.ones(16, 64), 3)
    with pytest.raises(
        TypeError,
        match=r"expects 3 \(in-place\) or 2 \(return\) arguments, got 1\. "
        r"Parameters: \[x, count, out\]",
    ):
        compiled(torch.ones(16, 64))
    out = torch.zeros(16, 64)
    compiled(torch.ones(16, 64), 3, out)
    assert out[0, 0].item() == 0.5


@pytest.mark.conforms("language.54")
@pytest.mark.conforms("entry.4")
def test_each_orchestration_of_a_program_is_called_by_name(tmp_path: Path) -> None:
    compiled = ir.compile(Arithmetic, output_dir=tmp_path / "out", dump_passes=False)
    assert compiled.orchestration_names == ("add", "twice_of")
    a, b = torch.full((16, 64), 2.0), torch.full((16, 64), 3.0)
    assert compiled["add"](a, b)[0, 0].item() == 5.0
    assert compiled.twice_of(a)[0, 0].item() == 4.0
    with pytest.raises(TypeError, match=r"compiled\['add'\] or compiled\['twice_of'\]"):
        compiled(a, b)
    child = ir.CompiledProgram.from_dir(tmp_path / "out/next_levels/twice_of")
    out = torch.zeros(16, 64)
    child(a, out)
    assert out[0, 0].item() == 4.0
    with pytest.raises(FileNotFoundError, match="use one of next_levels/add, next_levels/twice_of"):
        ir.CompiledProgram.from_dir(tmp_path / "out")


def test_the_representation_of_a_directory_is_checked_where_it_was_dumped(tmp_path: Path) -> None:
    ir.compile(doubled.specialize(), output_dir=tmp_path / "out")
    restored = ir.CompiledProgram.from_dir(tmp_path / "out")
    restored.validate_ir()
    dump = tmp_path / "out/passes_dump/00_frontend.py"
    dump.write_text(dump.read_text().replace(".muls(", ".nothing("))
    with pytest.raises(Exception, match="nothing"):
        restored.validate_ir()
    dump.unlink()
    with pytest.raises(FileNotFoundError, match=r"00_frontend\.py: .*dump_passes=True"):
        restored.validate_ir()


def test_the_runtime_tells_what_it_loads(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYPTO_RUNTIME_LOG", raising=False)
    compiled = ir.compile(doubled.specialize(), output_dir=tmp_path / "out", dump_passes=False)
    with caplog.at_level("DEBUG", logger="pypto.runtime"):
        configure_log("timing")
        try:
            compiled.load()
        finally:
            configure_log(None)
    assert [r.levelname for r in caplog.records] == ["TIMING"]
    assert "was made ready for a2a3sim" in caplog.text
