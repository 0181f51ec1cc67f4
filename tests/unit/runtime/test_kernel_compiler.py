from __future__ import annotations

import ctypes
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile
from pypto.runtime.errors import BinaryError, ToolchainUnavailable
from pypto.runtime.kernel_compiler import KernelCompiler
from pypto.runtime.sdk import Sdk, SdkError
from pypto_toolchains.process import ToolFailed, ToolTimeout

KERNEL = 'extern "C" __attribute__((visibility("default"))) void kernel_entry(long*) {}\n'
RING = "tensormap_and_ringbuffer"
GRAPH = "host_build_graph"

# The first 20 bytes decide: a 64-bit little-endian shared library.
FAKE_ELF = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\x3e\x00" + bytes(64)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "tree" / "kernels" / "aiv" / "f.cpp"
    path.parent.mkdir(parents=True)
    path.write_text(KERNEL)
    return path


@pytest.fixture
def make(sdk_root: Path, tmp_path: Path) -> Callable[..., KernelCompiler]:
    def build(
        platform: str = "a2a3sim",
        *,
        path: str | None = None,
        environ: dict[str, str] | None = None,
        runtime_name: str = RING,
        **options: Any,
    ) -> KernelCompiler:
        scratch = tmp_path / "scratch"
        scratch.mkdir(exist_ok=True)
        return KernelCompiler(
            platform,
            sdk=Sdk.load(sdk_root),
            runtime_name=runtime_name,
            cpu_level=options.pop("cpu_level", "x86-64"),
            environ={
                "PATH": os.environ["PATH"] if path is None else path,
                "TMPDIR": str(scratch),
                **(environ or {}),
            },
            **options,
        )

    return build


Make = Callable[..., KernelCompiler]
Fake = Callable[..., Any]


def test_a_kernel_becomes_a_shared_library_that_exports_its_entry(
    make: Make, source: Path, tmp_path: Path, gxx: str
) -> None:
    binary = make().compile_incore(source, "aiv")
    library = tmp_path / "f.so"
    library.write_bytes(binary)
    assert ctypes.CDLL(str(library)).kernel_entry


@pytest.mark.conforms("cache.61")
@pytest.mark.parametrize(("core", "macro"), [("aiv", "VECTOR"), ("aic", "CUBE")])
def test_flags_of_core_level_header_and_admission_reach_the_source(
    make: Make, source: Path, gxx: str, core: str, macro: str
) -> None:
    source.write_text(
        f"#if !{macro} || LEVEL != 3 || !FORCED_HEADER || !ADMITTED\n#error\n#endif\n{KERNEL}"
    )
    assert make(cpu_level="x86-64-v3").compile_incore(source, core)


@pytest.mark.conforms("cache.61")
def test_without_admission_the_forced_header_refuses(
    make: Make, source: Path, sdk_root: Path, gxx: str
) -> None:
    path = sdk_root / "sdk.json"
    document = json.loads(path.read_text())
    document["targets"]["a2a3sim"]["incore"]["admission"] = "-DOTHER=1"
    path.write_text(json.dumps(document))
    with pytest.raises(ToolFailed, match="not admitted"):
        make().compile_incore(source, "aiv")


@pytest.mark.conforms("cache.64", "cache.66")
def test_commands_keep_relative_spellings_and_run_in_the_sdk(
    make: Make, source: Path, sdk_root: Path, fake_compiler: Fake
) -> None:
    fake = fake_compiler(output=FAKE_ELF)
    compiler = make(path=str(fake.directory))
    compiler.compile_incore(source, "aiv")
    compiler.compile_orchestration(source)
    kernel, orchestration = fake.calls()
    assert kernel["cwd"] == orchestration["cwd"] == str(compiler.project_root) == str(sdk_root)
    arguments = kernel["argv"]
    assert arguments[arguments.index("-include") + 1] == "include/pto/sim/target.hpp"
    assert "-Iinclude" in arguments
    assert arguments.index("-DVECTOR=1") < arguments.index(str(source))
    assert "src/support.cpp" in orchestration["argv"]
    assert "-pthread" in orchestration["argv"]
    assert "-Wl,--build-id=sha1" in orchestration["argv"]


@pytest.mark.conforms("cache.60")
@pytest.mark.parametrize(
    ("place", "value", "expected"),
    [
        (["tools", "host_cxx"], "other-g++", "other-g++"),
        (["targets", "a2a3sim", "incore", "flags"], ["-DNEW_FLAG"], "-DNEW_FLAG"),
        (["targets", "a2a3sim", "incore", "core_flags", "aiv"], ["-DNEW_CORE"], "-DNEW_CORE"),
        (["targets", "a2a3sim", "incore", "admission"], "-DNEW_WORD=1", "-DNEW_WORD=1"),
        (["targets", "a2a3sim", "incore", "include_dirs"], ["headers"], "-Iheaders"),
        (["targets", "a2a3sim", "incore", "forced_header"], "src/new.hpp", "src/new.hpp"),
        (["cpu_levels", "x86-64"], ["-DNEW_LEVEL"], "-DNEW_LEVEL"),
    ],
)
def test_what_the_metadata_says_is_what_is_run(
    make: Make,
    source: Path,
    sdk_root: Path,
    fake_compiler: Fake,
    place: list[str],
    value: Any,
    expected: str,
) -> None:
    _change_metadata(sdk_root, place, value)
    (sdk_root / "src/new.hpp").touch()
    for name in ("g++", "other-g++"):
        tools = fake_compiler(name=name, output=FAKE_ELF)
    usual = fake_compiler(output=FAKE_ELF)
    make(path=f"{usual.directory}:{tools.directory}").compile_incore(source, "aiv")
    (call,) = [*usual.calls(), *tools.calls()]
    assert expected in [*call["argv"], Path(call["program"]).name]


@pytest.mark.conforms("cache.60")
@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("tool", "aarch64_cxx", "aarch64-linux-gnu-g++"),
        ("flags", ["-DNEW_FLAG"], "-DNEW_FLAG"),
        ("include_dirs", ["headers"], "-Iheaders"),
        ("helper_sources", ["src/new.hpp"], "src/new.hpp"),
    ],
)
def test_so_it_is_for_orchestration(
    make: Make,
    source: Path,
    sdk_root: Path,
    fake_compiler: Fake,
    field: str,
    value: Any,
    expected: str,
) -> None:
    _change_metadata(sdk_root, ["targets", "a2a3sim", "orchestration", RING, field], value)
    (sdk_root / "src/new.hpp").touch()
    host = fake_compiler(output=FAKE_ELF)
    cross = fake_compiler(name="aarch64-linux-gnu-g++", output=FAKE_ELF)
    make(path=f"{host.directory}:{cross.directory}").compile_orchestration(source)
    (call,) = [*host.calls(), *cross.calls()]
    assert expected in [*call["argv"], Path(call["program"]).name]


def _change_metadata(sdk_root: Path, place: list[str], value: object) -> None:
    path = sdk_root / "sdk.json"
    document = json.loads(path.read_text())
    spot = document
    for name in place[:-1]:
        spot = spot[name]
    spot[place[-1]] = value
    path.write_text(json.dumps(document))


@pytest.mark.conforms("cache.61")
@pytest.mark.parametrize(("platform", "other"), [("a2a3sim", "a5sim"), ("a5sim", "a2a3sim")])
def test_each_family_gets_its_own_in_core_flags_all_of_them(
    make: Make, source: Path, sdk_root: Path, fake_compiler: Fake, platform: str, other: str
) -> None:
    for name in (platform, other):
        own = [f"-DFAMILY_{name}", f"-f{name}-first", f"-f{name}-second"]
        _change_metadata(sdk_root, ["targets", name, "incore", "flags"], own)
    fake = fake_compiler(output=FAKE_ELF)
    make(platform, path=str(fake.directory)).compile_incore(source, "aiv")
    arguments = fake.calls()[0]["argv"]
    assert arguments[:3] == [f"-DFAMILY_{platform}", f"-f{platform}-first", f"-f{platform}-second"]
    assert "-DADMITTED=1" in arguments
    assert not [item for item in arguments if other in item]


@pytest.mark.conforms("cache.62")
def test_an_explicit_isa_root_replaces_the_header(
    make: Make, source: Path, tmp_path: Path, gxx: str
) -> None:
    root = tmp_path / "isa"
    (root / "include/pto/sim").mkdir(parents=True)
    (root / "include/pto/sim/target.hpp").write_text("#define FROM_OTHER_ROOT 1\n")
    source.write_text("#if !FROM_OTHER_ROOT || FORCED_HEADER\n#error\n#endif\n" + KERNEL)
    compiler = make(isa_root=root)
    assert compiler.compile_incore(source, "aiv")
    assert compiler.reuse_context() is None


@pytest.mark.conforms("cache.63")
@pytest.mark.parametrize("runtime_name", [RING, GRAPH])
@pytest.mark.parametrize("platform", ["a2a3", "a2a3sim", "a5", "a5sim"])
def test_the_cross_compiler_builds_onboard_ring_buffer_orchestration(
    make: Make, source: Path, fake_compiler: Fake, platform: str, runtime_name: str
) -> None:
    host = fake_compiler(output=FAKE_ELF)
    cross = fake_compiler(name="aarch64-linux-gnu-g++", output=FAKE_ELF)
    make(
        platform,
        path=f"{host.directory}:{cross.directory}",
        runtime_name=runtime_name,
        cpu_level="x86-64-v3",
    ).compile_orchestration(source)
    onboard = platform in {"a2a3", "a5"}
    crossed = onboard and runtime_name == RING
    assert (len(host.calls()), len(cross.calls())) == ((0, 1) if crossed else (1, 0))
    (call,) = [*host.calls(), *cross.calls()]
    assert ("-DLEVEL=3" in call["argv"]) is not onboard


def test_onboard_kernels_are_refused_with_what_is_needed(
    make: Make, source: Path, fake_compiler: Fake
) -> None:
    fake = fake_compiler(output=FAKE_ELF)
    with pytest.raises(ToolchainUnavailable, match=r"'a2a3' need the CANN toolkit.*'a2a3sim'"):
        make("a2a3", path=str(fake.directory)).compile_incore(source, "aiv")
    assert not fake.calls()


@pytest.mark.conforms("cache.65")
def test_a_missing_helper_fails_before_any_compiler_starts(
    make: Make, source: Path, sdk_root: Path, fake_compiler: Fake
) -> None:
    fake = fake_compiler(output=FAKE_ELF)
    (sdk_root / "src/support.cpp").unlink()
    with pytest.raises(SdkError, match=r"src/support\.cpp"):
        make(path=str(fake.directory)).compile_orchestration(source)
    (sdk_root / "include/pto/sim/target.hpp").unlink()
    with pytest.raises(SdkError, match=r"target\.hpp"):
        make(path=str(fake.directory)).compile_incore(source, "aiv")
    assert not fake.calls()


def test_a_missing_compiler_says_how_to_get_it(make: Make, source: Path, tmp_path: Path) -> None:
    with pytest.raises(ToolchainUnavailable, match=r"'g\+\+' was not found on PATH"):
        make(path=str(tmp_path)).compile_incore(source, "aiv")


def test_relative_search_entries_count_from_the_project_root(
    make: Make, sdk_root: Path, source: Path, fake_compiler: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = fake_compiler(output=FAKE_ELF)
    shutil.copytree(fake.directory, sdk_root / "own-tools")
    monkeypatch.chdir("/")
    compiler = make(path="own-tools")
    assert compiler.compile_incore(source, "aiv") == FAKE_ELF
    assert fake.calls()[0]["program"] == str(sdk_root / "own-tools" / "g++")


@pytest.mark.conforms("cache.68")
@pytest.mark.parametrize(
    ("output", "complaint"),
    [
        (None, "wrote no output"),
        (b"", "empty"),
        (b"\x7fELF", "too short"),
        (b"#!/bin/sh\n" + bytes(64), "no 64-bit ELF"),
        (FAKE_ELF[:4] + b"\x01" + FAKE_ELF[5:], "no 64-bit ELF"),
        (FAKE_ELF[:16] + b"\x01" + FAKE_ELF[17:], "no shared library"),
    ],
)
def test_success_without_a_usable_binary_is_an_error(
    make: Make, source: Path, fake_compiler: Fake, output: bytes | None, complaint: str
) -> None:
    fake = fake_compiler(output=output)
    with pytest.raises(BinaryError, match=rf"compiling kernel f\.cpp .*{complaint}"):
        make(path=str(fake.directory)).compile_incore(source, "aiv")


@pytest.mark.conforms("cache.67")
@pytest.mark.parametrize("behaviour", ["", "sys.exit(1)"])
def test_nothing_temporary_remains(
    make: Make, source: Path, fake_compiler: Fake, tmp_path: Path, behaviour: str
) -> None:
    fake = fake_compiler(behaviour, output=FAKE_ELF)
    parent = tmp_path / "made" / "here"
    compiler = make(path=str(fake.directory), build_dir=parent)
    if behaviour:
        with pytest.raises(ToolFailed):
            compiler.compile_incore(source, "aiv")
    else:
        compiler.compile_incore(source, "aiv")
    scratch = Path(fake.calls()[0]["env"]["TMPDIR"])
    assert scratch.parent == parent
    assert list(parent.iterdir()) == []
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.conforms("cache.71")
def test_a_timeout_names_the_stage_and_leaves_nothing(
    make: Make, source: Path, fake_compiler: Fake, tmp_path: Path
) -> None:
    pid_file = tmp_path / "pid"
    fake = fake_compiler(
        f"open({str(pid_file)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)", output=FAKE_ELF
    )
    compiler = make(path=str(fake.directory), environ={"PYPTO_COMPILER_TIMEOUT": "0.5"})
    with pytest.raises(RuntimeError, match=r"compiling kernel f\.cpp \(aiv, a2a3sim\)") as caught:
        compiler.compile_incore(source, "aiv")
    assert isinstance(caught.value, ToolTimeout)
    assert list((tmp_path / "scratch").iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


@pytest.mark.conforms("cache.70")
def test_the_limit_is_per_invocation(make: Make, source: Path, fake_compiler: Fake) -> None:
    fake = fake_compiler("time.sleep(3)", output=FAKE_ELF)
    compiler = make(path=str(fake.directory), environ={"PYPTO_COMPILER_TIMEOUT": "5.5"})
    started = time.monotonic()
    compiler.compile_incore(source, "aiv")
    compiler.compile_orchestration(source)
    assert time.monotonic() - started > 5.5


@pytest.mark.conforms("cache.69")
def test_the_default_limit_is_900_seconds(make: Make) -> None:
    assert make().timeout == 900.0
    assert make(environ={"PYPTO_COMPILER_TIMEOUT": "1.5"}).timeout == 1.5


@pytest.mark.conforms("cache.69")
def test_the_limit_is_what_the_environment_said_when_the_compiler_was_made(
    make: Make, source: Path, fake_compiler: Fake, sdk_root: Path
) -> None:
    fake = fake_compiler("time.sleep(1)", output=FAKE_ELF)
    environ = {"PATH": str(fake.directory), "PYPTO_COMPILER_TIMEOUT": "60"}
    compiler = KernelCompiler(
        "a2a3sim",
        sdk=Sdk.load(sdk_root),
        runtime_name=RING,
        cpu_level="x86-64",
        environ=environ,
    )
    environ["PYPTO_COMPILER_TIMEOUT"] = "0.1"
    assert compiler.compile_incore(source, "aiv") == FAKE_ELF
    environ["PYPTO_COMPILER_TIMEOUT"] = "none"
    assert compiler.compile_incore(source, "aiv") == FAKE_ELF


@pytest.mark.conforms("cache.69")
@pytest.mark.parametrize("text", ["0", "-1", "inf", "-inf", "nan", "", "ten"])
def test_another_limit_than_a_positive_number_is_refused(make: Make, text: str) -> None:
    with pytest.raises(ValueError, match="PYPTO_COMPILER_TIMEOUT"):
        make(environ={"PYPTO_COMPILER_TIMEOUT": text})


def test_a_bad_request_is_refused(make: Make, source: Path) -> None:
    with pytest.raises(ValueError, match="core_type"):
        make().compile_incore(source, "aicpu")
    with pytest.raises(ValueError, match="CPU level"):
        make(cpu_level="native")
    with pytest.raises(ValueError, match="a2a3sim"):
        make("a4")
    with pytest.raises(FileNotFoundError, match=r"gone\.cpp"):
        make().compile_incore(source.with_name("gone.cpp"), "aiv")


def test_the_compilers_message_reaches_the_caller(make: Make, source: Path, gxx: str) -> None:
    source.write_text("this is no C++\n")
    with pytest.raises(ToolFailed, match=r"compiling kernel f\.cpp(.|\n)*this"):
        make().compile_incore(source, "aiv")


def test_equal_sources_give_equal_bytes_wherever_they_are(
    sdk_root: Path, tmp_path: Path, gxx: str
) -> None:
    text = (
        '#include "pto/sim/target.hpp"\nnamespace { struct S { S(); }; S s; S::S() {} }\n'
        + KERNEL
        + '__attribute__((visibility("default"))) const char* where = __FILE__;\n'
        "static long hidden() { static long x; return ++x; }\n"
        'extern "C" __attribute__((visibility("default"))) long other() { return hidden(); }\n'
    )
    binaries = []
    for name in ("one", "another/deeper"):
        root = tmp_path / name
        shutil.copytree(sdk_root, root / "sdk")
        source = root / "tree" / "f.cpp"
        source.parent.mkdir()
        source.write_text(text)
        compiler = KernelCompiler(
            "a2a3sim",
            sdk=Sdk.load(root / "sdk"),
            runtime_name=RING,
            cpu_level="x86-64",
            environ={"PATH": os.environ["PATH"]},
            build_dir=root / "build",
        )
        binaries.append(compiler.compile_incore(source, "aiv"))
        binaries.append(compiler.compile_incore(source, "aiv"))
    assert len(set(binaries)) == 1
    assert str(tmp_path).encode() not in binaries[0]


@pytest.mark.conforms("cache.64")
def test_orchestration_holds_the_helpers_and_a_build_id(
    make: Make, source: Path, tmp_path: Path, gxx: str
) -> None:
    library = tmp_path / "orchestration.so"
    library.write_bytes(make().compile_orchestration(source))
    assert ctypes.CDLL(str(library)).framework_bind_runtime() == 7
    with library.open("rb") as file:
        assert ELFFile(file).get_section_by_name(".note.gnu.build-id") is not None


def test_the_reuse_context_changes_with_what_decides_the_bytes(
    make: Make, sdk_root: Path, fake_compiler: Fake
) -> None:
    fake = fake_compiler(output=FAKE_ELF)
    base = make(path=str(fake.directory)).reuse_context()
    assert base == make(path=str(fake.directory)).reuse_context()
    assert base != make(path=str(fake.directory), cpu_level="x86-64-v3").reuse_context()
    assert base != make("a5sim", path=str(fake.directory)).reuse_context()
    assert base != make(path=str(fake.directory), runtime_name=GRAPH).reuse_context()
    flags = json.loads((sdk_root / "sdk.json").read_text())["targets"]["a2a3sim"]["incore"]["flags"]
    _change_metadata(sdk_root, ["targets", "a2a3sim", "incore", "flags"], [*flags, "-DOTHER"])
    described = make(path=str(fake.directory)).reuse_context()
    assert base != described
    with (fake.directory / "g++").open("a") as script:
        script.write("# another compiler\n")
    assert described != make(path=str(fake.directory)).reuse_context()
