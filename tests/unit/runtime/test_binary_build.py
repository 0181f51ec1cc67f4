from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pypto.backend import BackendType, RuntimeKind
from pypto.ir.dtypes import FP32
from pypto.ir.nodes import Direction
from pypto.ir.param_info import ParamInfo
from pypto.runtime.binary_build import (
    BinaryManifest,
    binary_sources,
    build_payload,
    compile_binaries,
    payload_files,
)
from pypto.runtime.binary_directory import STAMP_NAME, Recorded, Stamp, obtain_binaries
from pypto.runtime.compiled_meta import CompiledMeta
from pypto.runtime.errors import ArtifactError, ToolchainUnavailable
from pypto.runtime.kernel_compiler import KernelCompiler
from pypto.runtime.kernel_config import KernelConfig, KernelEntry, OrchestrationEntry
from pypto.runtime.sdk import Sdk
from pypto.runtime.storage import (
    CompletePayload,
    OutputDirectory,
    PayloadBuilder,
    PendingPayload,
    Publication,
)
from pypto_toolchains.process import ToolFailed

ELF = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\x3e\x00" + bytes(8)
COPY_SOURCE = f"""
text = open(source, "rb").read()
if b"BROKEN" in text:
    sys.exit("broken " + source)
time.sleep(0.2)
open(argv[argv.index("-o") + 1], "wb").write({ELF!r} + text)
"""

CONFIG = KernelConfig(
    platform="a2a3sim",
    runtime=RuntimeKind.HOST_BUILD_GRAPH,
    aicpu_thread_num=0,
    orchestration=OrchestrationEntry("orchestration/p.cpp", "entry", (Direction.In,)),
    kernels=tuple(
        KernelEntry(index, f"k{index}", f"kernels/k{index}.cpp", core, (Direction.In,))
        for index, core in enumerate(("aiv", "aic"))
    ),
)
META = CompiledMeta(
    (ParamInfo("x", Direction.In, (4,), FP32),), 0, "a2a3sim", BackendType.Ascend910B
)


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    root = tmp_path / "sources"
    for name in binary_sources(CONFIG).values():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"source of {name}")
    (root / "kernel_config.json").write_bytes(CONFIG.to_json())
    (root / "compiled_meta.json").write_bytes(META.to_json())
    return root


@pytest.fixture
def compilers(
    tmp_path: Path, sdk_root: Path, fake_compiler: Callable[..., Any]
) -> Callable[[str, RuntimeKind], KernelCompiler]:
    fake = fake_compiler(COPY_SOURCE)

    def make(platform: str, runtime: RuntimeKind) -> KernelCompiler:
        return KernelCompiler(
            platform,
            sdk=Sdk.load(sdk_root),
            runtime_name=runtime.value,
            cpu_level="x86-64",
            environ={"PATH": str(fake.directory), "TMPDIR": str(tmp_path)},
        )

    return make


Compilers = Callable[[str, RuntimeKind], KernelCompiler]


def test_a_payload_holds_every_file_and_names_its_target(
    tmp_path: Path, sources: Path, compilers: Compilers
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    build_payload(sources, compilers("a2a3sim", CONFIG.runtime), out)
    present = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert present == set(payload_files(CONFIG))
    manifest = BinaryManifest.parse((out / "binary_manifest.json").read_bytes())
    assert (manifest.platform, manifest.cpu_level) == ("a2a3sim", "x86-64")
    assert manifest.kernels == (
        (0, "aiv", "prebuilt/kernel_0.bin"),
        (1, "aic", "prebuilt/kernel_1.bin"),
    )
    assert (out / "prebuilt/kernel_1.bin").read_bytes() == ELF + b"source of kernels/k1.cpp"
    assert BinaryManifest.parse(manifest.to_json()) == manifest


def test_binaries_are_compiled_side_by_side(
    sources: Path, compilers: Compilers, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, most = 0, 0
    lock = threading.Lock()
    compiler = compilers("a2a3sim", CONFIG.runtime)

    def slow(*_args: object, **_options: object) -> bytes:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.1)
        with lock:
            running -= 1
        return b"binary"

    monkeypatch.setattr(compiler, "compile_incore", slow)
    monkeypatch.setattr(compiler, "compile_orchestration", slow)
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1, 2})
    compile_binaries(sources, CONFIG, compiler, binary_sources(CONFIG))
    assert most == 3


def test_the_first_failure_in_order_is_raised(sources: Path, compilers: Compilers) -> None:
    for index in (0, 1):
        (sources / f"kernels/k{index}.cpp").write_text("BROKEN")
    with pytest.raises(ToolFailed, match=r"k0\.cpp"):
        compile_binaries(
            sources, CONFIG, compilers("a2a3sim", CONFIG.runtime), binary_sources(CONFIG)
        )


def test_an_interrupt_ends_all_compilers(
    sources: Path, tmp_path: Path, sdk_root: Path, fake_compiler: Callable[..., Any]
) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    fake = fake_compiler(
        f"open(os.path.join({str(marks)!r}, str(os.getpid())), 'w').close(); time.sleep(60)"
    )
    script = """
    import os, signal, sys, threading, time
    from pathlib import Path
    from pypto.runtime.binary_build import binary_sources, compile_binaries
    from pypto.runtime.kernel_compiler import KernelCompiler
    from pypto.runtime.kernel_config import KernelConfig
    from pypto.runtime.sdk import Sdk

    sources, sdk, tools, marks = map(Path, sys.argv[1:])
    compiler = KernelCompiler(
        "a2a3sim", sdk=Sdk.load(sdk), runtime_name="host_build_graph", cpu_level="x86-64",
        environ={"PATH": str(tools)}, build_dir=marks.parent / "scratch",
    )
    config = KernelConfig.parse((sources / "kernel_config.json").read_bytes())
    os.sched_getaffinity = lambda _pid: {0, 1, 2}

    def interrupt() -> None:
        while len(list(marks.iterdir())) < 3:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    try:
        compile_binaries(sources, config, compiler, binary_sources(config))
    except KeyboardInterrupt:
        print("interrupted")
    """
    arguments = [str(path) for path in (sources, sdk_root, fake.directory, marks)]
    begin = time.monotonic()
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (result.stdout, result.returncode) == ("interrupted\n", 0), result.stderr
    assert time.monotonic() - begin < 45
    for mark in marks.iterdir():
        with pytest.raises(ProcessLookupError):
            os.kill(int(mark.name), 0)
    assert list((tmp_path / "scratch").iterdir()) == []


def _pending(
    sources: Path,
    compilers: Compilers,
    publish: Callable[[PayloadBuilder], Publication],
) -> PendingPayload:
    return PendingPayload(
        sources,
        directory=sources,
        config=CONFIG,
        compilers=compilers,
        publish=publish,
        artifact_key="k" * 64,
    )


def test_a_pending_payload_is_published_once_and_used_where_it_was_put(
    tmp_path: Path, sources: Path, compilers: Compilers
) -> None:
    published = tmp_path / "published"
    calls = []

    def publish(build: PayloadBuilder) -> Publication:
        calls.append(1)
        published.mkdir()
        build(published)
        return Publication(published, shared=True)

    storage = _pending(sources, compilers, publish)
    threads = [threading.Thread(target=storage.complete) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with storage.binaries("a2a3sim") as paths:
        assert paths.orchestration == published / "prebuilt/orchestration.bin"
        assert [kernel[2] for kernel in paths.kernels] == [
            published / f"prebuilt/kernel_{index}.bin" for index in (0, 1)
        ]
    assert len(calls) == 1
    assert storage.artifact_key == "k" * 64
    assert not (sources / "cache").exists()


def test_a_private_payload_has_no_key(tmp_path: Path, sources: Path, compilers: Compilers) -> None:
    def publish(build: PayloadBuilder) -> Publication:
        private = tmp_path / "private"
        private.mkdir()
        build(private)
        return Publication(private, shared=False)

    storage = _pending(sources, compilers, publish)
    storage.complete()
    assert storage.artifact_key is None


def test_a_failed_publication_is_tried_again(
    tmp_path: Path, sources: Path, compilers: Compilers
) -> None:
    attempts = []

    def publish(build: PayloadBuilder) -> Publication:
        attempts.append(1)
        out = tmp_path / f"attempt{len(attempts)}"
        out.mkdir()
        build(out)
        return Publication(out, shared=True)

    storage = _pending(sources, compilers, publish)
    good = (sources / "kernels/k1.cpp").read_text()
    (sources / "kernels/k1.cpp").write_text("BROKEN")
    with pytest.raises(ToolFailed):
        storage.complete()
    (sources / "kernels/k1.cpp").write_text(good)
    storage.complete()
    assert len(attempts) == 2


@pytest.mark.conforms("cache.79")
@pytest.mark.parametrize("stamped", [False, True])
def test_planted_binaries_of_the_build_tree_never_reach_the_payload(
    tmp_path: Path, sources: Path, compilers: Compilers, stamped: bool
) -> None:
    compiler = compilers("a2a3sim", CONFIG.runtime)
    context = compiler.reuse_context()
    assert context is not None
    planted = ELF + b"planted"
    digest = hashlib.sha256(planted).hexdigest()
    records = {}
    (sources / "cache").mkdir()
    for name, source in binary_sources(CONFIG).items():
        (sources / "cache" / name).write_bytes(planted)
        records[name] = Recorded(
            digest, hashlib.sha256((sources / source).read_bytes()).hexdigest()
        )
    if stamped:
        (sources / "cache" / STAMP_NAME).write_bytes(Stamp(context, records).to_json())
    out = tmp_path / "out"
    out.mkdir()
    build_payload(sources, compiler, out)
    for path in (out / "prebuilt").iterdir():
        assert path.read_bytes() != planted
    if stamped:  # it would have been believed by a transaction of the directory
        assert obtain_binaries(sources, CONFIG, compiler)["kernel_0.bin"] == planted


def test_an_output_directory_is_never_loaded_from_its_own_paths(
    sources: Path, compilers: Compilers
) -> None:
    storage = OutputDirectory(sources, compilers)
    seen = []
    for _ in range(2):
        with storage.binaries("a2a3sim") as paths:
            files = [paths.orchestration, *(path for _, _, path in paths.kernels)]
            assert all(path.is_file() for path in files)
            assert files[1].read_bytes() == ELF + b"source of kernels/k0.cpp"
            seen += files
    assert len(set(seen)) == len(seen)
    assert not any(path.exists() for path in seen)
    assert not {path.name for path in seen if path.parent == sources / "cache"}


def test_the_other_execution_mode_is_assembled_privately(
    tmp_path: Path, sources: Path, compilers: Compilers
) -> None:
    onboard = json.loads((sources / "kernel_config.json").read_text())
    onboard["platform"] = "a2a3"
    (sources / "kernel_config.json").write_text(json.dumps(onboard))
    storage = OutputDirectory(sources, compilers)
    with storage.binaries("a2a3sim") as paths:
        assert sources not in paths.orchestration.parents
    assert not (sources / "cache").exists()
    with pytest.raises(ToolchainUnavailable, match="CANN"):
        storage.complete()

    def refuse(_build: PayloadBuilder) -> Publication:
        raise AssertionError("published the other execution mode")

    pending = PendingPayload(
        sources,
        directory=sources,
        config=storage.config,
        compilers=compilers,
        publish=refuse,
    )
    with pending.binaries("a2a3sim") as paths:
        assert paths.orchestration.is_file()


def test_a_payload_without_sources_serves_its_own_platform_only(tmp_path: Path) -> None:
    manifest = BinaryManifest(
        "a2a3sim",
        CONFIG.runtime,
        "x86-64",
        "prebuilt/orchestration.bin",
        ((0, "aiv", "prebuilt/kernel_0.bin"), (1, "aic", "prebuilt/kernel_1.bin")),
    )
    storage = CompletePayload(tmp_path, directory=tmp_path, config=CONFIG, manifest=manifest)
    with pytest.raises(ToolchainUnavailable, match="'a2a3sim' only"), storage.binaries("a2a3"):
        pass
    with pytest.raises(ArtifactError, match="disagree"):
        CompletePayload(
            tmp_path,
            directory=tmp_path,
            config=CONFIG,
            manifest=BinaryManifest("a2a3sim", CONFIG.runtime, "x86-64", "o.bin", ()),
        )


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema",), 2),
        (("platform",), "a4"),
        (("runtime",), "none"),
        (("cpu_level",), 3),
        (("orchestration",), "../up"),
        (("orchestration",), "/abs"),
        (("kernels",), {}),
        (("kernels", 0, "func_id"), 1),
        (("kernels", 0, "func_id"), True),
        (("kernels", 0, "core_type"), "gpu"),
        (("kernels", 0, "file"), "a/../b"),
        (("extra",), 1),
    ],
)
def test_a_manifest_that_breaks_its_grammar_is_refused(path: tuple[Any, ...], value: Any) -> None:
    document: Any = {
        "schema": 1,
        "platform": "a2a3sim",
        "runtime": "host_build_graph",
        "cpu_level": "x86-64",
        "orchestration": "o.bin",
        "kernels": [{"func_id": 0, "core_type": "aiv", "file": "k.bin"}],
    }
    BinaryManifest.parse(json.dumps(document).encode())
    spot = document
    for key in path[:-1]:
        spot = spot[key]
    spot[path[-1]] = value
    with pytest.raises(ArtifactError, match=r"binary_manifest\.json"):
        BinaryManifest.parse(json.dumps(document).encode())
