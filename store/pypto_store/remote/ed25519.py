"""The one place that calls the package `cryptography`: Ed25519 of RFC 8032.

It is the extra `pypto[signing]` and is imported when the first key is used, so that whoever has no
keys needs no package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

REMEDY = "pip install 'pypto[signing]'"


class SigningMissing(ImportError):
    """The package is not there, or cannot be loaded; the text says what to install."""

    def __init__(self) -> None:
        super().__init__(f"signatures need the package cryptography; {REMEDY}")


class WrongKey(ValueError):
    """The bytes are no private key that can sign here; the text says what they are instead."""


def verifies(key: bytes, signature: bytes, message: bytes) -> bool:
    """Whether `signature` is one of `message` by the public key `key`; SigningMissing."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        raise SigningMissing from None
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


class PrivateKey:
    """A key that signs. It is in the memory of the process and is never shown.

    public: the 32 bytes of the public key that belongs to it.
    """

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public = key.public_key().public_bytes_raw()

    @classmethod
    def made(cls) -> PrivateKey:
        """A new key from the system's randomness; SigningMissing."""
        try:
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        except ImportError:
            raise SigningMissing from None
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def of_pem(cls, data: bytes) -> PrivateKey:
        """The key of a PEM file (PKCS #8, not encrypted); WrongKey, SigningMissing."""
        try:
            from cryptography.exceptions import UnsupportedAlgorithm
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
            from cryptography.hazmat.primitives.serialization import load_pem_private_key
        except ImportError:
            raise SigningMissing from None
        if b"-----BEGIN ENCRYPTED PRIVATE KEY-----" in data or b"ENCRYPTED\n" in data:
            raise WrongKey("it is encrypted, and nobody is asked for a passphrase")
        if b"-----BEGIN PUBLIC KEY-----" in data:
            raise WrongKey("it is a public key")
        if b"-----BEGIN " not in data:
            raise WrongKey("it is not PEM")
        try:
            key = load_pem_private_key(data, password=None)
        except UnsupportedAlgorithm:
            raise WrongKey("it is a key of another algorithm") from None
        except (ValueError, TypeError):  # its text may show what is in the file
            raise WrongKey("it is no private key in PKCS #8, or a damaged one") from None
        if not isinstance(key, Ed25519PrivateKey):
            raise WrongKey("it is a key of another algorithm")
        return cls(key)

    def pem(self) -> bytes:
        """The key as `of_pem` reads it."""
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            NoEncryption,
            PrivateFormat,
        )

        return self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    def sign(self, message: bytes) -> bytes:
        """The 64 bytes of the signature."""
        return self._key.sign(message)
