"""What was carried: fates, bytes and modes, and where a remote that is a directory has things."""

from __future__ import annotations

from pypto_store.testing import sample_key, snapshot

KEY = sample_key("one").digest.hex
TWO = sample_key("two", "elsewhere").digest.hex


def entries(root):
    """Modes and bytes of all entries; inodes and the rest of the root are its own."""
    return {
        path: (mode, data)
        for path, (mode, _, data) in snapshot(root).items()
        if path.startswith("artifacts")
    }


def fates(done):
    return {(entry["key"], entry["state"], entry["cpu_level"]): entry["fate"]
        for entry in done.document["entries"]}  # fmt: skip


def blob(place, sha256):
    return place / "cas" / sha256[:2] / sha256


def entry_file(place, name):
    return place / "ac" / name[:2] / name
