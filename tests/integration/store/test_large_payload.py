"""Payloads of any size in bounded memory: nothing, a gibibyte, ten thousand files."""

from __future__ import annotations

import os
import resource
import shutil
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pypto_store import ArtifactStore, Hit, Published
from pypto_store.testing import GENERATED, HINT, READY, sample_key

GIBIBYTE = 1 << 30
# Pages of a file that is being read do not count as ours; buffers of a mebibyte do.
GROWTH = 48 << 20
COUNT = 10_000


def in_child(action: Callable[[], None]) -> int:
    """Do `action` in a process of its own; by how many bytes its memory grew at most."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            # A new process keeps its parent's peak: what it has now is what it starts from.
            with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
                file.write("5")
            before = peak()
            action()
            os.write(write, b"%d" % (peak() - before))
            status = 0
        except BaseException:  # noqa: BLE001  a child reports everything and returns nowhere
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(write)
    told = os.read(read, 100)
    os.close(read)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "see the traceback above"
    return int(told)


def peak() -> int:
    """The most memory that this process has had resident, in bytes."""
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    raise AssertionError("the kernel does not say")


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """A directory with room, which is given back at once and not when pytest likes to."""
    space = os.statvfs(tmp_path)
    assert space.f_bavail * space.f_frsize > 4 * GIBIBYTE, "this test needs 4 GiB of disk"
    yield tmp_path
    for path in tmp_path.iterdir():
        shutil.rmtree(path)


def test_a_gibibyte_takes_no_more_memory_than_a_buffer(directory: Path) -> None:
    root, copy = directory / "root", directory / "copy"

    def build(target: Path) -> None:
        (target / "kernel_config.json").write_bytes(HINT)
        (target / "empty").touch()
        with (target / "large").open("wb") as file:
            file.truncate(GIBIBYTE)
            file.seek(GIBIBYTE // 2 + 12345)
            file.write(b"not only zeros")

    def publish() -> None:
        store = ArtifactStore(root, lock_timeout=10)
        result = store.get_or_build(sample_key(), READY, build, private_parent=directory / "p")
        assert isinstance(result, Published), result

    def find_and_copy() -> None:
        hit = ArtifactStore(root).lookup(sample_key(), READY)
        assert isinstance(hit, Hit), hit
        assert hit.entry.read("empty") == b""
        hit.entry.verify("large")
        hit.entry.materialize(copy)

    def publish_again() -> None:
        """Linked this time, and for the other state of the same key written again."""
        store = ArtifactStore(root, lock_timeout=10)
        result = store.get_or_build(sample_key("two"), READY, build, private_parent=directory / "p")
        assert isinstance(result, Published), result
        assert result.shared_bytes == GIBIBYTE + len(HINT)

    for action in (publish, find_and_copy, publish_again):
        assert in_child(action) < GROWTH, action.__name__
    assert (copy / "large").stat().st_size == GIBIBYTE
    with (copy / "large").open("rb") as file:
        file.seek(GIBIBYTE // 2 + 12345)
        assert file.read(14) == b"not only zeros"


def test_ten_thousand_files_in_one_entry(tmp_path: Path) -> None:
    root = tmp_path / "root"
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    def build(target: Path) -> None:
        (target / "kernel_config.json").write_bytes(HINT)
        for number in range(COUNT):
            place = target / f"d{number % 100}/e{number % 1000}/f{number}"
            if number < 1000:
                place.parent.mkdir(parents=True, exist_ok=True)
            # Every content occurs twice.
            place.write_bytes(b"%d" % (number // 2))

    def publish() -> None:
        # Far fewer files may be open than are published.
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(128, soft), hard))
        store = ArtifactStore(root, lock_timeout=10)
        result = store.get_or_build(sample_key(), GENERATED, build, private_parent=tmp_path / "p")
        assert isinstance(result, Published), result
        assert len(result.entry.manifest.files) == COUNT + 1

    def find() -> None:
        hit = ArtifactStore(root).lookup(sample_key(), GENERATED)
        assert isinstance(hit, Hit), hit
        hit.entry.materialize(tmp_path / "copy")

    for action in (publish, find):
        assert in_child(action) < GROWTH, action.__name__
    assert sum(1 for path in (tmp_path / "copy").rglob("f*") if path.is_file()) == COUNT
    slot = next((root / "artifacts/v1").glob("*/*/generated"))
    (slot / "d0/e0/f0").write_bytes(b"damaged")
    assert not isinstance(ArtifactStore(root).lookup(sample_key(), GENERATED), Hit)
    assert not list(root.rglob(".tmp.*"))
