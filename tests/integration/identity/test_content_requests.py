"""Real requests under the `content` policy: hits, misses and bypasses of whole processes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from doubling_kernel import KERNELS
from mutations import PACKAGES
from private_toolchain import PrivateToolchain
from pypto_toolchains.recall import decode

IMPORT_ROOTS = [str(Path(str(module.__file__)).absolute().parents[1]) for module in PACKAGES]

_PROGRAM = """
import dataclasses, json, os, sys
started = []
sys.addaudithook(
    lambda event, detail: started.append(str(detail[0]))
    if event in {"subprocess.Popen", "os.posix_spawn", "os.exec", "os.system"}
    else None
)
import pypto
import kernels
compiled = kernels.kernel.warmup()
stats = dataclasses.asdict(pypto.cache_stats())
print(json.dumps({"key": compiled.artifact_key, "started": started, "stats": stats}))
"""


class Processes:
    """Processes of one user with one cache, and a compiler whose files may be changed."""

    def __init__(self, top: Path) -> None:
        self.top = top
        (top / "kernels.py").write_text(KERNELS)
        (top / "scratch").mkdir()
        self.toolchain = PrivateToolchain(top / "toolchain")
        self.toolchain.add_own_headers()
        self.environ = {
            "PATH": f"{self.toolchain.bin}:{os.environ['PATH']}",
            "HOME": str(top),
            "PYTHONPATH": os.pathsep.join([*IMPORT_ROOTS, str(top)]),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TMPDIR": str(top / "scratch"),
            "PYPTO_CACHE": "1",
            "PYPTO_CACHE_DIR": str(top / "cache"),
        }

    def run(self, policy: str, *tracer: str, **variables: str) -> dict[str, Any]:
        """What one process reports that needs the kernel ready."""
        environ = {**self.environ, "PYPTO_CACHE_IDENTITY": policy, **variables}
        done = subprocess.run(
            [*tracer, sys.executable, "-c", _PROGRAM],
            cwd=self.top,
            env=environ,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return report


@pytest.fixture
def processes(tmp_path: Path) -> Processes:
    return Processes(tmp_path)


@pytest.mark.conforms("cache.97", "cache.98")
def test_the_policies_live_beside_each_other_in_one_root(processes: Processes) -> None:
    built, identified = (processes.run(policy) for policy in ("build", "content"))
    for first in (built, identified):
        assert first["stats"]["bypasses"] == 0, first["stats"]
        assert first["stats"]["generation_builds"] == first["stats"]["binary_builds"] == 1
    assert built["key"] != identified["key"]
    for policy, first in (("build", built), ("content", identified)):
        again = processes.run(policy)
        assert again["key"] == first["key"]
        assert again["stats"]["ready_hits"] == 1
        assert again["stats"]["generation_builds"] == again["stats"]["binary_builds"] == 0
        assert again["started"] == []
    # A header that a compile reads: only one of the two looks at it.
    with (processes.toolchain.own_include / "stddef.h").open("a") as file:
        file.write("\n")
    assert processes.run("build")["stats"]["ready_hits"] == 1
    patched = processes.run("content")
    assert patched["stats"]["ready_hits"] == 0
    assert patched["stats"]["binary_builds"] == 1
    assert patched["key"] not in (built["key"], identified["key"])


@pytest.mark.conforms("cache.99")
@pytest.mark.parametrize(
    ("name", "value"), [("CPATH", "/nowhere"), ("LD_PRELOAD", ""), ("LIBRARY_PATH", "/nowhere")]
)
def test_a_bypass_says_why(processes: Processes, name: str, value: str) -> None:
    report = processes.run("content", **{name: value})
    assert report["key"] is None
    assert report["stats"]["bypasses"] >= 1
    assert report["stats"]["last_bypass_reason"].startswith(f"toolchain: {name} ")
    assert not list((processes.top / "cache").glob("artifacts/v1/*/*"))
    assert processes.run("build", **{name: value})["stats"]["bypasses"] == 0


@pytest.mark.conforms("cache.98")
def test_whatever_the_tools_of_a_build_open_is_evidence(processes: Processes) -> None:
    """By the kernel's word: strace sees every file that the compiler and its helpers open."""
    strace = shutil.which("strace")
    if (
        strace is None
        or subprocess.run([strace, "-qo", os.devnull, "true"], check=False).returncode
    ):
        pytest.skip("needs strace, and leave to use it")
    trace = processes.top / "trace"
    options = ("-ff", "-qq", "-e", "trace=execve,open,openat", "-o", str(trace))
    report = processes.run("content", strace, *options)
    assert report["stats"]["binary_builds"] == 1
    known = observations(processes.top / "cache" / "tools")
    files = {os.path.realpath(path) for kind, path, _ in known if kind == "sha256"}
    trees = [os.path.realpath(path) for kind, path, _ in known if kind == "tree"]
    started, opened = opened_by_tools(trace)
    assert {"cc1plus", "as", "collect2", "ld", "g++", "ptoas"} <= {
        os.path.basename(path) for path in started
    }
    unknown = {
        path
        for path in map(os.path.realpath, opened)
        if path not in files and not any(path.startswith(f"{tree}/") for tree in trees)
    }
    own = (f"{processes.top}/cache/", f"{processes.top}/scratch/", "/dev/", "/proc/")
    assert not {path for path in unknown if not path.startswith(own)}
    assert any("stddef.h" in path for path in opened)


def observations(tools: Path) -> list[tuple[str, ...]]:
    """What the identity of the process rests on."""
    found = [decode(path.read_bytes()) for path in tools.iterdir()]
    return [tuple(item) for recalled in found if recalled for item in recalled.observations]


def opened_by_tools(trace: Path) -> tuple[set[str], set[str]]:
    """The programs that a process has started, and the absolute paths that those have read.

    strace writes a file for each process: in one file for all, a call that another process
    interrupts stands in two pieces.
    """
    started: set[str] = set()
    opened: set[str] = set()
    for process in trace.parent.glob(f"{trace.name}.*"):
        program = "python"
        for line in process.read_text(errors="replace").splitlines():
            if begun := re.match(r'execve\("([^"]+)".* = 0$', line):
                program = begun[1]
                started.add(program)
            read = re.match(r'open(?:at)?\((?:AT_FDCWD, )?"(/[^"]*)", O_RDONLY.* = \d+$', line)
            if read and "python" not in program:
                opened.add(read[1])
    return started, opened
