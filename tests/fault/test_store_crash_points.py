"""SIGKILL at every named point of a publication, then the store is opened again.

STORE_FAULT_ROUNDS multiplies the kills (default 1, about a hundred).
"""

from __future__ import annotations

import os
import random
import signal

import pytest
from pypto_store import ArtifactStore, Hit, Invalid, Miss, Published, crash_points
from pypto_store.testing import (
    GENERATED,
    PAYLOAD,
    READY,
    payload_builder,
    sample_key,
    snapshot,
)

ROUNDS = int(os.environ.get("STORE_FAULT_ROUNDS", "1"))
VISIBLE = frozenset(
    {"publish.renamed", "publish.slot_synced", "publish.adopted", "publish.done", "build.released"}
)


def request(root, spec, payload):
    return ArtifactStore(root, lock_timeout=20).get_or_build(
        sample_key(), spec, payload_builder(payload), private_parent=root.parent / "private"
    )


def prepare(root, situation):
    """What the store already holds before the publication that is killed."""
    if situation in ("generated there", "blobs known"):
        request(root, GENERATED, PAYLOAD)
    if situation == "blobs known":
        ArtifactStore(root).get_or_build(
            sample_key("other"), READY, payload_builder(), private_parent=root.parent / "private"
        )


SITUATIONS = {"empty": GENERATED, "generated there": READY, "blobs known": READY}


def points_of(tmp_path, situation):
    root = tmp_path / "rehearsal" / "root"
    prepare(root, situation)
    reached = []
    with crash_points.armed(reached.append):
        assert isinstance(request(root, SITUATIONS[situation], PAYLOAD), Published)
    return reached


pytestmark = pytest.mark.usefixtures("no_sync")


@pytest.mark.parametrize("situation", SITUATIONS)
def test_kill_at_every_point(tmp_path, child, situation):
    spec = SITUATIONS[situation]
    points = points_of(tmp_path, situation)
    for round_number in range(ROUNDS):
        generator = random.Random(round_number)
        payload = dict(PAYLOAD)
        if round_number:
            payload |= {
                f"r/{n}": generator.randbytes(generator.choice([0, 1, 5000, 70_000]))
                for n in range(generator.randrange(4))
            }
        for number, point in enumerate(points):
            root = tmp_path / f"{round_number}-{number}" / "root"
            prepare(root, situation)
            before = snapshot(root) if root.exists() else {}
            left = [number]

            def strike(_, left=left):
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left[0] -= 1

            def crash(root=root, payload=payload, strike=strike):
                with crash_points.armed(strike):
                    request(root, spec, payload)

            assert child(crash).wait() == -signal.SIGKILL, point
            check_recovery(root, spec, payload, point, before)


def check_recovery(root, spec, payload, point, before):
    store = ArtifactStore(root, lock_timeout=20)
    found = store.lookup(sample_key(), spec)
    assert isinstance(found, (Hit, Miss)), point
    if point in VISIBLE:
        assert isinstance(found, Hit), point
    else:
        assert isinstance(found, Miss), point
    # Nothing that was there has changed, but for the clock of directories.
    after = snapshot(root)
    assert {path: after.get(path) for path in before} == before, point
    calls = []
    result = store.get_or_build(
        sample_key(), spec, payload_builder(payload, calls), private_parent=root.parent / "again"
    )
    assert len(calls) == (0 if isinstance(found, Hit) else 1), point
    assert isinstance(result, Hit if isinstance(found, Hit) else Published), point
    assert {path: result.entry.read(path) for path in payload} == payload, point
    if isinstance(result, Published):
        assert not [path for path in snapshot(root) if ".tmp." in path], point
        assert result.damaged_blobs == ()
    assert isinstance(ArtifactStore(root, readonly=True).lookup(sample_key(), spec), Hit), point


def test_a_crash_never_leaves_an_invalid_slot_that_blocks_the_key(tmp_path, child):
    """The same directory is crashed into again and again without being cleaned in between."""
    root = tmp_path / "root"
    points = points_of(tmp_path, "empty")
    for number in range(len(points)):
        left = [number]

        def strike(_, left=left):
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1

        def crash(strike=strike):
            with crash_points.armed(strike):
                request(root, GENERATED, PAYLOAD)

        status = child(crash).wait()
        found = ArtifactStore(root).lookup(sample_key(), GENERATED)
        assert not isinstance(found, Invalid)
        if status == 0:
            break
        assert status == -signal.SIGKILL
    assert isinstance(request(root, GENERATED, PAYLOAD), (Hit, Published))
