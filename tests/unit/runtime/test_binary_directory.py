from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import shutil
import signal
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


def test_a_transaction_leaves_a_stamp_with_context_and_digests(program: Program) -> None:
    assert program.obtain() == EVERYTHING
    stamp = json.loads(program.stamp.read_text())
    assert stamp["schema"] == 2
    assert stamp["context"]["sdk_revision"] == "ab" * 32
    assert sorted(stamp["binaries"]) == NAMES
    for name, record in stamp["binaries"].items():
        binary = (program.cache / name).read_bytes()
        assert record["sha256"] == hashlib.sha256(binary).hexdigest()


def test_the_next_transaction_compiles_nothing(program: Program) -> None:
    program.obtain()
    before = program.stamp.stat()
    assert program.obtain() == []
    assert program.stamp.stat() == before


@pytest.mark.parametrize("damage", ["change", "truncate", "link", "remove"])
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
    else:
        victim.unlink()
    assert program.obtain() == ["k1.cpp"]
    assert program.obtain() == []


def test_an_unrecorded_file_is_discarded(program: Program) -> None:
    program.obtain()
    stranger = program.cache / "kernel_9.bin"
    stranger.write_bytes(ELF)
    assert program.obtain() == []
    assert not stranger.exists()
    assert program.obtain() == []


def test_planted_files_without_a_stamp_are_never_used(program: Program) -> None:
    program.cache.mkdir(parents=True)
    for name in NAMES:
        (program.cache / name).write_bytes(ELF + b"planted")
    assert program.obtain() == EVERYTHING


def test_an_edited_source_is_built_again(program: Program) -> None:
    program.obtain()
    program.edit("kernels/k0.cpp", "second")
    assert program.obtain() == ["k0.cpp"]


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


def test_invalidation_costs_a_full_rebuild(program: Program) -> None:
    invalidate_binaries(program.root)
    program.obtain()
    invalidate_binaries(program.root)
    assert not list(program.cache.glob("*.bin"))
    assert program.obtain() == EVERYTHING


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
