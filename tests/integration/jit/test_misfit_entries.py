"""Entries that are whole and of the right key, and whose descriptions are of something else.

Somebody erred or lied when they were made. Where they come from a remote they are not published;
where they are in the root already they are one damaged entry more, and no error of the kernel.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pypto.jit.fitness import misfit
from pypto_store import ArtifactStore, Entry, RemoteConfig
from pypto_store.listing import iterate_entries
from pypto_store.manifest import FileRecord, Manifest
from pypto_store.paths import MANIFEST_NAME
from pypto_store.remote.engines import open_engine
from pypto_store.remote.sending import send_entry
from pypto_store.remote.trust import ANYONE

Change = Callable[[bytes], bytes]

BUILDS = ("generation_builds", "binary_builds")

CHANGES: dict[str, tuple[str, str, Change]] = {
    "no table": ("generated", "kernel_config.json", lambda data: b"{}"),
    "no description": ("generated", "compiled_meta.json", lambda data: b"nonsense"),
    "a table of other files": (
        "generated", "kernel_config.json", lambda data: data.replace(b".cpp", b".cc"),
    ),
    "a table for another platform": (
        "ready", "kernel_config.json", lambda data: data.replace(b"a2a3sim", b"a5sim"),
    ),
    "binaries for another level": (
        "ready", "binary_manifest.json", lambda data: data.replace(b'level": "', b'level": "old-'),
    ),
    "no list of binaries": ("ready", "binary_manifest.json", lambda data: b"{}"),
}  # fmt: skip


def changed(first: Any, where: Path, state: str, file: str, change: Change) -> Entry:
    """A copy of the first house's entry in that state, with one file changed, as a valid entry."""
    (row,) = [row for row in iterate_entries(first.root) if row.state.value == state]
    assert row.manifest is not None
    for record in row.manifest.files:
        place = where / record.path
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(Path(row.path, record.path), place)
    before = (where / file).read_bytes()
    (where / file).write_bytes(change(before))
    assert (where / file).read_bytes() != before
    records = tuple(
        FileRecord(record.path, len(data), hashlib.sha256(data).hexdigest(), record.executable)
        for record in row.manifest.files
        for data in [(where / record.path).read_bytes()]
    )
    manifest = Manifest(row.manifest.key, row.manifest.spec, records)
    (where / MANIFEST_NAME).write_bytes(manifest.encode())
    return Entry(str(where), manifest)


@pytest.fixture
def filled(request: Any) -> Any:
    """A house of somebody else's with both entries, which nothing here writes to."""
    return request.getfixturevalue("_filled")


@pytest.fixture
def house(house: Any, filled: Any) -> Any:
    """A house without an entry, where tools have been identified."""
    shutil.copytree(filled.root / "tools", house.root / "tools")
    return house


@pytest.mark.parametrize("name", CHANGES)
def test_what_contradicts_itself_is_a_misfit(filled: Any, tmp_path: Path, name: str) -> None:
    state, file, change = CHANGES[name]
    entry = changed(filled, tmp_path / "entry", state, file, change)
    reason = misfit(entry.manifest, entry.directory)
    assert reason is not None and ".json" in reason
    for row in iterate_entries(filled.root):
        assert row.manifest is not None and misfit(row.manifest, row.path) is None


@pytest.mark.parametrize("name", ["no table", "binaries for another level"])
def test_one_from_a_remote_is_not_published_and_replaced(
    house: Any, filled: Any, tmp_path: Path, name: str
) -> None:
    state, file, change = CHANGES[name]
    entry = changed(filled, tmp_path / "entry", state, file, change)
    url = (tmp_path / "remote").as_uri()
    engine = open_engine(RemoteConfig(url))
    assert send_entry(engine, url, entry, ANYONE, None).entry_sent
    env = {"PYPTO_CACHE": "1", "PYPTO_CACHE_DIR": str(house.root), "PYPTO_CACHE_REMOTE": url}
    report = house.run(house.WARM + house.RUN, cached=False, env=env)
    stats = report["stats"]
    assert report["correct"]
    assert (stats["remote_errors"], stats["remote_hits"]) == (1, 0), stats["last_remote_error"]
    assert [stats[build] for build in BUILDS] == [1, 1]
    assert stats["remote_uploads"] == 2
    env["PYPTO_CACHE_DIR"] = str(tmp_path / "another")
    stats = house.run(house.WARM, cached=False, env=env)["stats"]
    assert (stats["remote_errors"], stats["remote_hits"]) == (0, 2)


@pytest.mark.parametrize("name", ["no description", "no list of binaries"])
def test_one_in_the_root_is_an_invalid_entry(
    house: Any, filled: Any, tmp_path: Path, name: str
) -> None:
    state, file, change = CHANGES[name]
    entry = changed(filled, tmp_path / "entry", state, file, change)
    store = ArtifactStore(house.root)
    store.get_or_build(
        entry.key, entry.spec, entry.materialize, private_parent=tmp_path / "private"
    )
    report = house.run(house.WARM + house.RUN)
    stats = report["stats"]
    assert report["correct"]
    assert stats["invalid_entries"] == 1
    assert stats["generation_builds"] >= 1 and stats["binary_builds"] == 1
