from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from pypto_store import ArtifactStore, State, iterate_entries
from pypto_store.testing import (
    GENERATED,
    PAYLOAD,
    READY,
    payload_builder,
    ready_spec,
    sample_key,
    snapshot,
)


@pytest.fixture
def root(tmp_path):
    store = ArtifactStore(tmp_path / "root")
    for key, spec in (
        (sample_key("one"), GENERATED),
        (sample_key("one"), READY),
        (sample_key("one"), ready_spec("x86-64")),
        (sample_key("two", "elsewhere"), GENERATED),
    ):
        store.get_or_build(key, spec, payload_builder(), private_parent=tmp_path / "p")
    return tmp_path / "root"


def test_every_slot_is_a_row(root):
    rows = list(iterate_entries(root))
    assert len(rows) == 4
    assert {(row.key, row.state) for row in rows} == {
        (sample_key("one").digest.hex, State.GENERATED),
        (sample_key("one").digest.hex, State.READY),
        (sample_key("two", "elsewhere").digest.hex, State.GENERATED),
    }
    assert {row.size for row in rows} == {sum(map(len, PAYLOAD.values()))}
    assert {row.files for row in rows} == {len(PAYLOAD)}
    assert [row.damage for row in rows] == [None] * 4
    assert rows == list(iterate_entries(str(root)))


def test_listing_writes_nothing_and_opens_no_payload(root):
    for row in iterate_entries(root):
        (ready := os.path.join(row.path, "kernel_config.json"))
        os.unlink(ready)
        os.mkfifo(ready)  # opening it would block or fail
    before = snapshot(root)
    assert [row.damage for row in iterate_entries(root)] == [None] * 4
    assert snapshot(root) == before


def test_damage_is_a_row(root):
    rows = list(iterate_entries(root))
    with open(f"{rows[0].path}/artifact_manifest.json", "ab") as file:
        file.write(b" ")
    os.unlink(f"{rows[1].path}/artifact_manifest.json")
    os.rename(rows[2].path, f"{os.path.dirname(rows[2].path)}/{'0' * 64}")
    damaged = [row for row in iterate_entries(root) if row.damage is not None]
    assert len(damaged) == 3
    assert {row.size for row in damaged} == {None}
    assert {row.spec for row in damaged} == {None}


def test_staging_and_foreign_names_are_no_rows(root):
    key = os.path.dirname(next(iterate_entries(root)).path)
    os.mkdir(f"{key}/.tmp.abc")
    os.mkdir(f"{root}/artifacts/v1/notes")
    os.symlink(key, f"{root}/artifacts/v1/{'0' * 64}")
    assert len(list(iterate_entries(root))) == 4


def test_missing_root_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        iterate_entries(tmp_path / "absent")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError):
        iterate_entries(tmp_path / "file")
    assert list(iterate_entries(tmp_path)) == []


def python(code, *arguments):
    environ = {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-S", *code, *arguments],
        capture_output=True, text=True, env=environ, check=False,
    )  # fmt: skip


def test_runs_as_a_module_on_the_standard_library_alone(root):
    done = python(["-m", "pypto_store"], "ls", "--root", str(root))
    assert (done.returncode, done.stderr) == (0, "")
    assert len(json.loads(done.stdout)["entries"]) == 4


def test_a_hit_imports_only_what_it_needs(root):
    code = (
        "import sys; from pypto_store import ArtifactStore, Hit;"
        "from pypto_store.testing import READY, sample_key;"
        "hit = ArtifactStore(sys.argv[1]).lookup(sample_key('one'), READY);"
        "assert isinstance(hit, Hit);"
        "heavy = {'torch', 'numpy', 'ctypes', 'shutil', 'tempfile', 'subprocess', 'argparse'};"
        "sys.exit(f'imported {heavy & set(sys.modules)}' if heavy & set(sys.modules) else 0)"
    )
    done = python(["-c", code], str(root))
    assert (done.returncode, done.stderr) == (0, "")
