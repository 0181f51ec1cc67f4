"""Requests for one kernel, each in a process of its own: of any user, in any directory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pypto
import pypto_store
import pypto_toolchains
from pypto_store import RemoteConfig

IMPORT_ROOTS = os.pathsep.join(
    str(Path(str(module.__file__)).absolute().parents[1])
    for module in (pypto, pypto_store, pypto_toolchains)
)

CONFINEMENT = Path(__file__).absolute().parents[1] / "store" / "confinement.py"

KERNELS = """
import pypto.language as pl


@pl.jit
def kernel(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.store(pl.mul(pl.load(x, [0, 0], [16, 64]), %s), [0, 0], out)
    return out
"""

_CHILD = """
import dataclasses, importlib, json, os, sys
from pathlib import Path
job = json.loads(sys.argv[1])
sys.path.insert(0, job["modules"])
import pypto
fields = job["remote"]
fields["headers"] = tuple(map(tuple, fields["headers"]))
fields["tls"] = fields["tls"] and pypto.TlsConfig(**fields["tls"])
remote = pypto.RemoteConfig(**fields)
pypto.configure_cache(pypto.CacheConfig(enabled=True, root=Path(job["root"]), remote=remote))
kernels = importlib.import_module("kernels")
key = kernels.kernel.warmup().artifact_key
correct = None
if job["run"]:
    import torch
    x = torch.arange(16 * 64, dtype=torch.float32).reshape(16, 64)
    out = torch.zeros(16, 64)
    kernels.kernel(x, out)
    correct = torch.equal(out, x * job["factor"])
print(json.dumps({
    "user": os.getuid(),
    "key": key,
    "correct": correct,
    "stats": dataclasses.asdict(pypto.cache_stats()),
}))
"""


class Home:
    """A user's directory: a module of kernels, a cache root and a place to work in."""

    def __init__(self, top: Path, user: int | None, factor: float = 3.0) -> None:
        """`user`: whose it is, None for the tests' own. `factor`: by what the kernel multiplies."""
        self.root = top / "cache"
        self._modules = top / "modules"
        self._top = top
        self._user = user
        self._factor = factor
        for directory in (top, self.root, self._modules):
            directory.mkdir()
            if user is not None:
                os.chown(directory, user, user)
        (self._modules / "kernels.py").write_text(KERNELS % factor)

    def ask(self, remote: RemoteConfig, *, run: bool = False, **fields: Any) -> Mapping[str, Any]:
        """Have the kernel made ready in a new process of the user's, and run; what it saw.

        `fields` are further ones of the remote.
        """
        job = {
            "modules": str(self._modules),
            "root": str(self.root),
            "run": run,
            "factor": self._factor,
            "remote": {
                "url": remote.url,
                "instance": remote.instance,
                "headers": remote.headers,
                "tls": remote.tls and asdict(remote.tls),
                **fields,
            },
        }
        command = [sys.executable, "-c", _CHILD, json.dumps(job, default=str)]
        if self._user is not None:
            command = [sys.executable, str(CONFINEMENT), "user", str(self._user), "--", *command]
        done = subprocess.run(
            command,
            cwd=self._top,
            env={
                **os.environ,
                "PYTHONPATH": IMPORT_ROOTS,
                "PYTHONDONTWRITEBYTECODE": "1",
                "HOME": str(self._top),
                "TMPDIR": str(self._top),
            },
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        report: Mapping[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return report
