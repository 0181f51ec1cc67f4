from __future__ import annotations

import fcntl
import hashlib
import json
import multiprocessing
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pypto.backend import RuntimeKind
from pypto.ir.nodes import Direction
from pypto.runtime.binary_directory import invalidate_binaries, obtain_binaries
from pypto.runtime.kernel_compiler import KernelCompiler
from pypto.runtime.kernel_config import KernelConfig, KernelEntry, OrchestrationEntry
from pypto.runtime.sdk import Sdk
from pypto_toolchains.process import ToolFailed, ToolTimeout

ELF = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\x3e\x00" + bytes(8)

# The output is the source behind an ELF header: a rebuilt binary shows what it was built from.
COPY_SOURCE = f"""
text = open(source, "rb").read()
if b"BROKEN" in text:
    sys.exit("broken source")
if b"EDITED" in text:
    text = text.replace(b"EDITED", b"edited")
    open(source, "wb").write(text)
if b"SLOW" in text:
    time.sleep(float(text.split()[-1]))
open(argv[argv.index("-o") + 1], "wb").write({ELF!r} + text)
"""

NAMES = ["kernel_0.bin", "kernel_1.bin", "orchestration.bin"]


class Program:
    """A directory with two kernels, and the compiler that builds it."""

    def __init__(self, root: Path, fake: Any, sdk_root: Path) -> None:
        self.root = root
        self.fake = fake
        self.cache = root / "cache"
        self.stamp = self.cache / "binary_context.json"
        self.sdk_root = sdk_root
        self.timeout = "60"
        self.environ: dict[str, str] = {}
        self.config = KernelConfig(
            platform="a2a3sim",
            runtime=RuntimeKind.TENSORMAP_AND_RINGBUFFER,
            aicpu_thread_num=0,
            orchestration=OrchestrationEntry("orchestration/p.cpp", "entry", (Direction.In,)),
            kernels=tuple(
                KernelEntry(index, f"k{index}", f"kernels/k{index}.cpp", "aiv", (Direction.In,))
                for index in range(2)
            ),
        )
        for name in ("kernels/k0.cpp", "kernels/k1.cpp", "orchestration/p.cpp"):
            self.edit(name, f"first {name}")

    def edit(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def compiler(self, cpu_level: str = "x86-64") -> KernelCompiler:
        return KernelCompiler(
            "a2a3sim",
            sdk=Sdk.load(self.sdk_root),
            runtime_name="tensormap_and_ringbuffer",
            cpu_level=cpu_level,
            environ={
                "PATH": str(self.fake.directory),
                "PYPTO_COMPILER_TIMEOUT": self.timeout,
                **self.environ,
            },
            build_dir=self.root.parent / "scratch",
        )

    def obtain(self, **options: Any) -> list[str]:
        """Obtain the binaries, check them, and return the sources that were compiled for it."""
        before = len(self.fake.calls())
        binaries = obtain_binaries(self.root, self.config, self.compiler(**options))
        assert sorted(binaries) == NAMES
        for index in range(2):
            expected = (self.root / f"kernels/k{index}.cpp").read_bytes()
            assert binaries[f"kernel_{index}.bin"] == ELF + expected
        for name, binary in binaries.items():
            assert (self.cache / name).read_bytes() == binary
        calls = self.fake.calls()[before:]
        return sorted(
            next(Path(item).name for item in call["argv"] if item[0] == "/" and item[-4:] == ".cpp")
            for call in calls
        )


# The children only build; torch's threads in the parent, if any, are not theirs to use.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")

EVERYTHING = ["k0.cpp", "k1.cpp", "p.cpp"]


@pytest.fixture
def program(tmp_path: Path, sdk_root: Path, fake_compiler: Callable[..., Any]) -> Program:
    return Program(tmp_path / "output", fake_compiler(COPY_SOURCE), sdk_root)


@pytest.mark.conforms("cache.73")
def test_a_transaction_leaves_a_stamp_with_context_and_digests(program: Program) -> None:
    assert program.obtain() == EVERYTHING
    stamp = json.loads(program.stamp.read_text())
    assert stamp["schema"] == 2
    assert stamp["context"]["sdk_revision"] == "ab" * 32
    assert sorted(stamp["binaries"]) == NAMES
    for name, record in stamp["binaries"].items():
        binary = (program.cache / name).read_bytes()
        assert record["sha256"] == hashlib.sha256(binary).hexdigest()


@pytest.mark.conforms("cache.74")
def test_the_next_transaction_compiles_nothing(program: Program) -> None:
    program.obtain()
    before = {path: path.stat().st_mtime_ns for path in program.cache.iterdir()}
    assert program.obtain() == []
    assert {path: path.stat().st_mtime_ns for path in program.cache.iterdir()} == before


@pytest.mark.conforms("cache.75")
@pytest.mark.parametrize(
    "damage", ["change", "truncate", "link", "directory", "pipe", "forbid", "remove"]
)
def test_one_file_that_is_not_as_recorded_is_built_alone(program: Program, damage: str) -> None:
    program.obtain()
    victim = program.cache / "kernel_1.bin"
    if damage == "change":
        victim.write_bytes(victim.read_bytes()[:-1] + b"!")
    elif damage == "truncate":
        victim.write_bytes(b"")
    elif damage == "link":
        shutil.move(victim, program.root / "elsewhere")
        victim.symlink_to(program.root / "elsewhere")
    elif damage == "directory":
        victim.unlink()
        (victim / "inside").mkdir(parents=True)
    elif damage == "pipe":
        victim.unlink()
        os.mkfifo(victim)
    elif damage == "forbid":
        victim.chmod(0)
        if os.access(victim, os.R_OK):
            victim.unlink()  # the superuser reads it all the same
    else:
        victim.unlink()
    assert program.obtain() == ["k1.cpp"]
    assert program.obtain() == []


@pytest.mark.conforms("cache.75")
def test_an_unrecorded_file_is_discarded(program: Program) -> None:
    program.obtain()
    stranger, unfinished = program.cache / "kernel_9.bin", program.cache / ".kernel_0.bin.tmp"
    for path in (stranger, unfinished):
        path.write_bytes(ELF)
        assert program.obtain() == []
        assert not path.exists()
    assert program.obtain() == []


@pytest.mark.conforms("cache.75")
def test_a_file_that_the_stamp_stopped_naming_is_not_kept(program: Program) -> None:
    program.obtain()
    stamp = json.loads(program.stamp.read_text())
    del stamp["binaries"]["kernel_0.bin"]
    program.stamp.write_text(json.dumps(stamp))
    assert program.obtain() == ["k0.cpp"]


def test_planted_files_without_a_stamp_are_never_used(program: Program) -> None:
    program.cache.mkdir(parents=True)
    for name in NAMES:
        (program.cache / name).write_bytes(ELF + b"planted")
    assert program.obtain() == EVERYTHING


def test_an_edited_source_is_built_again(program: Program) -> None:
    program.obtain()
    program.edit("kernels/k0.cpp", "second")
    assert program.obtain() == ["k0.cpp"]


def test_what_is_compiled_of_a_source_that_changes_meanwhile_is_not_kept(
    program: Program,
) -> None:
    program.edit("kernels/k0.cpp", "EDITED while compiled")
    assert program.obtain() == EVERYTHING
    program.edit("kernels/k0.cpp", "EDITED while compiled")
    assert program.obtain() == ["k0.cpp"]
    assert program.obtain() == ["k0.cpp"]
    assert program.obtain() == []


@pytest.mark.conforms("cache.76")
@pytest.mark.parametrize("schema", [1, 3, "2", None, True])
def test_another_schema_costs_exactly_one_rebuild(program: Program, schema: object) -> None:
    program.obtain()
    stamp = json.loads(program.stamp.read_text())
    stamp["schema"] = schema
    program.stamp.write_text(json.dumps(stamp))
    assert program.obtain() == EVERYTHING
    assert program.obtain() == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 2}', '{"schema": 2, "schema": 2}'])
def test_a_damaged_stamp_costs_one_rebuild(program: Program, text: str) -> None:
    program.obtain()
    program.stamp.write_text(text)
    assert program.obtain() == EVERYTHING
    assert program.obtain() == []


def test_another_context_costs_a_rebuild(program: Program) -> None:
    program.obtain()
    assert program.obtain(cpu_level="x86-64-v3") == EVERYTHING
    document = json.loads((program.sdk_root / "sdk.json").read_text())
    document["revision"] = "cd" * 32
    (program.sdk_root / "sdk.json").write_text(json.dumps(document))
    assert program.obtain(cpu_level="x86-64-v3") == EVERYTHING
    program.environ["CPATH"] = "/usr/include/other"
    assert program.obtain(cpu_level="x86-64-v3") == EVERYTHING
    assert program.obtain(cpu_level="x86-64-v3") == []


@pytest.mark.conforms("cache.77")
def test_a_failure_leaves_no_stamp(program: Program) -> None:
    program.obtain()
    good = (program.root / "kernels/k1.cpp").read_text()
    program.edit("kernels/k1.cpp", "BROKEN")
    with pytest.raises(ToolFailed, match=r"k1\.cpp"):
        program.obtain()
    assert not program.stamp.exists()
    program.edit("kernels/k1.cpp", good)
    assert program.obtain() == EVERYTHING
    assert not list(program.cache.glob(".*.tmp"))


@pytest.mark.conforms("cache.71", "cache.77")
def test_a_timeout_leaves_no_stamp(program: Program) -> None:
    program.obtain()
    program.edit("kernels/k0.cpp", "SLOW 5")
    program.timeout = "0.5"
    with pytest.raises(ToolTimeout, match=r"k0\.cpp"):
        program.obtain()
    assert not program.stamp.exists()
    assert list((program.root.parent / "scratch").iterdir()) == []


def test_a_kernel_with_unread_inputs_is_always_built(program: Program) -> None:
    kernels = list(program.config.kernels)
    kernels[1] = KernelEntry(1, "k1", "kernels/k1.cpp", "aiv", (), external=True)
    program.config = KernelConfig(
        program.config.platform,
        program.config.runtime,
        0,
        program.config.orchestration,
        tuple(kernels),
    )
    assert program.obtain() == EVERYTHING
    assert program.obtain() == ["k1.cpp"]


@pytest.mark.parametrize(
    ("text", "always"),
    [
        ('#include "more.h"\n', True),
        ('  #  include\t"../k0/more.h"\n', True),
        ("#define MORE <k0.h>\n#include MORE\n", True),
        ('/* more */ #include "more.h"\n', True),
        ('#inc\\\nlude /* more */ "more.h"\n', True),
        ('%: include "more.h"\n', True),
        ("#include_next <k0.h>\n", True),
        ('asm(".incbin \\"more.h\\"");\n', True),
        ('#if 0\n#include "more.h"\n#endif\n', False),
        ('#include "pto/pto-inst.hpp"\n#include <cstdint>\n', False),
        ('// #include "more.h"\n', False),
    ],
)
def test_a_source_that_includes_its_neighbours_is_always_built(
    program: Program, text: str, always: bool
) -> None:
    for name in ("kernels/more.h", "k0/more.h"):
        program.edit(name, "#pragma once\n")
    program.edit("kernels/k0.cpp", text)
    assert program.obtain() == EVERYTHING
    assert program.obtain() == (["k0.cpp"] if always else [])


def test_a_header_that_appears_beside_a_source_is_not_overlooked(program: Program) -> None:
    program.edit("kernels/k0.cpp", '#include "pto/pto-inst.hpp"\n')
    program.obtain()
    program.edit("kernels/pto/pto-inst.hpp", "#define OTHER 1\n")
    assert program.obtain() == ["k0.cpp"]


def test_invalidation_costs_a_full_rebuild(program: Program) -> None:
    invalidate_binaries(program.root)
    program.obtain()
    invalidate_binaries(program.root)
    assert not list(program.cache.glob("*.bin"))
    assert program.obtain() == EVERYTHING


@pytest.mark.conforms("cache.77")
def test_the_stamp_is_gone_while_a_killed_process_assembles(program: Program) -> None:
    program.obtain()
    program.edit("kernels/k0.cpp", "SLOW 5")
    context = multiprocessing.get_context("fork")
    child = context.Process(target=program.obtain)
    started = len(program.fake.calls())
    child.start()
    deadline = time.monotonic() + 30
    while len(program.fake.calls()) == started:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert not program.stamp.exists()
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    # The compiler runs in a session of its own and outlives the killed process.
    program.edit("kernels/k0.cpp", "again")
    assert program.obtain() == EVERYTHING


# What a transaction does to the file system and to other processes, as the interpreter reports it.
_STEPS = {"open", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "subprocess.Popen"}


def _kill_at(step: int) -> None:
    """Kill this process at that many of its `_STEPS` from here on, before the step is made."""
    left = step

    def count(event: str, _: object) -> None:
        nonlocal left
        if event in _STEPS:
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)


def _contents(cache: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in cache.iterdir() if path.name[0] != "."}


@pytest.mark.conforms("cache.77")
@pytest.mark.timeout(240)
def test_a_transaction_killed_at_any_step_authorises_nothing(program: Program) -> None:
    """A stamp is there only while the directory is as it was before, or as it is to become."""
    program.obtain()
    before = _contents(program.cache)
    program.edit("kernels/k0.cpp", "second")
    program.edit("kernels/k1.cpp", "second")
    kills = 0
    while True:
        pid = os.fork()
        if pid == 0:
            _kill_at(kills)
            obtain_binaries(program.root, program.config, program.compiler())
            os._exit(0)
        if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0:
            break
        kills += 1
        left = _contents(program.cache)
        if program.stamp.exists():
            whole = left == before or program.obtain() == []
            assert whole, f"killed at step {kills}"
        program.obtain()
        assert not list(program.cache.glob(".*.tmp"))
        for path in program.cache.iterdir():
            path.unlink()
        for name, data in before.items():
            (program.cache / name).write_bytes(data)
    assert kills > 12
    assert program.obtain() == []


@pytest.mark.conforms("cache.78")
def test_a_child_that_was_forked_meanwhile_keeps_no_lock(program: Program) -> None:
    program.edit("kernels/k0.cpp", "SLOW 1")
    builder = threading.Thread(target=program.obtain)
    builder.start()
    while not program.fake.calls():
        assert builder.is_alive()
        time.sleep(0.01)
    pid = os.fork()
    if pid == 0:
        time.sleep(60)
        os._exit(0)
    try:
        builder.join()
        second = threading.Thread(target=program.obtain, daemon=True)
        second.start()
        second.join(20)
        assert not second.is_alive()
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


@pytest.mark.conforms("cache.78")
def test_a_second_process_waits_for_the_first(program: Program) -> None:
    program.cache.mkdir()
    with (program.cache / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        waiting = threading.Thread(target=program.obtain)
        waiting.start()
        waiting.join(0.5)
        assert waiting.is_alive()
        assert not program.fake.calls()
    waiting.join()
    assert len(program.fake.calls()) == 3


@pytest.mark.conforms("cache.78")
def test_two_processes_on_one_directory_build_once(program: Program) -> None:
    program.edit("kernels/k0.cpp", "SLOW 0.3")
    context = multiprocessing.get_context("fork")
    children = [
        context.Process(
            target=obtain_binaries, args=(program.root, program.config, program.compiler())
        )
        for _ in range(4)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join()
        assert child.exitcode == 0
    assert len(program.fake.calls()) == 3
