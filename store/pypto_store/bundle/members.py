"""The members of a bundle's tar file: one spelling for each, for writing and for reading alike.

A reader never interprets a header. It knows from the index which member comes next, writes down the
header that the writer would have written, and compares: a link, a device, a sparse or renamed
member, an extended header or a duplicate differs in some byte, whatever it is.
"""

from __future__ import annotations

import tarfile

INDEX_NAME = "pypto-bundle.json"
BLOCK = tarfile.BLOCKSIZE
# Two blocks of zeros end a tar file; no padding to a larger record follows.
END = bytes(2 * BLOCK)
_SIZE_AT = slice(124, 136)


def blob_name(sha256: str) -> str:
    """The member that holds a content."""
    return f"blobs/{sha256}"


def header(name: str, size: int) -> bytes:
    """The one header of a member: a plain file with no owner and no time."""
    member = tarfile.TarInfo(name)
    member.size = size
    member.mode = 0o644
    return member.tobuf(format=tarfile.USTAR_FORMAT)


def padding(size: int) -> int:
    """How many zeros fill the last block of a member of `size` bytes."""
    return -size % BLOCK


def told_size(block: bytes) -> int | None:
    """The size in a header that has not been compared yet, or None if it is no number."""
    digits = block[_SIZE_AT].rstrip(b"\0 ")
    if not digits or digits.strip(b"01234567"):
        return None
    return int(digits, 8)
