"""Both validators give one verdict, with one reason, on whatever stands in a slot.

The store's own decides; the native one may only say yes, and only where the other one does.
"""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pypto.jit.native_validation import NativeValidator, best_validator
from pypto_store import ArtifactSpec, ArtifactStore, Hit, State
from pypto_store.manifest import FileRecord, Manifest
from pypto_store.testing import (
    EXECUTABLES,
    GENERATED,
    PAYLOAD,
    READY,
    ArtifactStoreContract,
    payload_builder,
    sample_key,
)
from pypto_store.validation import KEEP_FILE, PYTHON_VALIDATOR, SlotFault, open_slot

if TYPE_CHECKING:
    from collections.abc import Callable

    from pypto_store.validation import Validator

MANIFEST = "artifact_manifest.json"
LARGE = 600 * 1024  # bytes; more than is read and hashed in one piece
CONTENTS = {
    **PAYLOAD,
    "a-b/c": b"between a file and a directory of one prefix",
    "a/x/y": b"deep",
    "a/z": b"z" * KEEP_FILE,
    "kept-not": b"k" * (KEEP_FILE + 1),
    "large": os.urandom(LARGE),
    **{f"many/part{index:03}": os.urandom(index * 97) for index in range(150)},
}


class TestStoreWithTheNativeValidator(ArtifactStoreContract):
    """The whole contract of a store, with entries validated natively."""

    def make_store(self, root: Path, *, readonly: bool = False) -> ArtifactStore:
        return ArtifactStore(root, readonly=readonly, lock_timeout=20, validator=best_validator())


def is_entry(opinion: object) -> bool:
    return isinstance(opinion, tuple) and isinstance(opinion[0], Manifest)


class NoOther:
    """Stands for the store's own validator where it must not be asked."""

    def validate(self, *_):
        raise AssertionError("the native validator did not accept this by itself")

    read_file = validate


@pytest.fixture
def slot(tmp_path):
    store = ArtifactStore(tmp_path / "root")
    result = store.get_or_build(
        sample_key(), READY, payload_builder(CONTENTS), private_parent=tmp_path / "private"
    )
    return result.entry.path


def said(ask: Callable[[], object]) -> object:
    """A value, or the fault's reason and path."""
    try:
        return ask()
    except SlotFault as fault:
        return (fault.reason, fault.path)
    except OSError as error:
        return error.errno


def opinion(
    validator: Validator, slot: Path, spec: ArtifactSpec | None, state: State
) -> tuple[object, object]:
    """What one validator says of a slot, and of one file of it."""
    descriptor = open_slot(str(slot))
    assert descriptor is not None
    try:
        return (
            said(lambda: validator.validate(descriptor, sample_key(), spec, state)),
            said(
                lambda: validator.read_file(
                    descriptor, sample_key(), state, "kernel_config.json", 64
                )
            ),
        )
    finally:
        os.close(descriptor)


def verdicts(slot: Path, spec: ArtifactSpec | None = READY, state: State = State.READY):
    """What both say."""
    return [
        opinion(validator, slot, spec, state) for validator in (PYTHON_VALIDATOR, best_validator())
    ]


def test_a_sound_entry_is_accepted_natively_alone(slot):
    descriptor = open_slot(str(slot))
    native = NativeValidator(NoOther())
    asked = (sample_key(), READY, State.READY)
    manifest, kept = native.validate(descriptor, *asked)
    assert (manifest, kept) == PYTHON_VALIDATOR.validate(descriptor, *asked)
    assert all(type(record) is FileRecord for record in manifest.files)
    assert kept["a/z"] == CONTENTS["a/z"]
    assert "kept-not" not in kept
    assert native.validate(descriptor, sample_key(), None, State.READY) == (manifest, kept)
    data = native.read_file(descriptor, sample_key(), State.READY, "kernel_config.json", 64)
    assert data == PAYLOAD["kernel_config.json"]
    os.close(descriptor)


def test_a_signature_beside_the_manifest_is_no_payload(slot):
    (slot / f"{MANIFEST}.sig").write_bytes(b"signed")
    descriptor = open_slot(str(slot))
    NativeValidator(NoOther()).validate(descriptor, sample_key(), READY, State.READY)
    os.close(descriptor)


def flip(path: str, place: int = 0) -> Callable[[Path], None]:
    def damage(slot: Path) -> None:
        data = bytearray((slot / path).read_bytes())
        data[place] ^= 1
        (slot / path).write_bytes(data)

    return damage


def replace(path: str, make: Callable[[Path], object]) -> Callable[[Path], None]:
    def damage(slot: Path) -> None:
        (slot / path).unlink()
        make(slot / path)

    return damage


def plant(path: str, make: Callable[[Path], object]) -> Callable[[Path], None]:
    return lambda slot: make(slot / path)


def rewrite(change: Callable[[dict], object]) -> Callable[[Path], None]:
    """Another manifest, canonically spelled."""

    def damage(slot: Path) -> None:
        document = json.loads((slot / MANIFEST).read_bytes())
        change(document)
        text = json.dumps(document, sort_keys=True, separators=(",", ":")) + "\n"
        (slot / MANIFEST).write_text(text, encoding="ascii")

    return damage


def respell(old: bytes, new: bytes) -> Callable[[Path], None]:
    def damage(slot: Path) -> None:
        data = (slot / MANIFEST).read_bytes()
        assert old in data
        (slot / MANIFEST).write_bytes(data.replace(old, new, 1))

    return damage


def listen(path: Path) -> None:
    # By a short name: a socket's address has a hundred bytes.
    parent = os.open(path.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"/proc/self/fd/{parent}/{path.name}")
    os.close(parent)


def rename_directory(slot: Path) -> None:
    (slot / "a").rename(slot / "b")


def link_directory(slot: Path) -> None:
    (slot / "a").rename(slot.parent / "elsewhere")
    (slot / "a").symlink_to(slot.parent / "elsewhere")


def row(document: dict, path: str) -> dict:
    return next(item for item in document["files"] if item["path"] == path)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "first byte": flip("kernel_config.json"),
    "last byte of a large file": flip("large", LARGE - 1),
    "byte below directories": flip("a/x/y", 2),
    "byte of the last of many": flip("many/part149", 5),
    "manifest byte": flip(MANIFEST, 40),
    "truncated": plant("a/z", lambda path: os.truncate(path, 5)),
    "truncated large": plant("large", lambda path: os.truncate(path, LARGE - 1)),
    "longer": plant("kernel_config.json", lambda path: os.truncate(path, 100)),
    "longer large": plant("large", lambda path: os.truncate(path, LARGE + 1)),
    "empty one grown": plant("empty", lambda path: path.write_bytes(b"x")),
    "empty manifest": plant(MANIFEST, lambda path: os.truncate(path, 0)),
    "missing": plant("empty", os.unlink),
    "missing below": plant("a/x/y", os.unlink),
    "missing manifest": plant(MANIFEST, os.unlink),
    "extra file": plant("more", lambda path: path.write_bytes(b"")),
    "extra file below": plant("a/x/more", lambda path: path.write_bytes(b"")),
    "extra directory": plant("more", os.mkdir),
    "extra link": plant("more", lambda path: path.symlink_to("empty")),
    "reserved name below": plant(f"a/{MANIFEST}", lambda path: path.write_bytes(b"")),
    "link in place of a file": replace("empty", lambda path: path.symlink_to("/dev/null")),
    "link to the right bytes": replace("kept-not", lambda path: path.symlink_to("a/z")),
    "directory in place of a file": replace("empty", os.mkdir),
    "pipe in place of a file": replace("empty", os.mkfifo),
    "socket in place of a file": replace("empty", listen),
    "pipe in place of the manifest": replace(MANIFEST, os.mkfifo),
    "link in place of the manifest": replace(MANIFEST, lambda path: path.symlink_to("empty")),
    "signature is a directory": plant(f"{MANIFEST}.sig", os.mkdir),
    "signature is a link": plant(f"{MANIFEST}.sig", lambda path: path.symlink_to("empty")),
    "renamed directory": rename_directory,
    "linked directory": link_directory,
    "not executable": plant(min(EXECUTABLES), lambda path: path.chmod(0o600)),
    "other size": rewrite(lambda document: row(document, "empty").update(size=1)),
    "other digest": rewrite(lambda document: row(document, "empty").update(sha256="0" * 64)),
    "upper-case digest": rewrite(lambda d: row(d, "a/z").update(sha256="A" * 64)),
    "short digest": rewrite(lambda d: row(d, "a/z").update(sha256="a" * 63)),
    "negative size": rewrite(lambda document: row(document, "empty").update(size=-1)),
    "huge size": rewrite(lambda document: row(document, "empty").update(size=10**18)),
    "size beyond 64 bits": rewrite(lambda document: row(document, "empty").update(size=2**64)),
    "size is true": rewrite(lambda document: row(document, "empty").update(size=True)),
    "executable is 0": rewrite(lambda document: row(document, "empty").update(executable=0)),
    "path with a dot component": rewrite(lambda d: row(d, "a/x/y").update(path="a/./y")),
    "path that leaves": rewrite(lambda d: row(d, "a/x/y").update(path="a/../a/x/y")),
    "path with empty component": rewrite(lambda d: row(d, "a/x/y").update(path="a//y")),
    "absolute path": rewrite(lambda d: row(d, "a/x/y").update(path="/a/x/y")),
    "path is the manifest's": rewrite(lambda d: row(d, "empty").update(path=MANIFEST)),
    "escaped path": respell(b'"path":"empty"', b'"path":"\\u0065mpty"'),
    "file and directory": rewrite(lambda document: row(document, "a-b/c").update(path="a")),
    "descending": rewrite(lambda document: document["files"].reverse()),
    "twice": rewrite(lambda document: document["files"].insert(0, document["files"][0])),
    "no files": rewrite(lambda document: document.update(files=[])),
    "files is an object": rewrite(lambda document: document.update(files={})),
    "required one missing": rewrite(
        lambda d: d.update(files=[f for f in d["files"] if f["path"] != "kernel_config.json"])
    ),
    "extra field": rewrite(lambda document: document.update(more=1)),
    "extra field of a file": rewrite(lambda document: row(document, "empty").update(more=1)),
    "schema": rewrite(lambda document: document.update(schema=2)),
    "other key": rewrite(lambda document: document.update(key="0" * 64)),
    "other component": rewrite(lambda d: d["components"].update(source="0" * 64)),
    "other specification": rewrite(lambda d: d["spec"].update(cpu_level="x86-64")),
    "other state": rewrite(lambda d: d["spec"].update(state="generated", cpu_level=None)),
    "unknown state": rewrite(lambda document: document["spec"].update(state="done")),
    "leading zero": respell(b'"size":1', b'"size":01'),
    "blank": respell(b'"files":[', b'"files": ['),
    "no newline": respell(b"}}\n", b"}}"),
    "two newlines": respell(b"}}\n", b"}}\n\n"),
    "specification spelled with a blank": respell(b'"spec":{', b'"spec": {'),
    "trailing comma": respell(b'}],"key"', b'},],"key"'),
    "bytes after it": respell(b"}}\n", b"}}\n{}\n"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_both_give_one_reason_for_every_damage(slot, name):
    DAMAGE[name](slot)
    own, native = verdicts(slot)
    assert own == native
    assert not is_entry(own[0]), own  # a reason, not an entry
    # Nobody says which specification: what is left are the manifest and the tree themselves.
    own, native = verdicts(slot, None)
    assert own == native


def test_both_know_the_state_and_the_specification_asked_for(slot):
    other = ArtifactSpec(State.READY, "l2", ("kernel_config.json",), ("sim",), "x86-64")
    for spec, state in (
        (other, State.READY),
        (None, State.GENERATED),
        (GENERATED, GENERATED.state),
    ):
        own, native = verdicts(slot, spec, state)
        assert own == native
        assert not is_entry(own[0])


def test_paths_that_are_not_plain_are_left_to_the_store(tmp_path):
    contents = {**PAYLOAD, "a b": b"blank", "ä/ö": b"letters", ".hidden": b"dot"}
    for validator in (PYTHON_VALIDATOR, best_validator()):
        store = ArtifactStore(tmp_path / "root", validator=validator)
        store.get_or_build(
            sample_key(), READY, payload_builder(contents), private_parent=tmp_path / "private"
        )
        hit = store.lookup(sample_key(), READY)
        assert isinstance(hit, Hit)
        assert {path: hit.entry.read(path) for path in contents} == contents
