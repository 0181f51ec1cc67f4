"""Whose entries are used, and who vouches for those that are sent.

An entry is code: whoever can write to a remote runs code on everybody who reads it. With trusted
keys an entry counts only with a signature by one of them. The package that verifies is the extra
`pypto[signing]`; without it nothing is accepted and nothing is signed.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Protocol

from pypto_store.remote.ed25519 import PrivateKey, SigningMissing, WrongKey, verifies
from pypto_store.remote.public_key import key_text, parse_key
from pypto_store.remote.signatures import (
    Signature,
    SignaturesError,
    encode,
    parse,
    signed_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pypto_store.remote_config import RemoteConfig

_KEY_FILE_LIMIT = 64 * 1024  # bytes
_OTHERS = 0o077


class Trust(Protocol):
    """Decides whether a manifest is from somebody who may run code here."""

    def fault(self, manifest: bytes, signatures: bytes | None) -> str | None:
        """Why an entry with this manifest is not to be used, or None if it may be.

        signatures: the bytes beside the manifest, unverified; None where there are none.
        """
        ...


class Signer(Protocol):
    """Vouches for what is sent."""

    @property
    def own(self) -> Trust:
        """Accepts what this signer has signed, and nothing else.

        What stands at a remote is as good as what would be sent only if this accepts it: another
        key may be one that readers do not trust any more.
        """
        ...

    def sign(self, manifest: bytes) -> bytes:
        """The document of signatures that lies beside the manifest."""
        ...


class _Anyone:
    """Whoever can write to the remote is trusted, as whoever can write to a root is."""

    def fault(self, manifest: bytes, signatures: bytes | None) -> str | None:
        return None


ANYONE: Trust = _Anyone()


class TrustedKeys:
    """Trusts whoever has one of the private keys that belong to `keys` ("ed25519:<base64>" each).

    ValueError for a text that is no key, and for no keys at all: that would be everybody to one
    reader and nobody to another.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        self._keys = frozenset(map(parse_key, keys))
        if not self._keys:
            raise ValueError("no trusted keys; name at least one, or trust ANYONE")

    def fault(self, manifest: bytes, signatures: bytes | None) -> str | None:
        """None if one of the signatures is by one of the keys and for this very manifest."""
        if signatures is None:
            return f"it is not signed, and {self._wanted()} is asked for"
        try:
            given = parse(signatures)
        except SignaturesError as error:
            return f"its document of signatures {error}"
        by_trusted = [each for each in given if each.key in self._keys]
        if not by_trusted:
            names = ", ".join(key_text(each.key) for each in given)
            return f"it is signed by {names}, and {self._wanted()} is asked for"
        message = signed_bytes(manifest)
        try:
            if any(verifies(each.key, each.signature, message) for each in by_trusted):
                return None
        except SigningMissing as error:
            return f"its signature cannot be verified: {error}"
        return f"the signature by {key_text(by_trusted[0].key)} is not one of this manifest"

    def _wanted(self) -> str:
        count = len(self._keys)
        return "a signature by " + ("the trusted key" if count == 1 else f"one of {count} keys")


class SigningKeyError(ValueError):
    """A file that nothing can be signed with; names the file, what is wrong, and what to do."""

    def __init__(self, path: str, reason: str, remedy: str) -> None:
        super().__init__(f"signing key {path}: {reason}; {remedy}")
        self.path = path
        self.reason = reason
        self.remedy = remedy


class KeySigner:
    """Signs with one private key. own: trusts that key alone."""

    def __init__(self, key: PrivateKey) -> None:
        self.own: Trust = TrustedKeys([key_text(key.public)])
        self._key = key

    def sign(self, manifest: bytes) -> bytes:
        """The document with the one signature of this key."""
        return encode([Signature(self._key.public, self._key.sign(signed_bytes(manifest)))])


def trust_of(config: RemoteConfig) -> Trust:
    """Whom the reader of a remote trusts: its trusted keys; without any, its own key, or anyone.

    Who signs believes nobody by default: what it compiles from sources that anybody can have put
    there would carry its signature. SigningKeyError where its own key cannot be read.
    """
    if config.trusted_keys:
        return TrustedKeys(config.trusted_keys)
    signer = signer_of(config)
    return ANYONE if signer is None else signer.own


def signer_of(config: RemoteConfig) -> Signer | None:
    """Who signs what is sent to a remote; None without a signing key. SigningKeyError.

    The file is read once, now.
    """
    if config.signing_key is None:
        return None
    return KeySigner(read_signing_key(os.fspath(config.signing_key)))


def read_signing_key(path: str) -> PrivateKey:
    """The private key in a PEM file (PKCS #8, Ed25519, not encrypted); SigningKeyError.

    As ssh does, a file of this user's that others may read or write is refused: who may copy the
    key may sign. A file of another user's may be as open as that user has decided; that is how
    secrets are mounted into containers.
    """
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            _check_mode(path, os.fstat(file.fileno()))
            data = file.read(_KEY_FILE_LIMIT + 1)
    except FileNotFoundError:
        remedy = "make one with `python -m pypto_store keygen`, or name another"
        raise SigningKeyError(path, "there is no such file", remedy) from None
    except OSError as error:
        reason = f"it cannot be read ({error.strerror})"
        raise SigningKeyError(path, reason, "name a file that can") from None
    remedy = (
        "give a PEM file (PKCS #8) with an Ed25519 key, as `python -m pypto_store keygen` makes"
    )
    if len(data) > _KEY_FILE_LIMIT:
        raise SigningKeyError(path, f"it has more than {_KEY_FILE_LIMIT} bytes", remedy)
    try:
        return PrivateKey.of_pem(data)
    except WrongKey as error:
        raise SigningKeyError(path, str(error), remedy) from None
    except SigningMissing as error:
        raise SigningKeyError(path, "it cannot be used", str(error)) from None


def _without_waiting(path: str, flags: int) -> int:
    """Open it also where it is a pipe, which would wait for somebody to write into it."""
    return os.open(path, flags | os.O_NONBLOCK)


def _check_mode(path: str, status: os.stat_result) -> None:
    mode = stat.S_IMODE(status.st_mode)
    if not stat.S_ISREG(status.st_mode):
        raise SigningKeyError(path, "it is not a file", "name a file")
    if status.st_uid == os.getuid() and mode & _OTHERS:
        reason = f"others than its owner may use it (mode {mode:04o})"
        raise SigningKeyError(path, reason, f"chmod 600 {path}")
