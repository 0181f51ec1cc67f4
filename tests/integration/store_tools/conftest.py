"""A directory with kernels and a cache, requests from fresh processes, and the store's commands."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from dataclasses import dataclass, field
from pathlib import Path

import pypto
import pypto_store
import pypto_toolchains
import pytest

IMPORT_ROOTS = [
    str(Path(str(module.__file__)).absolute().parents[1])
    for module in (pypto, pypto_store, pypto_toolchains)
]

KERNELS = """
import pypto.language as pl

SCALE = 2.0


@pl.jit.incore
def helper(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    tile = pl.load(x, [0, 0], [16, 64])
    out = pl.store(pl.mul(tile, SCALE), [0, 0], out)
    return out


@pl.jit
def kernel(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    out = helper(x, out)
    return out
"""

_REQUEST = """
import dataclasses, json, os, sys
touched = []
sys.addaudithook(
    lambda event, detail: touched.append(os.fsdecode(detail[0]))
    if event in {"open", "os.rename", "os.mkdir", "os.listdir", "os.scandir"}
    and isinstance(detail[0], (str, bytes)) else None
)
job = json.loads(sys.argv[1])
sys.path.insert(0, os.getcwd())
import pypto
from pathlib import Path
from pypto.backend import BackendType
from pypto.runtime import RunConfig
pypto.configure_cache(
    pypto.CacheConfig(
        enabled=True,
        root=Path("kernel-cache"),
        readonly=job["readonly"],
        extra_source_paths=tuple(Path(item) for item in job["sources"]),
    )
)
import kernels
report = {"error": None, "key": None}
try:
    request = kernels.kernel.warmup if job["warm"] else kernels.kernel.compile
    report["key"] = request(config=RunConfig(arch=BackendType[job["arch"]])).artifact_key
except ValueError as error:
    report["error"] = str(error)
report["stats"] = dataclasses.asdict(pypto.cache_stats())
report["evidence"] = [path for path in touched if "kernel-cache/evidence" in path]
report["makes_evidence"] = bool({"pypto.jit.evidence", "pypto_store.evidence"} & set(sys.modules))
print(json.dumps(report))
"""


@dataclass
class Done:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def document(self):
        return json.loads(self.out)


@dataclass
class House:
    """A working directory with `kernels.py` and `kernel-cache`."""

    top: Path
    environ: dict[str, str] = field(default_factory=dict)

    def __post_init__(self):
        self.root = self.top / "kernel-cache"
        self.environ = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(IMPORT_ROOTS),
            "PYTHONDONTWRITEBYTECODE": "1",
            "HOME": str(self.top),
        }
        self.write(KERNELS)

    def write(self, text):
        (self.top / "kernels.py").write_text(text)

    def request(
        self, *, warm=False, readonly=False, sources=(), arch="Ascend910B", env=None, prelude=""
    ):
        """Ask for the kernel in a fresh process; gives its report and what it wrote to stderr."""
        job = {"warm": warm, "readonly": readonly, "sources": list(sources), "arch": arch}
        done = subprocess.run(
            [sys.executable, "-c", prelude + _REQUEST, json.dumps(job)],
            cwd=self.top, env={**self.environ, **(env or {})},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1]), done.stderr

    def command(self, *words):
        """Run a command of the store in a fresh process without a terminal."""
        done = subprocess.run(
            [sys.executable, "-m", "pypto_store", *map(str, words)],
            cwd=self.top, env={**self.environ, "PYPTO_CACHE_DIR": str(self.root)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return Done(done.returncode, done.stdout, done.stderr)

    def on_terminal(self, *words, columns):
        """Run one on a real terminal of that width; what is left of its output without colours."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        environ = {**self.environ, "PYPTO_CACHE_DIR": str(self.root), "TERM": "xterm-256color"}
        for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
            environ.pop(name, None)
        process = subprocess.Popen(
            [sys.executable, "-m", "pypto_store", *map(str, words)],
            cwd=self.top, env=environ, stdin=theirs, stdout=theirs, stderr=theirs,
        )  # fmt: skip
        os.close(theirs)
        parts = []
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the terminal's other end is closed
                break
            if not part:
                break
            parts.append(part)
        os.close(ours)
        text = b"".join(parts).decode()
        shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r\n", "\n")
        return Done(process.wait(), shown, "")


@pytest.fixture
def house(tmp_path):
    """A house with an empty cache."""
    return House(tmp_path)


@pytest.fixture(scope="session")
def lived_in(tmp_path_factory):
    """A house whose cache has three versions of the kernel, the first complete."""
    house = House(tmp_path_factory.mktemp("lived_in"))
    report, _ = house.request(warm=True)
    assert report["stats"]["bypasses"] == 0, report
    house.write(KERNELS.replace("SCALE = 2.0", "SCALE = 3.0"))
    house.request()
    house.write(KERNELS.replace("pl.mul(tile, SCALE)", "pl.add(tile, SCALE)"))
    house.request(arch="Ascend950")
    return house
