"""A SHA-256, the only name by which the store knows anything."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

_HEX = re.compile(r"[0-9a-f]{64}")


def is_digest_name(name: str) -> bool:
    """Whether `name` is spelled like a digest: exactly 64 lower-case hexadecimal digits."""
    return _HEX.fullmatch(name) is not None


@dataclass(frozen=True, slots=True, order=True)
class Digest:
    """One SHA-256 as 64 lower-case hexadecimal digits; any other spelling is a ValueError."""

    hex: str

    def __post_init__(self) -> None:
        if type(self.hex) is not str or _HEX.fullmatch(self.hex) is None:
            raise ValueError(f"not a SHA-256 (64 lower-case hexadecimal digits): {self.hex!r}")

    @classmethod
    def of(cls, data: bytes) -> Digest:
        """The digest of `data`."""
        return cls(hashlib.sha256(data).hexdigest())

    @classmethod
    def from_raw(cls, raw: bytes) -> Digest:
        """The digest whose 32 bytes are `raw`."""
        return cls(raw.hex())

    @property
    def raw(self) -> bytes:
        """The 32 bytes."""
        return bytes.fromhex(self.hex)

    def __str__(self) -> str:
        return self.hex
