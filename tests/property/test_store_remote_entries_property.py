"""Whatever stands under an entry's name: what fetching it gives is the true payload, or nothing."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypto_store import Digest
from pypto_store.manifest import FileRecord, Manifest, ManifestError, parse
from pypto_store.paths import MANIFEST_NAME, SIGNATURE_NAME
from pypto_store.remote.arrival import fetch_entry
from pypto_store.remote.blob_store import BlobDigest, RemoteProtocolError
from pypto_store.remote.entry_name import entry_name
from pypto_store.remote.entry_testing import publish
from pypto_store.remote.inventory import output_files
from pypto_store.remote.memory import MemoryRemote
from pypto_store.remote.messages import ActionResult, OutputFile
from pypto_store.remote.sending import send_entry
from pypto_store.remote.trust import ANYONE
from pypto_store.testing import EXECUTABLES, GENERATED, PAYLOAD, READY, sample_key

KEY = sample_key()
NAME = entry_name(KEY, READY).digest
PAYLOADS = {
    (KEY, READY): PAYLOAD,
    (KEY, GENERATED): {"kernel_config.json": b"sources"},
    (sample_key("two"), READY): {"kernel_config.json": b"two", "kernels/aiv/add.cpp": b""},
}


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> MemoryRemote:
    """A remote with several entries, so that a lie can name what is really there."""
    remote = MemoryRemote()
    for number, ((key, spec), payload) in enumerate(PAYLOADS.items()):
        entry = publish(tmp_path_factory.mktemp(f"store{number}"), key, spec, payload)
        send_entry(remote.open(), "memory:", entry, ANYONE, None)
    return remote


class _Stamped:
    """Trusts one manifest."""

    def __init__(self, manifest: bytes) -> None:
        self._manifest = manifest

    def fault(self, manifest: bytes, signatures: bytes | None) -> str | None:
        return None if manifest == self._manifest else "it is another one"


def fetched(remote: MemoryRemote, trusted: bool) -> dict[str, tuple[bytes, bool]] | None:
    """What a fetch leaves in its directory; None for a miss or a fault, which leave nothing."""
    records = tuple(
        FileRecord(path, len(data), Digest.of(data).hex, path in EXECUTABLES)
        for path, data in sorted(PAYLOAD.items())
    )
    truth = Manifest(KEY, READY, records)
    with tempfile.TemporaryDirectory() as above:
        place = Path(above) / "directory"
        place.mkdir()
        trust = _Stamped(truth.encode()) if trusted else ANYONE
        try:
            manifest = fetch_entry(remote.open(), "memory:", KEY, READY, str(place), trust)
        except RemoteProtocolError:
            manifest = None
        found = [path for path in Path(above).rglob("*") if path != place]
        if manifest is None:
            assert not found
            return None
        files = {
            str(path.relative_to(place)): (path.read_bytes(), bool(path.stat().st_mode & 0o100))
            for path in found
            if not path.is_dir()
        }
        # An untrusted remote may have another payload of the same key. Then the manifest that was
        # given is the one of what is there.
        assert {name: (data, name in EXECUTABLES) for name, data in PAYLOAD.items()} == files or (
            not trusted and manifest != truth
        )
        assert [record.path for record in manifest.files] == sorted(files)
        for record in manifest.files:
            data, executable = files[record.path]
            assert Digest.of(data).hex == record.sha256
            assert executable == record.executable
        return files


def damaged(data: st.DataObject, encoded: bytes) -> bytes:
    """A few places of `encoded` with other bytes, none or more."""
    changed = bytearray(encoded)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(changed)))
        piece = data.draw(
            st.one_of(st.binary(max_size=3), st.sampled_from([b"../", b"/", b"\0", encoded]))
        )
        changed[place : place + data.draw(st.integers(0, 4))] = piece
    return bytes(changed)


@given(st.data())
def test_a_damaged_entry_yields_the_payload_or_nothing(remote, data):
    mutated = remote.copy()
    mutated.entries[NAME] = damaged(data, remote.entries[NAME])
    fetched(mutated, trusted=True)
    files = fetched(mutated, trusted=False)
    # Without a new manifest, which damage does not make, there is no other payload.
    assert files is None or files.keys() == PAYLOAD.keys()


@given(st.data())
def test_a_damaged_manifest_yields_nothing(remote, data):
    mutated = remote.copy()
    result = ActionResult.decode(remote.entries[NAME])
    (right,) = (file for file in result.output_files if file.path == MANIFEST_NAME)
    wrong = damaged(data, remote.held[right.digest])
    mutated.held[BlobDigest.of(wrong)] = wrong
    files = [file for file in result.output_files if file is not right]
    claim = OutputFile(MANIFEST_NAME, BlobDigest.of(wrong))
    mutated.entries[NAME] = ActionResult((*files, claim)).encode()
    if wrong == remote.held[right.digest]:
        return
    assert fetched(mutated, trusted=False) is None
    # Also not when the entry lists the files that the damaged manifest does.
    try:
        manifest = parse(wrong)
    except (ManifestError, UnicodeEncodeError):
        return
    mutated.entries[NAME] = ActionResult(output_files(manifest, wrong, None)).encode()
    fetched(mutated, trusted=True)


odd_names = [MANIFEST_NAME, SIGNATURE_NAME, "..", "../x", "/x", "kernels", "empty/x", "", "a/"]
names = st.one_of(
    st.sampled_from([*PAYLOAD, *odd_names]), st.text(st.characters(codec="utf-8"), max_size=6)
)


@given(st.data())
def test_a_forged_list_of_files_yields_what_its_manifest_says_or_nothing(remote, data):
    mutated = remote.copy()
    blobs = st.sampled_from([*sorted(mutated.held), BlobDigest.of(b""), BlobDigest.of(b"lost")])
    files = list(ActionResult.decode(remote.entries[NAME]).output_files)
    for _ in range(data.draw(st.integers(1, 3))):
        forged = data.draw(st.builds(OutputFile, names, blobs, st.booleans()))
        place = data.draw(st.integers(0, len(files) - 1))
        if data.draw(st.booleans()):
            files.insert(place, forged)
        else:
            files[place] = data.draw(
                st.sampled_from(
                    [
                        forged,
                        replace(files[place], path=forged.path),
                        replace(files[place], digest=forged.digest),
                        replace(files[place], executable=forged.executable),
                    ]
                )
            )
    if data.draw(st.booleans()):
        # The forger has made a manifest of it.
        listed = [file for file in files if file.path not in (MANIFEST_NAME, SIGNATURE_NAME)]
        records = sorted(
            FileRecord(file.path, file.digest.size, file.digest.sha256.hex, file.executable)
            for file in listed
        )
        manifest = Manifest.of_proven_files(KEY, READY, tuple(records))
        if manifest is not None:
            encoded = manifest.encode()
            mutated.held[BlobDigest.of(encoded)] = encoded
            files = [*listed, OutputFile(MANIFEST_NAME, BlobDigest.of(encoded))]
    mutated.entries[NAME] = ActionResult(tuple(files)).encode()
    fetched(mutated, trusted=True)
    fetched(mutated, trusted=False)


@given(st.data())
def test_damaged_blobs_yield_the_payload_or_nothing(remote, data):
    mutated = remote.copy()
    digests = sorted(digest for digest in mutated.held if digest.size)
    for digest in data.draw(st.lists(st.sampled_from(digests), min_size=1, max_size=3)):
        if data.draw(st.booleans()):
            mutated.held[digest] = damaged(data, mutated.held.get(digest, b""))
        else:
            mutated.held.pop(digest, None)
    fetched(mutated, trusted=True)
    fetched(mutated, trusted=False)
