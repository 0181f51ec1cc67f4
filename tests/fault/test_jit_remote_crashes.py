"""SIGKILL while a kernel is got from a remote, or sent to one, then it is asked for again."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from jit_requests import Requests
from pypto_store import RemoteConfig, crash_points

pytestmark = pytest.mark.usefixtures("no_sync")


class Kernels:
    """One kernel, made ready in children of this process: a disk cache is the remote."""

    def __init__(self, top: Path, child: Any) -> None:
        self._child = child
        self._requests = Requests(top)
        self._report = top / "report.json"
        self.work = top / "work"
        self.work.mkdir()

    def ask(self, root: Path, far: Path, hook=lambda _: None) -> dict | int:
        """The counters of a child; the status of one that was killed by its `hook`."""
        remote = RemoteConfig(far.as_uri(), upload="sync")

        def run():
            os.chdir(self.work)
            with crash_points.armed(hook):
                counted = self._requests.ask(root, "warmup", remote=remote)[1]
            self._report.write_text(json.dumps(counted))
            return 0

        status = self._child(run).wait()
        return status or json.loads(self._report.read_text())

    def killed(self, root: Path, far: Path, wanted: str, time: int) -> None:
        """Ask, and be killed when the point is reached for the `time`th time."""
        left = [time]

        def strike(point):
            if point == wanted:
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        assert self.ask(root, far, strike) == -signal.SIGKILL, wanted


def test_kill_at_every_point_of_a_remote(tmp_path, child):
    kernels = Kernels(tmp_path, child)
    far, first = tmp_path / "far", tmp_path / "first"
    made = kernels.ask(first, far)
    assert (made["remote_misses"], made["remote_uploads"], made["remote_errors"]) == (2, 2, 0)
    known = tmp_path / "known"
    shutil.copytree(first / "tools", known / "tools")
    # The first time is that of the sources, the second that of the binaries.
    for time in (1, 2):
        for point in ("fetch.asked", "fetch.arrived", "publish.marker", "publish.renamed"):
            root = tmp_path / f"{point}-{time}"
            shutil.copytree(known, root)
            kernels.killed(root, far, point, time)
            stats = kernels.ask(root, far)
            assert (stats["generation_builds"], stats["binary_builds"]) == (0, 0), (point, time)
            visible = time if point == "publish.renamed" else time - 1
            assert stats["remote_hits"] == 2 - visible, (point, time)
            for trouble in ("invalid_entries", "storage_errors", "bypasses", "remote_errors"):
                assert stats[trouble] == 0, (point, time, trouble)
            assert not list((root / "artifacts").rglob(".tmp.*")), (point, time)
        for point in ("fetch.missed", "build.released", "offer.done"):
            root, empty = tmp_path / f"{point}-{time}", tmp_path / f"far-{point}-{time}"
            shutil.copytree(known, root)
            kernels.killed(root, empty, point, time)
            # Another root has what was sent, or builds; nothing in between.
            other = tmp_path / f"other-{point}-{time}"
            shutil.copytree(known, other)
            stats = kernels.ask(other, empty)
            sent = time if point == "offer.done" else time - 1
            assert stats["remote_hits"] == sent, (point, time)
            assert stats["generation_builds"] + stats["binary_builds"] == 2 - sent, (point, time)
            assert (stats["remote_errors"], stats["remote_uploads"]) == (0, 2 - sent), (point, time)
