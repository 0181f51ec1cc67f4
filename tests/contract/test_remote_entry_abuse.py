"""What comes under the name of an entry is the entry, a miss, or one fault that says why not.

Whatever that is: nothing is written outside the directory, the directory is empty afterwards, and
no payload is asked for before everything about it was decided.
"""

from __future__ import annotations

import io
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from entry_faults import Endless, RecordingEngine, lying
from forged_entries import (
    KEY,
    LARGE,
    NAME,
    OTHER_SPECS,
    Truth,
    consistent,
    entry_of,
    manifest_of,
    record,
    with_manifest,
)
from pypto_store.digest import Digest
from pypto_store.manifest import FileRecord
from pypto_store.paths import MANIFEST_NAME, SIGNATURE_NAME
from pypto_store.remote.blob_store import (
    ENTRY_LIMIT,
    BlobDigest,
    CorruptBlob,
    RejectedEntry,
)
from pypto_store.remote.entry_name import entry_name
from pypto_store.remote.entry_testing import Stamp, fetched
from pypto_store.remote.inventory import FILES_LIMIT, PATH_LIMIT, PAYLOAD_LIMIT
from pypto_store.remote.memory import MemoryRemote
from pypto_store.remote.messages import OutputFile
from pypto_store.remote.trust import ANYONE, Trust
from pypto_store.testing import GENERATED, READY, sample_key, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


ODD_PATHS = [
    "../up", "..", "/absolute", "a/../../up", "./a", "a/.", "a//b", "a/", "", ".", "nul\0nul",
    "/", "//a", "kernels/../../../etc/passwd", "large/below a file", "empty/x/y",
    "x" * 256, "y/" * 128 + "y", "/".join(["z" * 250] * 4) + "/z", SIGNATURE_NAME + "/..",
    f"{MANIFEST_NAME}/x", f"{SIGNATURE_NAME}/x",
]  # fmt: skip

# What stands there -> what is wrong with it.
REFUSED: dict[str, tuple[Callable[[Truth], bytes], str]] = {
    "nothing at all": (lambda truth: b"", "required file"),
    "garbage": (lambda truth: b"\xff<html>404</html>", "it is no ActionResult"),
    "a page": (lambda truth: b"<html>welcome</html>", "it is no ActionResult"),
    "cut off": (lambda truth: truth.result.encode()[:-1], "it is no ActionResult"),
    "half of it": (lambda truth: entry_of(*truth.files[:2]), "artifact_manifest.json is not"),
    "failed": (lambda truth: entry_of(*truth.files, exit_code=1), "exit code is 1"),
    "killed": (lambda truth: entry_of(*truth.files, exit_code=-9), "exit code is -9"),
    "too large": (lambda truth: bytes(ENTRY_LIMIT + 1), "4000000 is the limit"),
    "a file twice": (lambda truth: entry_of(*truth.files, truth.files[0]), "twice"),
    "a file in two ways": (
        lambda truth: entry_of(*truth.files, replace(truth.files[1], executable=True)),
        "twice",
    ),
    "two manifests": (
        lambda truth: entry_of(*truth.files, replace(truth.of("large"), path=MANIFEST_NAME)),
        "twice",
    ),
    "no manifest": (
        lambda truth: entry_of(*(file for file in truth.files if file.path != MANIFEST_NAME)),
        "artifact_manifest.json is not",
    ),
    "an executable manifest": (
        lambda truth: truth.changed(MANIFEST_NAME, executable=True),
        "artifact_manifest.json is not",
    ),
    "a manifest of a huge size": (
        lambda truth: truth.changed(
            MANIFEST_NAME, digest=replace(truth.of(MANIFEST_NAME).digest, size=2**62)
        ),
        "artifact_manifest.json is not",
    ),
    "a manifest with a blank": (
        lambda truth: with_manifest(manifest_of(READY, truth) + b" ", truth),
        "artifact_manifest.json is not",
    ),
    "a file more": (
        lambda truth: entry_of(*truth.files, replace(truth.of("large"), path="more")),
        "artifact_manifest.json is not",
    ),
    "a file less": (
        lambda truth: entry_of(*(file for file in truth.files if file.path != "empty")),
        "artifact_manifest.json is not",
    ),
    "a file of another name": (
        lambda truth: truth.changed("large", path="larger"),
        "artifact_manifest.json is not",
    ),
    "another content": (
        lambda truth: truth.changed("large", digest=BlobDigest.of(b"x")),
        "artifact_manifest.json is not",
    ),
    "another size": (
        lambda truth: truth.changed("empty", digest=BlobDigest(Digest.of(b""), 1)),
        "artifact_manifest.json is not",
    ),
    "an executable more": (
        lambda truth: truth.changed("large", executable=True),
        "artifact_manifest.json is not",
    ),
    "an executable less": (
        lambda truth: truth.changed("prebuilt/kernel_0.bin", executable=False),
        "artifact_manifest.json is not",
    ),
    "a huge file": (
        lambda truth: consistent((*truth.records, FileRecord("huge", 2**62, "0" * 64, False))),
        f"{PAYLOAD_LIMIT} is the limit",
    ),
    "huge files": (
        lambda truth: consistent(
            (*truth.records, *(FileRecord(f"{n}", 1 << 27, "0" * 64, False) for n in range(8)))
        ),
        f"{PAYLOAD_LIMIT} is the limit",
    ),
    "ten thousand files": (
        lambda truth: consistent((*truth.records, *(record(f"{n}") for n in range(10_000)))),
        f"{FILES_LIMIT} is the limit",
    ),
    "a long path": (
        lambda truth: consistent((*truth.records, record("/".join(["n" * 250] * 4)))),
        f"more than {PATH_LIMIT} bytes",
    ),
    "huge signatures": (
        lambda truth: entry_of(
            *truth.files, OutputFile(SIGNATURE_NAME, BlobDigest(Digest.of(b""), 16 * 1024 + 1))
        ),
        "16384 is the limit",
    ),
    "executable signatures": (
        lambda truth: entry_of(
            *truth.files, OutputFile(SIGNATURE_NAME, truth.of("empty").digest, True)
        ),
        "is executable",
    ),
    **{
        f"the path {path[:30]!r}": (
            lambda truth, path=path: entry_of(*truth.files, replace(truth.of("large"), path=path)),
            "path|reserved|both a file and a directory",
        )
        for path in ODD_PATHS
    },
    **{
        f"the path {path[:30]!r} with its manifest": (
            lambda truth, path=path: consistent((*truth.records, record(path, LARGE))),
            "path|reserved|both a file and a directory",
        )
        for path in ODD_PATHS
    },
    **{
        f"a manifest of another {what}": (
            lambda truth, spec=spec: with_manifest(manifest_of(spec, truth), truth),
            "artifact_manifest.json is not",
        )
        for what, spec in OTHER_SPECS.items()
    },
}


def refused(
    remote: MemoryRemote, tmp_path: Path, trust: Trust = ANYONE
) -> tuple[RejectedEntry, RecordingEngine]:
    """The fault of fetching what stands there, which asks for no payload and leaves no trace."""
    engine = RecordingEngine(remote.open())
    before = snapshot(tmp_path)
    with pytest.raises(RejectedEntry) as caught:
        fetched(engine, KEY, READY, tmp_path / "got", trust)
    (tmp_path / "got").rmdir()
    assert snapshot(tmp_path) == before
    assert str(NAME) in caught.value.operation
    return caught.value, engine


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_the_entry_is_refused_before_anything_is_fetched(
    case: str, remote: MemoryRemote, truth: Truth, tmp_path: Path
) -> None:
    make, reason = REFUSED[case]
    remote.entries[NAME] = make(truth)
    fault, engine = refused(remote, tmp_path)
    assert engine.operations() == ["get_entry"]
    assert re.search(reason, fault.reason), fault.reason


def test_another_entry_under_this_name_is_refused(remote: MemoryRemote, tmp_path: Path) -> None:
    remote.entries[NAME] = remote.entries[entry_name(sample_key("other"), READY).digest]
    _, engine = refused(remote, tmp_path)
    assert engine.operations() == ["get_entry"]


def test_only_signatures_are_fetched_before_the_decision(
    remote: MemoryRemote, truth: Truth, tmp_path: Path
) -> None:
    stamp = Stamp("mine")
    wrong = b"mine, believe me"
    remote.held[BlobDigest.of(wrong)] = wrong
    remote.entries[NAME] = entry_of(*truth.files, OutputFile(SIGNATURE_NAME, BlobDigest.of(wrong)))
    fault, engine = refused(remote, tmp_path, stamp)
    assert engine.read == [BlobDigest.of(wrong)]
    assert fault.reason == "it is not stamped mine"


@pytest.mark.parametrize("lie", ["lost", "other", "endless"])
def test_signatures_that_do_not_arrive_are_a_miss_or_a_fault(
    lie: str, remote: MemoryRemote, truth: Truth, tmp_path: Path
) -> None:
    stamp = Stamp("mine")
    signatures = stamp.sign(manifest_of(READY, truth))
    digest = BlobDigest.of(signatures)
    remote.entries[NAME] = entry_of(*truth.files, OutputFile(SIGNATURE_NAME, digest))
    lies = {"lost": None, "other": lambda: io.BytesIO(signatures[::-1]), "endless": Endless}
    engine = lying(remote.open(), {digest: lies[lie]})
    if lie == "lost":
        assert fetched(engine, KEY, READY, tmp_path / "got", stamp) is None
    else:
        with pytest.raises(CorruptBlob):
            fetched(engine, KEY, READY, tmp_path / "got", stamp)


def test_state_is_in_the_name_and_in_the_manifest(remote: MemoryRemote, tmp_path: Path) -> None:
    assert fetched(remote.open(), KEY, GENERATED, tmp_path / "got") is None
    remote.entries[entry_name(KEY, GENERATED).digest] = remote.entries[NAME]
    with pytest.raises(RejectedEntry):
        fetched(remote.open(), KEY, GENERATED, tmp_path / "too")
