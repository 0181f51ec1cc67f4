"""Reading ``/etc/ld.so.cache``, which the dynamic loader of glibc asks where a library lies.

The file, in the byte order of whoever wrote it (all numbers of 32 bits but `hwcap`, of 64):

    old format     "ld.so-1.7.0" NUL, count, then `count` entries of 3 numbers; may be left out, and
                   is padded to a multiple of 8. Loaders of this century use what follows it.
    new format     "glibc-ld.so.cache1.1", count, bytes of strings, 1 byte of flags, 3 bytes, offset
                   of extensions, 12 bytes; then `count` entries:
                   flags, offset of the name, offset of the path, osversion, hwcap
    strings        ended by NUL; offsets count from the beginning of the new format

An entry with a `hwcap` is good for some processors only.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping

from pypto_toolchains.regular_file import open_regular

CACHE_PATH = "/etc/ld.so.cache"

_OLD_MAGIC = b"ld.so-1.7.0\0"
_OLD_ENTRY_BYTES = 12
_MAGIC = b"glibc-ld.so.cache1.1"
_COUNTS = struct.Struct("=II")
_HEADER_BYTES = 48
_ENTRY = struct.Struct("=iIIIQ")
_MAX_BYTES = 64 << 20


class LoaderCacheUnreadable(ValueError):
    """The cache has another form than the one above."""


LoaderCache = Mapping[str, tuple[tuple[str, bool], ...]]
"""Library names to (path, whether that is for some processors only), in the order of the file,
which is the order in which the loader prefers them."""


def read_loader_cache(path: str) -> LoaderCache:
    """What the cache at `path` says. OSError, LoaderCacheUnreadable."""
    with os.fdopen(open_regular(path), "rb") as stream:
        data = stream.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise LoaderCacheUnreadable(f"{path} has more than {_MAX_BYTES} bytes")
    try:
        return parse_loader_cache(data)
    except LoaderCacheUnreadable as error:
        raise LoaderCacheUnreadable(f"{path}: {error}") from error


def parse_loader_cache(data: bytes) -> LoaderCache:
    """What the bytes of a cache say. LoaderCacheUnreadable."""
    start = _start_of_new_format(data)
    cache = data[start:]
    if len(cache) < _HEADER_BYTES:
        raise LoaderCacheUnreadable("it ends inside its header")
    count, _ = _COUNTS.unpack_from(cache, len(_MAGIC))
    if _HEADER_BYTES + count * _ENTRY.size > len(cache):
        raise LoaderCacheUnreadable(f"it is too short for {count} entries")
    found: dict[str, list[tuple[str, bool]]] = {}
    for index in range(count):
        _, name, path, _, capability = _ENTRY.unpack_from(
            cache, _HEADER_BYTES + index * _ENTRY.size
        )
        found.setdefault(_text(cache, name), []).append((_text(cache, path), capability != 0))
    return {name: tuple(paths) for name, paths in found.items()}


def _start_of_new_format(data: bytes) -> int:
    if data.startswith(_MAGIC):
        return 0
    if data.startswith(_OLD_MAGIC) and len(data) >= len(_OLD_MAGIC) + 4:
        (count,) = struct.unpack_from("=I", data, len(_OLD_MAGIC))
        end = len(_OLD_MAGIC) + 4 + count * _OLD_ENTRY_BYTES
        start: int = end + -end % 8
        if data[start : start + len(_MAGIC)] == _MAGIC:
            return start
    raise LoaderCacheUnreadable("it is in no known format; run ldconfig")


def _text(cache: bytes, offset: int) -> str:
    end = cache.find(b"\0", offset)
    if end < 0:
        raise LoaderCacheUnreadable("a name lies outside of it; run ldconfig")
    return os.fsdecode(cache[offset:end])
