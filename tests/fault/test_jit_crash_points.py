"""SIGKILL at every named point while a kernel is compiled and warmed up, then it is asked again.

STORE_FAULT_ROUNDS above 5, the default, also kills at points that come once per file each time.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pytest
from jit_requests import Requests
from pypto_store import crash_points

ROUNDS = int(os.environ.get("STORE_FAULT_ROUNDS", "5"))
VISIBLE = frozenset(
    {"publish.renamed", "publish.slot_synced", "publish.adopted", "publish.done", "build.released"}
)
pytestmark = pytest.mark.usefixtures("no_sync")


class Kernels:
    """One kernel, asked for in children of this process."""

    def __init__(self, top: Path, child) -> None:
        self._child = child
        self._requests = Requests(top)
        self._report = top / "report.json"
        self.work = top / "work"
        self.work.mkdir()

    def _ask(self, root: Path, how: str) -> dict:
        os.chdir(self.work)
        return self._requests.ask(root, how)[1]

    def ask(self, root: Path, how: str, hook=lambda _: None) -> dict:
        """The counters of a child that asks; `hook` is called at every crash point."""

        def run():
            with crash_points.armed(hook):
                counted = self._ask(root, how)
            self._report.write_text(json.dumps(counted))
            return 0

        assert self._child(run).wait() == 0
        return json.loads(self._report.read_text())

    def points(self, root: Path, how: str) -> list[str]:
        log = self.work.parent / "points"
        log.unlink(missing_ok=True)

        def note(point):
            with log.open("a") as file:
                file.write(f"{point}\n")

        self.ask(root, how, note)
        return log.read_text().split()

    def killed(self, root: Path, how: str, number: int) -> int:
        left = [number]

        def strike(_):
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1

        def run():
            with crash_points.armed(strike):
                self._ask(root, how)
            return 0

        return self._child(run).wait()


@pytest.fixture
def kernels(tmp_path, child):
    return Kernels(tmp_path, child)


def slots(root: Path, state: str) -> list[Path]:
    depth = "*/*/generated" if state == "generated" else "*/*/ready/*"
    return sorted((root / "artifacts" / "v1").glob(depth))


def chosen(points: list[str]) -> list[int]:
    """Each point where it is first reached; with more rounds wherever it is."""
    if ROUNDS > 5:
        return list(range(len(points)))
    return [points.index(point) for point in dict.fromkeys(points)]


# What is asked for, the state that it publishes, and the counter of that build.
PROMOTIONS = {
    "generated": ("compile", "generation_builds"),
    "ready": ("warmup", "binary_builds"),
}


@pytest.mark.parametrize("state", PROMOTIONS)
def test_kill_at_every_point_of_a_promotion(tmp_path, kernels, state, record_property):
    how, built = PROMOTIONS[state]
    template = tmp_path / "template"
    # What probes said of the tools is there already, as after any other kernel.
    kernels.ask(template, "compile")
    if state == "generated":
        shutil.rmtree(template / "artifacts")
        shutil.rmtree(template / "cas")
    rehearsal = tmp_path / "rehearsal"
    shutil.copytree(template, rehearsal)
    points = kernels.points(rehearsal, how)
    assert set(points) >= VISIBLE
    kills = 0
    for number in chosen(points):
        point = points[number]
        root = tmp_path / f"{number}"
        shutil.copytree(template, root)
        assert kernels.killed(root, how, number) == -signal.SIGKILL, point
        kills += 1
        assert len(slots(root, state)) == (point in VISIBLE), point
        stats = kernels.ask(root, "warmup")
        assert stats[built] == (point not in VISIBLE), point
        for trouble in ("invalid_entries", "storage_errors", "bypasses"):
            assert stats[trouble] == 0, (point, trouble)
        assert not list((root / "artifacts").rglob(".tmp.*")), point
        again = kernels.ask(root, "warmup")
        assert (again["ready_hits"], again["generation_builds"], again["binary_builds"]) == (
            1, 0, 0,
        ), point  # fmt: skip
    record_property("kills", kills)
    print(f"{kills} kills")
    assert kills >= 15
