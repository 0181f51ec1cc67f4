"""The search for READY without a hint, told by the files it opens."""

from __future__ import annotations

import contextlib
import os
import sys

import pytest
from pypto_store import ArtifactStore, Digest, Hit, Invalid, Miss, StorageError
from pypto_store.layout import Layout
from pypto_store.testing import (
    GENERATED,
    HINT,
    READY,
    payload_builder,
    ready_spec,
    sample_key,
    snapshot,
)

# An audit hook stays for the life of the process, so there is one, which a test switches on.
_recording: list[tuple[str, str]] | None = None


def _record(event, detail):
    if _recording is not None and event in {"open", "os.scandir", "os.listdir"}:
        place = detail[0]
        _recording.append(
            (event, os.readlink(f"/proc/self/fd/{place}") if type(place) is int else str(place))
        )


sys.addaudithook(_record)


@contextlib.contextmanager
def recorded():
    """Everything that is opened or listed meanwhile."""
    global _recording
    _recording = events = []
    try:
        yield events
    finally:
        _recording = None


@pytest.fixture
def root(tmp_path):
    return tmp_path / "root"


@pytest.fixture
def publish(root):
    def build(key="one", spec=READY, payload=None, environment="here"):
        result = ArtifactStore(root, lock_timeout=10).get_or_build(
            sample_key(key, environment),
            spec,
            payload_builder(payload or {"kernel_config.json": HINT}),
            private_parent=root.parent / "p",
        )
        return result.entry

    return build


def crowd(directory, count):
    """Directories that only look like entries."""
    for number in range(count):
        place = directory / Digest.of(b"%d" % number).hex
        place.mkdir(parents=True)
        (place / "kernel_config.json").write_bytes(HINT)


def discover(root, derive=lambda _: READY, key="one"):
    """What is found, and what was opened below the root on the way."""
    store = ArtifactStore(root)
    store.lookup(sample_key("nothing"), READY)  # the root's marker is read once
    with recorded() as events:
        found = store.discover_ready(sample_key(key), derive)
    return found, events


@pytest.mark.conforms("cache.45")
def test_up_to_32_candidates_are_validated(root, publish):
    entry = publish()
    crowd(entry.path.parent, 31)
    found, events = discover(root)
    assert isinstance(found, Hit)
    assert found.entry.path == entry.path
    assert len(found.rejected) == 31
    opened = {path for event, path in events if event == "open" and path.startswith(str(root))}
    assert opened == {str(path) for path in entry.path.parent.iterdir()}


@pytest.mark.conforms("cache.45")
@pytest.mark.parametrize("more", [32, 500])
def test_from_the_33rd_candidate_on_none_is_opened(root, publish, more):
    entry = publish()
    crowd(entry.path.parent, more)
    derived = []
    found, events = discover(root, derived.append)
    assert isinstance(found, Miss)
    assert found.rejected == ()
    assert "32" in found.reason
    assert [event for event, _ in events] == ["os.scandir"]
    assert derived == []


@pytest.mark.conforms("cache.45")
def test_the_search_stops_at_the_33rd_candidate(root, publish, monkeypatch):
    """What stands behind it is not even listed."""
    entry = publish()
    crowd(entry.path.parent, 500)
    seen = []
    scan = os.scandir

    class Counted:
        def __init__(self, directory):
            self._entries = scan(directory)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self._entries.close()

        def __iter__(self):
            for entry in self._entries:
                seen.append(entry.name)
                yield entry

    monkeypatch.setattr(os, "scandir", Counted)
    found = ArtifactStore(root).discover_ready(sample_key(), lambda _: READY)
    monkeypatch.undo()
    assert isinstance(found, Miss)
    assert len(seen) == 33


@pytest.mark.conforms("cache.46")
def test_links_and_other_names_are_neither_counted_nor_opened(root, publish):
    entry = publish()
    ready = entry.path.parent
    name = entry.path.name
    odd = [name.upper(), name[:-1], name + "0", f"{name}.bak", f".{name}", "g" * 64, "note"]
    for other in odd:
        (ready / other).mkdir()
        (ready / other / "kernel_config.json").write_bytes(HINT)
    for number in range(40):
        (ready / Digest.of(b"link %d" % number).hex).symlink_to(entry.path)
        (ready / Digest.of(b"file %d" % number).hex).write_bytes(b"")
    (ready / Digest.of(b"dangling").hex).symlink_to(root / "nowhere")
    found, events = discover(root)
    assert isinstance(found, Hit)
    assert found.rejected == ()
    opened = {path for event, path in events if event == "open" and path.startswith(str(root))}
    assert opened == {str(entry.path)}


@pytest.mark.conforms("cache.47")
def test_a_candidate_must_have_the_name_that_its_description_digests_to(root, publish):
    slot = publish().path
    moved = slot.rename(slot.parent / ready_spec("x86-64").digest.hex)
    # Its manifest says the same as its description, and both are whole: the name alone is wrong.
    found, _ = discover(root)
    assert isinstance(found, Miss)
    assert [invalid.path for invalid in found.rejected] == [str(moved)]
    assert "another specification" in found.rejected[0].reason


@pytest.mark.conforms("cache.47")
def test_a_description_of_another_specification_than_the_manifest_is_refused(root, publish):
    slot = publish().path
    other = ready_spec("x86-64")
    moved = slot.rename(slot.parent / other.digest.hex)
    found, _ = discover(root, lambda _: other)
    assert isinstance(found, Miss)
    assert [invalid.path for invalid in found.rejected] == [str(moved)]


@pytest.mark.conforms("cache.47")
@pytest.mark.parametrize("error", [ValueError, KeyError, TypeError])
def test_a_description_that_says_nothing_usable_is_refused(root, publish, error):
    publish()

    def derive(_):
        raise error("no table")

    found, _ = discover(root, derive)
    assert isinstance(found, Miss)
    assert "unusable" in found.rejected[0].reason


@pytest.mark.conforms("cache.48")
def test_two_valid_candidates_are_rejected(root, publish):
    specs = {b'{"n":1}': ready_spec("x86-64"), b'{"n":2}': ready_spec("x86-64-v4")}
    for hint, spec in specs.items():
        publish(spec=spec, payload={"kernel_config.json": hint})
    before = snapshot(root)
    found, _ = discover(root, specs.__getitem__)
    assert isinstance(found, Invalid)
    assert "two valid" in found.reason
    assert snapshot(root) == before


@pytest.mark.conforms("cache.49")
def test_nothing_outside_the_exact_key_is_looked_at(root, publish):
    for key, environment in (("two", "here"), ("one", "elsewhere"), ("two", "elsewhere")):
        publish(key, environment=environment)
    publish("one", GENERATED)
    found, events = discover(root)
    assert found == Miss()
    own = Layout(str(root)).key_directory(sample_key())
    places = {path for _, path in events if path.startswith(str(root))}
    assert places <= {f"{own}/ready"}
    assert isinstance(discover(root, key="two")[0], Hit)


def test_a_candidate_that_cannot_be_read_ends_the_search(root, publish, monkeypatch):
    """It could be a second valid one, so that choosing the other would be arbitrary."""
    entry = publish()
    crowd(entry.path.parent, 1)
    open_file = os.open

    def fail(path, flags, *more, **options):
        if str(path) == str(entry.path):
            raise OSError(5, "Input/output error", path)
        return open_file(path, flags, *more, **options)

    monkeypatch.setattr(os, "open", fail)
    found = ArtifactStore(root).discover_ready(sample_key(), lambda _: READY)
    assert isinstance(found, StorageError)
