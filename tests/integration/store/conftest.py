"""A cache root as other processes meet it: mounted read-only, of another user, shared, huge."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pypto
import pypto_store
import pypto_toolchains
import pytest

# The tests of this folder share modules that are no tests.
sys.path.insert(0, os.path.dirname(__file__))

from nursery import Nursery

CONFINEMENT = Path(__file__).with_name("confinement.py")
REFUSED = 77
NOBODY = 65534

IMPORT_ROOTS = os.pathsep.join(
    str(Path(str(module.__file__)).absolute().parents[1])
    for module in (pypto, pypto_store, pypto_toolchains)
)

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

# Notes programs that are started and whatever is made, opened for writing or removed, and lets
# bytecode be written as usual while the request runs.
_CHILD = """
import dataclasses, importlib, json, os, sys
from pathlib import Path
job = json.loads(sys.argv[1])
sys.path.insert(0, job["modules"])
sys.dont_write_bytecode = True
import torch
import pypto
from pypto.runtime import RunConfig
kernels = importlib.import_module("kernels")
programs, touched = [], []
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
CHANGING = {"os.mkdir", "os.rename", "os.link", "os.symlink", "os.remove", "os.rmdir",
            "os.chmod", "os.chown", "os.truncate", "os.utime"}
def note(event, detail):
    if event in {"subprocess.Popen", "os.posix_spawn", "os.exec", "os.system"}:
        programs.append(str(detail[0]))
    elif event == "open" and isinstance(detail[2], int) and detail[2] & WRITING:
        touched.append(str(detail[0]))
    elif event in CHANGING:
        touched.extend(str(part) for part in detail[:2] if isinstance(part, (str, bytes)))
sys.addaudithook(note)
sys.dont_write_bytecode = False
pypto.configure_cache(pypto.CacheConfig(
    enabled=True, root=Path(job["root"]), readonly=job["readonly"]))
x = torch.arange(16 * 64, dtype=torch.float32).reshape(16, 64)
out = torch.zeros(16, 64)
report = {}
exec(job["step"])
report.update(
    uid=os.getuid(), programs=programs, touched=touched,
    correct=torch.equal(out, x * kernels.SCALE), stats=dataclasses.asdict(pypto.cache_stats()))
print(json.dumps(report))
"""


@dataclass
class Site:
    """A cache root, a module of kernels and a working directory that any user may enter."""

    top: Path
    nursery: Nursery | None = None

    def __post_init__(self) -> None:
        self.root = self.top / "cache"
        self.modules = self.top / "modules"
        self.work = self.top / "work"
        self.scratch = self.top / "scratch"
        for directory in (self.modules, self.work, self.scratch):
            directory.mkdir()
        self.write_kernels(KERNELS)

    @property
    def environ(self) -> dict[str, str]:
        """What a process of this site has otherwise than this one."""
        return {
            "PYTHONPATH": IMPORT_ROOTS,
            "HOME": str(self.top),
            "TMPDIR": str(self.scratch),
        }

    def write_kernels(self, text: str) -> None:
        """Replace the module of kernels."""
        (self.modules / "kernels.py").write_text(text)

    def run(
        self,
        step: str = "kernels.kernel(x, out)",
        *,
        readonly: bool = False,
        confined: Sequence[str] = (),
        cwd: Path | None = None,
    ) -> dict[str, Any]:
        """Do `step` in a process; `confined` are confinement.py's arguments, if any."""
        job = {
            "modules": str(self.modules),
            "root": str(self.root),
            "readonly": readonly,
            "step": step,
        }
        environ = {**os.environ, **self.environ}
        environ.pop("PYTHONDONTWRITEBYTECODE", None)
        if self.nursery is not None and not confined:
            done = self.nursery.run(_CHILD, json.dumps(job), environ=environ, cwd=cwd or self.work)
        else:
            command = [sys.executable, "-c", _CHILD, json.dumps(job)]
            if confined:
                command = [sys.executable, "-B", str(CONFINEMENT), *confined, "--", *command]
            done = subprocess.run(
                command,
                cwd=cwd or self.work,
                env=environ,
                capture_output=True,
                text=True,
                timeout=240,
                check=False,
            )
        if done.returncode == REFUSED and confined:
            raise Refused(done.stderr)
        assert done.returncode == 0, done.stderr
        report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return report

    def slot(self, state: str) -> Path:
        """The directory of the one entry of a state."""
        depth = "*/*/generated" if state == "generated" else "*/*/ready/*"
        (slot,) = (self.root / "artifacts" / "v1").glob(depth)
        return slot


class Refused(Exception):
    """The kernel did not let a process be confined."""


def tree(root: Path) -> dict[str, tuple[object, ...]]:
    """All that a write below `root`, or to it, could change, but for times of access."""
    found = {}
    for path in (root, *root.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        found[str(path)] = (
            status.st_ino,
            status.st_mode,
            status.st_uid,
            status.st_gid,
            status.st_mtime_ns,
            status.st_ctime_ns,
            content,
        )
    return found


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that every user can reach, which below pytest's own no other one can."""
    path = Path(tempfile.mkdtemp(prefix="pypto-test-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="session")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    """Where the processes of sites come from that nothing confines."""
    made = Nursery(tmp_path_factory.mktemp("nursery"))
    yield made
    made.close()


@pytest.fixture
def site(open_directory: Path, nursery: Nursery) -> Site:
    """A site with an empty cache."""
    return Site(open_directory, nursery)


@pytest.fixture(scope="session")
def _filled_root(tmp_path_factory: pytest.TempPathFactory, nursery: Nursery) -> Path:
    filled = Site(tmp_path_factory.mktemp("site"), nursery)
    report = filled.run()
    assert report["correct"]
    assert report["stats"]["bypasses"] == report["stats"]["storage_errors"] == 0
    return filled.root


@pytest.fixture
def filled(site: Site, _filled_root: Path) -> Site:
    """A site whose cache has the kernel, GENERATED and READY; its own copy."""
    shutil.copytree(_filled_root, site.root, symlinks=True)
    return site


@pytest.fixture
def snapshot_of() -> Any:
    """The function that tells what a tree is like."""
    return tree
