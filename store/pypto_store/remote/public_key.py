"""Public keys as text, which is how they are configured: no library is needed to read one.

Grammar (version 1):

    key = "ed25519:" and 44 characters    ; RFC 4648 base64 of the 32 bytes, with its padding

A key has one spelling. Version history: 1, the first. Another algorithm gets another word before
the colon.
"""

from __future__ import annotations

from base64 import b64decode, b64encode

KEY_PREFIX = "ed25519:"
KEY_SIZE = 32  # bytes

_PRIME = 2**255 - 19
# The heights of the eight points of small order. Under such a key signatures can be made up by
# anybody, and 32 zeros, which somebody may put where a key is to come, are one of them.
_SMALL_ORDER = frozenset(
    y % _PRIME
    for y in (
        0,
        1,
        -1,
        0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826,
        -0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826,
    )
)


def key_text(key: bytes) -> str:
    """The text of a public key's 32 bytes."""
    return KEY_PREFIX + b64encode(key).decode("ascii")


def parse_key(text: str) -> bytes:
    """The 32 bytes of a public key.

    ValueError says what is wrong but does not show the text: it may be a private key, put in the
    wrong place.
    """
    key = exact_base64(text.removeprefix(KEY_PREFIX), KEY_SIZE)
    if not text.startswith(KEY_PREFIX) or key is None:
        raise ValueError(
            f"is no public key, which is {KEY_PREFIX!r} and base64 of {KEY_SIZE} bytes"
        )
    # The highest bit is the side of the curve, which both have.
    if int.from_bytes(key, "little") % 2**255 % _PRIME in _SMALL_ORDER:
        raise ValueError("is a key that nobody can have made: anybody could sign for it")
    return key


def exact_base64(text: str, size: int) -> bytes | None:
    """The `size` bytes that `text` spells in the one way that there is; None if it does not."""
    try:
        data = b64decode(text.encode("ascii"), validate=True)
    except ValueError:
        return None
    return data if len(data) == size and b64encode(data).decode("ascii") == text else None
