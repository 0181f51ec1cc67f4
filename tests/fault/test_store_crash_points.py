"""SIGKILL at every named point of a build and a publication, then the store is opened again.

STORE_FAULT_ROUNDS is the number of rounds, each with other payloads; 5 make more than 300 kills.
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

ROUNDS = int(os.environ.get("STORE_FAULT_ROUNDS", "5"))
VISIBLE = frozenset(
    {"publish.renamed", "publish.slot_synced", "publish.adopted", "publish.done", "build.released"}
)

pytestmark = pytest.mark.usefixtures("no_sync")


def request(root, spec, payload, calls=None):
    return ArtifactStore(root, lock_timeout=20).get_or_build(
        sample_key(),
        spec,
        payload_builder(payload, calls),
        private_parent=root.parent / "private",
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


def payload_of(seed):
    """The usual payload in the first round, more files of random sizes in the others."""
    generator = random.Random(seed)
    sizes = [generator.choice([0, 1, 5000, 70_000]) for _ in range(min(seed, 3))]
    return dict(PAYLOAD) | {f"r/{n}": generator.randbytes(size) for n, size in enumerate(sizes)}


def points_of(root, situation, payload):
    """The points of one publication in their order, told by one that nobody kills."""
    prepare(root, situation)
    reached = []
    with crash_points.armed(reached.append):
        assert isinstance(request(root, SITUATIONS[situation], payload), Published)
    return reached


def killed_at(number, action):
    """`action`, in which the process is killed at its point of that number."""
    left = [number]

    def strike(_):
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1

    def crash():
        with crash_points.armed(strike):
            action()

    return crash


@pytest.mark.parametrize("situation", SITUATIONS)
def test_kill_at_every_point(tmp_path, child, situation, record_property):
    spec = SITUATIONS[situation]
    kills = 0
    for seed in range(ROUNDS):
        payload = payload_of(seed)
        points = points_of(tmp_path / f"{seed}" / "root", situation, payload)
        assert set(points) >= VISIBLE
        for number, point in enumerate(points):
            root = tmp_path / f"{seed}-{number}" / "root"
            prepare(root, situation)
            before = snapshot(root) if root.exists() else {}
            crash = killed_at(number, lambda root=root, put=payload: request(root, spec, put))
            assert child(crash).wait() == -signal.SIGKILL, point
            kills += 1
            check_recovery(root, spec, payload, point, before)
    record_property("kills", kills)
    print(f"{kills} kills")
    assert kills >= 20 * ROUNDS


def check_recovery(root, spec, payload, point, before):
    store = ArtifactStore(root, lock_timeout=20)
    found = store.lookup(sample_key(), spec)
    assert isinstance(found, Hit if point in VISIBLE else Miss), point
    # Nothing that was there has changed, but for the clock of directories.
    after = snapshot(root)
    assert {path: after.get(path) for path in before} == before, point
    calls = []
    result = request(root, spec, payload, calls)
    assert len(calls) == (0 if isinstance(found, Hit) else 1), point
    assert isinstance(result, Hit if isinstance(found, Hit) else Published), point
    assert {path: result.entry.read(path) for path in payload} == payload, point
    if isinstance(result, Published):
        assert not [path for path in snapshot(root) if ".tmp." in path], point
        assert result.damaged_blobs == ()
        # Whatever the killed build had made outside the store is gone, too.
        assert not list(root.parent.glob("private/*")), point
    assert isinstance(ArtifactStore(root, readonly=True).lookup(sample_key(), spec), Hit), point


def test_a_crash_never_leaves_an_invalid_slot_that_blocks_the_key(tmp_path, child):
    """The same directory is crashed into again and again without being cleaned in between."""
    root = tmp_path / "root"
    points = points_of(tmp_path / "rehearsal" / "root", "empty", PAYLOAD)
    for number in range(len(points)):
        status = child(killed_at(number, lambda: request(root, GENERATED, PAYLOAD))).wait()
        found = ArtifactStore(root).lookup(sample_key(), GENERATED)
        assert not isinstance(found, Invalid)
        if status == 0:
            break
        assert status == -signal.SIGKILL
    assert isinstance(request(root, GENERATED, PAYLOAD), (Hit, Published))


def test_whoever_waits_for_a_killed_builder_goes_on(tmp_path, child):
    """Killed at every point while two others want the same entry."""
    points = points_of(tmp_path / "rehearsal" / "root", "empty", PAYLOAD)
    for number, point in enumerate(points):
        root = tmp_path / f"{number}" / "root"
        log = tmp_path / f"{number}.log"

        def note_and_build(directory, log=log):
            with open(log, "ab", buffering=0) as file:
                file.write(b"x")
            payload_builder()(directory)

        def ask(root=root, build=note_and_build):
            result = ArtifactStore(root, lock_timeout=20).get_or_build(
                sample_key(), GENERATED, build, private_parent=root.parent / "private"
            )
            return 0 if isinstance(result, (Hit, Published)) else 1

        victim = child(killed_at(number, ask))
        others = [child(ask) for _ in range(2)]
        # One of the others may have built before the victim came to the point.
        assert victim.wait() in (-signal.SIGKILL, 0), point
        assert [other.wait() for other in others] == [0, 0], point
        assert len(log.read_bytes()) in (1, 2), point
        assert isinstance(request(root, GENERATED, PAYLOAD), Hit), point
        assert not [path for path in snapshot(root) if ".tmp." in path], point
