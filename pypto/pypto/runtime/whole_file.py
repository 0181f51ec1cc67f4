"""Files that are there whole, or as they were."""

from __future__ import annotations

import secrets
from pathlib import Path


def replace_file(path: Path, data: bytes) -> None:
    """Give a file its content at once: a reader sees the old bytes or the new, never some of each.

    A process that has the old file open or mapped keeps it. What a killed process left is called
    ``.<name>.<random>.tmp``; the name is unique, for two threads may write the same file. OSError
    as writing raises it; then the old file is still there.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
