"""Entries at a remote as somebody may have put them there, signed by keys that never change."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pypto_store.keys import ArtifactKey, ArtifactSpec
from pypto_store.manifest import FileRecord, Manifest
from pypto_store.paths import MANIFEST_NAME, SIGNATURE_NAME
from pypto_store.remote.blob_store import BlobDigest
from pypto_store.remote.ed25519 import PrivateKey
from pypto_store.remote.entry_name import entry_name
from pypto_store.remote.messages import ActionResult, OutputFile
from pypto_store.remote.public_key import key_text
from pypto_store.remote.signatures import Signature, encode, parse
from pypto_store.remote.trust import KeySigner
from pypto_store.testing import EXECUTABLES

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from pypto_store.remote.blob_store import BlobStream, Engine


def key_pem(number: int) -> bytes:
    """A private key that is the same in every run: 16 fixed bytes of PKCS #8 and the secret."""
    body = bytes.fromhex("302e020100300506032b657004220420") + bytes([number]) * 32
    text = b64encode(body).decode()
    return f"-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n".encode()


def private_key(number: int) -> PrivateKey:
    return PrivateKey.of_pem(key_pem(number))


def signer(number: int) -> KeySigner:
    return KeySigner(private_key(number))


def public(number: int) -> str:
    return key_text(private_key(number).public)


def key_file(directory: Path, number: int) -> Path:
    """The private key as a file that is fit to sign with."""
    path = directory / f"key-{number}.pem"
    path.write_bytes(key_pem(number))
    path.chmod(0o600)
    return path


def signatures_by(manifest: bytes, *numbers: int) -> bytes:
    """One document of signatures by several keys."""
    made = [signature for number in numbers for signature in parse(signer(number).sign(manifest))]
    return encode(made)


def raw_signature(number: int, message: bytes) -> bytes:
    """A document with a signature over `message` as it is."""
    key = private_key(number)
    return encode([Signature(key.public, key.sign(message))])


def unchecked_manifest(key: ArtifactKey, spec: ArtifactSpec, payload: Mapping[str, bytes]) -> bytes:
    """The bytes of a manifest that may say what none may say."""
    records = [
        FileRecord(path, len(data), BlobDigest.of(data).sha256.hex, path in EXECUTABLES)
        for path, data in payload.items()
    ]
    return Manifest._unchecked(key, spec, tuple(sorted(records))).encode()


@dataclass(frozen=True)
class Planted:
    """An entry of `key` and `spec`, whose parts may be replaced by whatever is wrong.

    manifest and signatures: the bytes at the remote; None leaves the file out. listed: files that
    the entry lists in place of the payload's or beside them.
    """

    key: ArtifactKey
    spec: ArtifactSpec
    payload: Mapping[str, bytes]
    manifest: bytes = b""
    signatures: bytes | None = None
    listed: Mapping[str, bytes] = field(default_factory=dict)

    @classmethod
    def of(
        cls, key: ArtifactKey, spec: ArtifactSpec, payload: Mapping[str, bytes], by: int | None
    ) -> Planted:
        """An entry as it should be, signed by a key."""
        manifest = unchecked_manifest(key, spec, payload)
        made = None if by is None else signer(by).sign(manifest)
        return cls(key, spec, payload, manifest, made)

    def but(self, **changes: object) -> Planted:
        return replace(self, **changes)

    def result(self) -> ActionResult:
        """What stands in the index."""
        files = {
            path: OutputFile(path, BlobDigest.of(data), path in EXECUTABLES)
            for path, data in {**self.payload, **self.listed}.items()
        }
        files[MANIFEST_NAME] = OutputFile(MANIFEST_NAME, BlobDigest.of(self.manifest))
        if self.signatures is not None:
            files[SIGNATURE_NAME] = OutputFile(SIGNATURE_NAME, BlobDigest.of(self.signatures))
        return ActionResult(tuple(files.values()))

    def put(
        self, engine: Engine, key: ArtifactKey | None = None, spec: ArtifactSpec | None = None
    ) -> None:
        """Have the remote hold it, under another key's or specification's name if one is given."""
        name = entry_name(key or self.key, spec or self.spec)
        documents = [name.action, name.command, self.manifest, self.signatures or b"no signatures"]
        blobs = [*self.payload.values(), *self.listed.values(), *documents]
        engine.blobs.put_many({BlobDigest.of(data): data for data in blobs if data})
        engine.entries.put(name.digest, self.result().encode())


class Recording:
    """Another engine, and which blobs were asked for."""

    def __init__(self, inner: Engine) -> None:
        self._inner = inner
        self.blobs = self
        self.entries = inner.entries
        self.asked: set[BlobDigest] = set()
        self.put = inner.blobs.put
        self.put_many = inner.blobs.put_many
        self.find_missing = inner.blobs.find_missing

    def get(self, digest: BlobDigest) -> BlobStream | None:
        self.asked.add(digest)
        return self._inner.blobs.get(digest)

    def get_many(self, digests: Collection[BlobDigest]) -> dict[BlobDigest, bytes]:
        self.asked.update(digests)
        return self._inner.blobs.get_many(digests)

    def close(self) -> None:
        self._inner.close()
