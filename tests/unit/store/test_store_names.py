"""File names and trees that a payload may hold, and those that it may not."""

from __future__ import annotations

import os
import subprocess
import unicodedata

import pytest
from pypto_store import ArtifactStore, Failure, Hit, Invalid, Miss, Private, Published
from pypto_store.layout import Layout
from pypto_store.manifest import SIZE_LIMIT
from pypto_store.testing import GENERATED, HINT, READY, payload_builder, sample_key

ODD = [
    "new\nline",
    "tab\tand\x01control",
    "-rf",
    "--",
    "~",
    "$(touch x)",
    "*?[a]",
    " leading and trailing ",
    "back\\slash",
    'quote"s',
    "ending.",
    "n" * 255,
    "é" * 127,
    "😀" * 63,
    "\u202eright to left",
    "CON",
]


@pytest.fixture
def root(tmp_path):
    return tmp_path / "root"


def request(root, build, key="one"):
    return ArtifactStore(root, lock_timeout=10).get_or_build(
        sample_key(key), GENERATED, build, private_parent=root.parent / "p"
    )


def comes_back(root, payload):
    """Publish, find by another object, read, and copy out."""
    payload = {"kernel_config.json": HINT, **payload}
    result = request(root, payload_builder(payload))
    assert isinstance(result, Published), result
    hit = ArtifactStore(root).lookup(sample_key(), GENERATED)
    assert isinstance(hit, Hit), hit
    assert {path: hit.entry.read(path) for path in payload} == payload
    target = root.parent / "copy"
    hit.entry.materialize(target)
    found = {}
    for parent, _, names in os.walk(target):
        for name in names:
            path = os.path.join(parent, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, target)] = file.read()
    assert found == payload


@pytest.mark.parametrize("name", ODD)
def test_an_odd_name_comes_back(root, name):
    comes_back(root, {name: b"file", f"sub/{name}": b"below", f"d/{name}/x": b"directory"})


def test_normal_forms_are_different_names(root):
    composed = unicodedata.normalize("NFC", "e\u0301")
    decomposed = unicodedata.normalize("NFD", composed)
    assert composed != decomposed
    comes_back(root, {composed: b"composed", decomposed: b"decomposed", "\u212b": b"angstrom"})


def test_names_that_differ_in_case_are_different(root):
    comes_back(root, {"Name": b"1", "name": b"2", "NAME": b"3", "dir/a": b"4", "Dir/a": b"5"})


@pytest.mark.parametrize("name", [b"\xff", b"latin-\xe9", b"\xed\xa0\x80", b"cut-\xf0\x9f\x98"])
@pytest.mark.parametrize("kind", ["file", "directory"])
def test_a_name_that_is_not_utf8_is_refused(root, name, kind):
    def build(directory):
        payload_builder()(directory)
        place = os.path.join(os.fsencode(directory), name)
        if kind == "file":
            with open(place, "wb"):
                pass
        else:
            os.mkdir(place)

    result = request(root, build)
    assert isinstance(result, Private)
    assert result.failure is Failure.PUBLICATION
    assert "UTF-8" in result.reason
    result.reason.encode()
    assert os.path.lexists(os.path.join(os.fsencode(result.path), name))
    assert ArtifactStore(root).lookup(sample_key(), GENERATED) == Miss()


def test_a_name_that_is_not_utf8_in_a_slot_is_invalid(root):
    entry = request(root, payload_builder()).entry
    with open(os.path.join(os.fsencode(entry.directory), b"\xff"), "wb"):
        pass
    found = ArtifactStore(root).lookup(sample_key(), GENERATED)
    assert isinstance(found, Invalid)
    found.reason.encode("utf-8", "backslashreplace")


def remove(tree):
    """Remove a tree that is too deep for Python, and for pytest after the test."""
    subprocess.run(["rm", "-rf", "--", tree], check=True)


def make_deep(directory, depth, name="d"):
    """A file below `depth` directories, however long its path gets."""
    here = os.open(directory, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=here))
    os.close(here)


def test_a_tree_of_128_names_comes_back(root):
    comes_back(root, {"d/" * 127 + "file": b"deep"})


@pytest.mark.parametrize("depth", [128, 300, 1500])
def test_a_deeper_tree_is_refused(root, depth):
    def build(directory):
        payload_builder()(directory)
        make_deep(directory, depth)

    result = request(root, build)
    assert isinstance(result, Private)
    assert result.failure is Failure.PUBLICATION
    assert "deeper" in result.reason
    assert not list(root.rglob(".tmp.*"))
    remove(result.path)


@pytest.mark.parametrize("depth", [128, 1500])
@pytest.mark.parametrize("known", [False, True])
def test_a_deep_tree_in_a_slot_is_invalid(root, depth, known):
    """Whether it is beside the payload, or below one of its directories."""
    entry = request(root, payload_builder()).entry
    place = entry.path / "kernels" if known else entry.path
    make_deep(place, depth)
    found = ArtifactStore(root).lookup(sample_key(), GENERATED)
    assert isinstance(found, Invalid)
    # It does not keep the key's other state from being published.
    other = ArtifactStore(root, lock_timeout=10).get_or_build(
        sample_key(),
        READY,
        payload_builder(),
        private_parent=root.parent / "p",
    )
    assert isinstance(other, Published)
    remove(place)


def test_a_path_too_long_for_the_system_stays_private(root):
    def build(directory):
        payload_builder()(directory)
        make_deep(directory, 20, "n" * 250)

    result = request(root, build)
    assert isinstance(result, Private)
    assert result.failure in (Failure.PUBLICATION, Failure.STORAGE)
    assert not list(root.rglob(".tmp.*"))
    assert ArtifactStore(root).lookup(sample_key(), GENERATED) == Miss()
    remove(result.path)


def test_an_inventory_larger_than_a_manifest_may_be_is_refused(root):
    """Six bytes in the manifest for two of the name: some hundred files exceed 16 MiB."""
    name = "é" * 120
    inner = "/".join([name] * 8)

    def build(directory):
        (directory / "kernel_config.json").write_bytes(HINT)
        (directory / inner).mkdir(parents=True)
        here = os.open(directory / inner, os.O_RDONLY)
        for number in range(SIZE_LIMIT // (len(inner) * 6)):
            os.close(os.open(f"{number}", os.O_WRONLY | os.O_CREAT, dir_fd=here))
        os.close(here)

    result = request(root, build)
    assert isinstance(result, Private)
    assert result.failure is Failure.PUBLICATION
    assert "manifest" in result.reason
    assert str(SIZE_LIMIT) in result.reason
    assert not list(root.rglob(".tmp.*"))


def test_a_manifest_larger_than_it_may_be_is_not_read(root):
    entry = request(root, payload_builder()).entry
    with (entry.path / "artifact_manifest.json").open("ab") as file:
        file.truncate(SIZE_LIMIT + 1)
    found = ArtifactStore(root).lookup(sample_key(), GENERATED)
    assert isinstance(found, Invalid)
    assert "larger" in found.reason
    assert Layout(str(root)).generated(sample_key()) == found.path
