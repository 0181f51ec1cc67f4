"""Artifacts on the simulated chip, built by the real compiler."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType

import pytest
import torch
from pypto.backend import BackendType, ExecutionMode, RuntimeKind
from pypto.runtime.binary_build import BinaryManifest, build_payload
from pypto.runtime.binary_directory import invalidate_binaries
from pypto.runtime.compiled_meta import CompiledMeta
from pypto.runtime.compiled_program import CompiledProgram
from pypto.runtime.errors import KernelFault, ToolchainUnavailable
from pypto.runtime.host import host_compilers
from pypto.runtime.kernel_config import KernelConfig
from pypto.runtime.run_config import RunConfig
from pypto.runtime.runner import RunOptions, execute_compiled
from pypto.runtime.storage import CompletePayload, OutputDirectory
from pypto.runtime.timing import benchmark

Scale = Callable[..., Path]


def _x(extent: int = 10) -> torch.Tensor:
    return torch.arange(extent, dtype=torch.float32)


@pytest.mark.parametrize("runtime", list(RuntimeKind))
@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
def test_a_directory_runs_in_place_and_returning(
    scale: Scale, runtime: RuntimeKind, platform: str
) -> None:
    compiled = CompiledProgram.from_dir(scale(5, runtime=runtime, platform=platform, extent=10))
    out = torch.empty(10)
    assert compiled(_x(), 2.0, 0, out) is None
    torch.testing.assert_close(out, _x() * 2 + 5)
    returned = compiled(_x(), 3, 0)
    torch.testing.assert_close(returned, _x() * 3 + 5)


def test_it_describes_itself(scale: Scale) -> None:
    directory = scale()
    compiled = CompiledProgram.from_dir(directory)
    assert compiled.program is None
    assert compiled.output_dir == directory
    assert (compiled.platform, compiled.backend_type) == ("a2a3sim", BackendType.Ascend910B)
    assert compiled.param_names == ("x", "factor", "fault", "out")
    assert (compiled.output_indices, compiled.has_return) == ((3,), True)
    assert compiled.orchestration_names == ("scale",)
    assert compiled.artifact_key is None
    assert os.fspath(compiled) == str(compiled) == str(directory)
    assert compiled == str(directory)
    assert compiled == directory
    assert hash(compiled) == hash(str(directory))
    assert compiled != str(directory) + "x"
    assert (Path(compiled) / "compiled_meta.json").is_file()
    assert not (directory / "cache").exists()
    assert compiled.runtime_name == "tensormap_and_ringbuffer"
    assert (directory / "cache" / "binary_context.json").exists()
    assert compiled.runtime_config["aicpu_thread_num"] == 0
    assert compiled.chip_callable is compiled.chip_callable


def test_extents_may_change_from_call_to_call(scale: Scale) -> None:
    compiled = CompiledProgram.from_dir(scale())
    for _ in range(2):
        for extent in (1, 7, 64, 0):
            x, out = _x(extent), torch.zeros(extent)
            compiled(x, 2.0, 0, out)
            torch.testing.assert_close(out, x * 2)
    with pytest.raises(ValueError, match="both are 'N'"):
        compiled(_x(7), 2.0, 0, torch.zeros(8))
    with pytest.raises(ValueError, match=r"'out' .*in place"):
        compiled(_x(7), 2.0, 0)


def test_every_call_checks_its_arguments(scale: Scale) -> None:
    compiled = CompiledProgram.from_dir(scale(extent=10))
    out = torch.zeros(10)
    compiled(_x(), 1.0, 0, out)
    with pytest.raises(TypeError, match="expects 4"):
        compiled(_x(), 1.0)
    with pytest.raises(TypeError, match=r"'x'.*float64"):
        compiled(_x().double(), 1.0, 0, out)
    with pytest.raises(ValueError, match=r"'x'.*contiguous"):
        compiled(_x(20)[::2], 1.0, 0, out)
    with pytest.raises(ValueError, match=r"'x'.*shape"):
        compiled(_x(11), 1.0, 0, out)
    with pytest.raises(ValueError, match=r"'x'.*meta"):
        compiled(_x().to("meta"), 1.0, 0, out)
    with pytest.raises(TypeError, match=r"'x'.*torch.Tensor"):
        compiled(1.0, 1.0, 0, out)
    with pytest.raises(TypeError, match="'factor'"):
        compiled(_x(), out, 0, out)
    with pytest.raises(ValueError, match="'fault'"):
        compiled(_x(), 1.0, 2**31, out)
    compiled(_x(), 4.0, 0, out)
    torch.testing.assert_close(out, _x() * 4)


def test_the_way_for_known_extents_checks_the_rest(scale: Scale) -> None:
    dispatcher = CompiledProgram.from_dir(scale()).dispatcher_for(None)
    out = torch.zeros(10)
    call = dispatcher.like((_x(), 1.0, 0, out))
    call((_x(), 2.0, 0, out))
    torch.testing.assert_close(out, _x() * 2)
    with pytest.raises(ValueError, match=r"'x'.*contiguous"):
        call((_x(20)[::2], 2.0, 0, out))
    with pytest.raises(ValueError, match=r"'x'.*meta"):
        call((_x().to("meta"), 2.0, 0, out))
    with pytest.raises(TypeError, match="'factor'"):
        call((_x(), "2", 0, out))
    with pytest.raises(KernelFault, match="row 9 of 8"):
        call((_x(), 2.0, 1, out))


def test_a_fault_names_the_users_line(scale: Scale, tmp_path: Path) -> None:
    directory = scale()
    user_file = tmp_path / "user.py"
    user_file.write_text("import x\n\n\ndef scale():\n    a\n    y = pl.load(x, [9])\n")
    compiled = CompiledProgram(
        OutputDirectory(directory, host_compilers()),
        CompiledMeta.load(directory),
        sources=MappingProxyType({"kernels:scale": (str(user_file), 4)}),
    )
    x, out = _x(), torch.zeros(10)
    with pytest.raises(KernelFault) as caught:
        compiled(x, 1.0, 1, out)
    fault = caught.value
    assert (fault.op, fault.reason, fault.kernel) == ("tload", "row 9 of 8", "scale")
    assert (fault.unit, fault.line, fault.column, fault.pto_line) == ("kernels:scale", 3, 4, 7)
    assert str(fault).startswith(f"{user_file}:6:5: tload: row 9 of 8")
    assert str(fault).endswith("\n        y = pl.load(x, [9])\n        ^")
    copy = pickle.loads(pickle.dumps(fault))
    assert (str(copy), copy.location, copy.op) == (str(fault), fault.location, fault.op)
    compiled(x, 2.0, 0, out)
    torch.testing.assert_close(out, x * 2)


def test_a_fault_of_a_restored_program_names_the_unit(scale: Scale) -> None:
    compiled = CompiledProgram.from_dir(scale())
    for _ in range(2):
        with pytest.raises(KernelFault, match=r"^kernels:scale, line 3 of the function: tload"):
            compiled(_x(), 1.0, 1, torch.zeros(10))


def test_a_rebuilt_directory_gives_the_new_code(scale: Scale) -> None:
    out = torch.zeros(10)
    old = CompiledProgram.from_dir(scale(1))
    old(_x(), 1.0, 0, out)
    torch.testing.assert_close(out, _x() + 1)
    new = CompiledProgram.from_dir(scale(2))
    new(_x(), 1.0, 0, out)
    torch.testing.assert_close(out, _x() + 2)
    old(_x(), 1.0, 0, out)
    torch.testing.assert_close(out, _x() + 1)
    invalidate_binaries(new.output_dir)
    again = CompiledProgram.from_dir(scale(3))
    again(_x(), 1.0, 0, out)
    torch.testing.assert_close(out, _x() + 3)


def test_a_dropped_program_is_unloaded(scale: Scale) -> None:
    gc.collect()
    before = Path("/proc/self/maps").read_text().count("/.load-")
    compiled = CompiledProgram.from_dir(scale())
    compiled(_x(), 1.0, 0, torch.zeros(10))
    assert Path("/proc/self/maps").read_text().count("/.load-") > before
    del compiled
    gc.collect()
    assert Path("/proc/self/maps").read_text().count("/.load-") <= before


def test_a_complete_payload_is_run_where_it_is(scale: Scale, tmp_path: Path) -> None:
    sources = scale(4)
    payload = tmp_path / "payload"
    payload.mkdir()
    compiler = host_compilers()("a2a3sim", RuntimeKind.TENSORMAP_AND_RINGBUFFER)
    build_payload(sources, compiler, payload)
    before = {path: path.stat().st_mtime_ns for path in payload.rglob("*")}

    def refuse(_platform: str, _runtime: RuntimeKind) -> object:
        raise AssertionError("compiled something")

    storage = CompletePayload(
        payload,
        directory=tmp_path / "run",
        config=KernelConfig.parse((payload / "kernel_config.json").read_bytes()),
        manifest=BinaryManifest.parse((payload / "binary_manifest.json").read_bytes()),
        artifact_key="ab" * 32,
        compilers=refuse,  # type: ignore[arg-type]
    )
    meta = CompiledMeta.parse((payload / "compiled_meta.json").read_bytes())
    compiled = CompiledProgram(storage, meta)
    assert compiled.artifact_key == "ab" * 32
    out = torch.zeros(10)
    compiled(_x(), 1.0, 0, out)
    torch.testing.assert_close(out, _x() + 4)
    assert {path: path.stat().st_mtime_ns for path in payload.rglob("*")} == before


def test_equal_sources_give_equal_payloads(scale: Scale, tmp_path: Path) -> None:
    contents = []
    for name in ("one", "two"):
        sources = tmp_path / name / "sources"
        sources.parent.mkdir()
        scale(4).rename(sources)
        payload = tmp_path / name / "payload"
        payload.mkdir()
        compiler = host_compilers(build_dir=tmp_path / name / "build")(
            "a2a3sim", RuntimeKind.TENSORMAP_AND_RINGBUFFER
        )
        build_payload(sources, compiler, payload)
        contents.append(
            {
                str(path.relative_to(payload)): path.read_bytes()
                for path in payload.rglob("*")
                if path.is_file()
            }
        )
    assert contents[0] == contents[1]
    assert not any(str(tmp_path).encode() in data for data in contents[0].values())


def test_a_configuration_decides_the_target_of_a_run(scale: Scale) -> None:
    compiled = CompiledProgram.from_dir(scale())
    out = torch.zeros(10)
    for config in (RunConfig(), RunConfig(ring_task_window=64), RunConfig(device_id=3)):
        for _ in range(2):
            compiled(_x(), 2.0, 0, out, config=config)
    torch.testing.assert_close(out, _x() * 2)
    with pytest.raises(ValueError, match=r"Ascend910B .*'a5sim'"):
        compiled(_x(), 2.0, 0, out, config=RunConfig(arch=BackendType.Ascend950))
    with pytest.raises(ToolchainUnavailable, match="'a2a3'"):
        compiled(_x(), 2.0, 0, out, config=RunConfig(execution_mode=ExecutionMode.ONBOARD))
    with pytest.raises(AttributeError):
        compiled(_x(), 2.0, 0, out, config=RunOptions(platform="a2a3sim"))  # type: ignore[arg-type]


def test_an_onboard_artifact_can_be_simulated_but_not_run(scale: Scale) -> None:
    directory = scale(platform="a2a3")
    out = torch.zeros(10)
    with pytest.raises(ToolchainUnavailable):
        CompiledProgram.from_dir(directory)(_x(), 2.0, 0, out)
    CompiledProgram.from_dir(directory)(_x(), 2.0, 0, out, config=RunConfig())
    torch.testing.assert_close(out, _x() * 2)
    out.zero_()
    CompiledProgram.from_dir(directory, platform="a2a3sim")(_x(), 2.0, 0, out)
    torch.testing.assert_close(out, _x() * 2)
    assert not (directory / "cache").exists()
    with pytest.raises(ValueError, match="a5"):
        CompiledProgram.from_dir(directory, platform="a5")


def test_the_deprecated_spelling_gives_the_same(scale: Scale) -> None:
    directory = scale()
    out = torch.zeros(10)
    with pytest.warns(DeprecationWarning, match="from_dir"):
        execute_compiled(directory, [_x(), 2.0, 0, out], config=RunConfig(ring_heap=2048))
    torch.testing.assert_close(out, _x() * 2)
    with pytest.warns(DeprecationWarning), pytest.raises(ToolchainUnavailable):  # noqa: PT030
        execute_compiled(directory, [_x(), 2.0, 0, out], platform="a2a3", config=RunConfig())


def test_runs_are_timed(scale: Scale) -> None:
    stats = benchmark(CompiledProgram.from_dir(scale()), [_x(), 2.0, 0, torch.zeros(10)], rounds=7)
    assert stats.rounds == 7
    assert 0 < stats.min_ns <= stats.median_ns <= stats.max_ns
    assert stats.min_ns <= stats.mean_ns <= stats.max_ns


def test_threads_share_one_program(scale: Scale) -> None:
    compiled = CompiledProgram.from_dir(scale(1))
    failures = []

    def work(factor: float) -> None:
        try:
            for extent in range(1, 40):
                x, out = _x(extent), torch.zeros(extent)
                compiled(x, factor, 0, out)
                torch.testing.assert_close(out, x * factor + 1)
        except BaseException as error:  # noqa: BLE001 - reported by the test
            failures.append(error)

    threads = [threading.Thread(target=work, args=(factor,)) for factor in (1.0, 2.0, 3.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def _run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_an_interrupt_ends_a_run_and_the_chip_stays_good(slow: Path) -> None:
    result = _run(
        """
        import os, signal, sys, threading, time
        import torch
        from pypto.runtime.compiled_program import CompiledProgram

        compiled = CompiledProgram.from_dir(sys.argv[1])
        out = torch.zeros(1)
        compiled(2, out)
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        begin = time.monotonic()
        try:
            compiled(30000, out)
        except KeyboardInterrupt:
            assert time.monotonic() - begin < 20, "the run was not cancelled"
        else:
            sys.exit("not interrupted")
        out.zero_()
        compiled(5, out)
        assert out.item() == 5, out
        """,
        str(slow),
    )
    assert result.returncode == 0, result.stderr


def test_a_forked_child_runs_what_its_parent_ran(slow: Path) -> None:
    result = _run(
        """
        import os, sys, warnings
        import torch
        from pypto.runtime.compiled_program import CompiledProgram

        warnings.simplefilter("ignore", DeprecationWarning)
        compiled = CompiledProgram.from_dir(sys.argv[1])
        out = torch.zeros(1)
        compiled(3, out)
        pid = os.fork()
        compiled(3, out)
        assert out.item() == 6, out
        if pid == 0:
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        """,
        str(slow),
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.conforms("cache.72")
def test_making_and_completing_a_program_runs_none_of_its_code(
    scale: Scale, tmp_path: Path
) -> None:
    directory = scale()
    marker = tmp_path / "constructed"
    source = directory / "kernels/aiv/scale.cpp"
    source.write_text(
        source.read_text()
        + "#include <fcntl.h>\n#include <unistd.h>\n"
        + "__attribute__((constructor)) static void construct() {\n"
        + f'  close(open("{marker}", O_CREAT | O_WRONLY, 0600));\n}}\n'
    )
    result = _run(
        """
        import sys, threading
        from pypto.runtime.compiled_program import CompiledProgram

        compiled = CompiledProgram.from_dir(sys.argv[1])
        compiled.complete()
        assert threading.active_count() == 1
        assert "torch" not in sys.modules
        assert "pypto.runtime.worker" not in sys.modules
        maps = open("/proc/self/maps").read()
        assert sys.argv[1] not in maps and ".load-" not in maps
        """,
        str(directory),
    )
    assert result.returncode == 0, result.stderr
    assert not marker.exists()
    CompiledProgram.from_dir(directory).load()
    assert marker.exists()


@pytest.mark.conforms("cache.72")
def test_building_and_restoring_a_payload_runs_none_of_its_code(
    scale: Scale, tmp_path: Path
) -> None:
    directory = scale()
    marker = tmp_path / "constructed"
    source = directory / "orchestration/scale.cpp"
    source.write_text(
        source.read_text()
        + "#include <fcntl.h>\n#include <unistd.h>\n"
        + "__attribute__((constructor)) static void construct() {\n"
        + f'  close(open("{marker}", O_CREAT | O_WRONLY, 0600));\n}}\n'
    )
    payload = tmp_path / "payload"
    payload.mkdir()
    restored = """
        import sys, threading
        from pathlib import Path
        from pypto.backend import RuntimeKind
        from pypto.runtime.binary_build import BinaryManifest, build_payload
        from pypto.runtime.compiled_meta import CompiledMeta
        from pypto.runtime.compiled_program import CompiledProgram
        from pypto.runtime.host import host_compilers
        from pypto.runtime.kernel_config import KernelConfig
        from pypto.runtime.storage import CompletePayload

        sources, payload = map(Path, sys.argv[1:])
        if not list(payload.iterdir()):
            compiler = host_compilers()("a2a3sim", RuntimeKind.TENSORMAP_AND_RINGBUFFER)
            build_payload(sources, compiler, payload)
        compiled = CompiledProgram(
            CompletePayload(
                payload,
                directory=payload,
                config=KernelConfig.parse((payload / "kernel_config.json").read_bytes()),
                manifest=BinaryManifest.parse((payload / "binary_manifest.json").read_bytes()),
            ),
            CompiledMeta.parse((payload / "compiled_meta.json").read_bytes()),
        )
        compiled.complete()
        assert threading.active_count() == 1
        assert "pypto.runtime.worker" not in sys.modules
        assert str(payload) not in open("/proc/self/maps").read()
        """
    for then, runs in (("", False), ("", False), ("compiled.load()\n", True)):
        result = _run(textwrap.dedent(restored) + then, str(directory), str(payload))
        assert result.returncode == 0, result.stderr
        assert marker.exists() is runs
