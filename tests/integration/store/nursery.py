"""Processes that begin with torch imported and nothing else: what a fresh one spends its time on.

One process imports torch and forks for each job; the child takes over the environment, the working
directory and the path of modules that a fresh interpreter would have begun with, and ends as one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

# Above its first loop nothing of pypto is imported, and no file is opened that a child would share.
_SERVER = """
import json, os, sys, tempfile
import torch

def forked():
    pending = b""
    while True:
        piece = os.read(0, 65536)
        if not piece:
            return None
        *lines, pending = (pending + piece).split(b"\\n")
        for line in lines:
            job = json.loads(line)
            pid = os.fork()
            if pid == 0:
                return job
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            os.write(1, b"%d\\n" % status)

job = forked()
if job is not None:
    for target, path in ((0, os.devnull), (1, job["out"]), (2, job["err"])):
        opened = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(opened, target)
        os.close(opened)
    os.chdir(job["cwd"])
    os.environ.clear()
    os.environ.update(job["environ"])
    tempfile.tempdir = None
    sys.path[1:1] = job["environ"]["PYTHONPATH"].split(os.pathsep)
    sys.argv[1:] = job["arguments"]
    exec(compile(job["code"], "<string>", "exec"), {"__name__": "__main__"})
"""


class Nursery:
    """The process that forks; `close` ends it."""

    def __init__(self, place: Path) -> None:
        self._place = place
        environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        environ.pop("PYTHONPATH", None)
        self._server = subprocess.Popen(
            [sys.executable, "-c", _SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environ,
            cwd=place,
            text=True,
        )

    def run(
        self, code: str, *arguments: str, environ: Mapping[str, str], cwd: Path
    ) -> subprocess.CompletedProcess[str]:
        """What `python -c code arguments` would have done, one at a time."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        said = {name: self._place / name for name in ("out", "err")}
        for path in said.values():
            path.unlink(missing_ok=True)
        job = {
            "code": code,
            "arguments": arguments,
            "environ": dict(environ),
            "cwd": os.fspath(cwd),
            **{name: os.fspath(path) for name, path in said.items()},
        }
        self._server.stdin.write(json.dumps(job) + "\n")
        self._server.stdin.flush()
        status = int(self._server.stdout.readline())
        out, err = (path.read_text(encoding="utf-8") for path in said.values())
        return subprocess.CompletedProcess([sys.executable, "-c", code], status, out, err)

    def close(self) -> None:
        """End it, and whatever it waits for."""
        self._server.kill()
        self._server.communicate()
