"""Binaries kept in an output directory whose sources a user may edit.

::

    <output>/cache/*.bin                binaries
    <output>/cache/binary_context.json  the stamp: what the binaries there may be used for
    <output>/cache/.lock                held by whoever reads or writes the others

The stamp, schema 2::

    schema    2
    context   what besides its source decides the bytes of a binary
    binaries  file name -> sha256 of the file, sha256 of its source

Schema 1 recorded no digests, so its binaries cannot be told from others and are built again once.

A stamp stands for finished work only: it is removed before anything is assembled and written when
all is in place. A file is used when the stamp names it with this context, this source and these
bytes. Every other binary in the cache is deleted, and so is what a killed process was writing.

The lock is one of ``pypto_store.locks``: a forked child neither holds it nor keeps it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto.runtime.binary_build import binary_sources, compile_binaries, kernel_file
from pypto.runtime.errors import ArtifactError
from pypto.runtime.kernel_compiler import KernelCompiler
from pypto.runtime.kernel_config import KernelConfig
from pypto.runtime.whole_file import replace_file
from pypto_store import locks
from pypto_toolchains.json_fields import (
    FieldError,
    as_int,
    as_object,
    as_text,
    check_keys,
    parse_object,
)

SCHEMA = 2
STAMP_NAME = "binary_context.json"
CACHE_DIRECTORY = "cache"
LOCK_NAME = ".lock"

_MAX_STAMP_BYTES = 1 << 20

# A build may take any time, and whoever waits for it can be interrupted.
_FOREVER = threading.TIMEOUT_MAX / 2


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the stamp says of one binary."""

    sha256: str
    source_sha256: str


@dataclass(frozen=True, slots=True)
class Stamp:
    """The parsed stamp."""

    context: Mapping[str, str]
    binaries: Mapping[str, Recorded]

    def to_json(self) -> bytes:
        """The file's bytes; equal values give equal bytes."""
        document = {
            "schema": SCHEMA,
            "context": dict(self.context),
            "binaries": {
                name: {"sha256": record.sha256, "source_sha256": record.source_sha256}
                for name, record in self.binaries.items()
            },
        }
        return (json.dumps(document, indent=2, sort_keys=True) + "\n").encode()

    @classmethod
    def parse(cls, data: bytes) -> Stamp:
        """The value of the file's bytes; FieldError for any other schema or grammar."""
        document = parse_object(data, _MAX_STAMP_BYTES)
        check_keys(document, "the stamp", {"schema", "context", "binaries"})
        if as_int(document["schema"], "schema") != SCHEMA:
            raise FieldError(f"schema is {document['schema']}, not {SCHEMA}")
        context = as_object(document["context"], "context")
        binaries = as_object(document["binaries"], "binaries")
        return cls(
            context={name: as_text(value, f"context.{name}") for name, value in context.items()},
            binaries={name: _recorded(name, value) for name, value in binaries.items()},
        )


def _recorded(name: str, value: Any) -> Recorded:
    fields = as_object(value, f"binaries.{name}")
    check_keys(fields, f"binaries.{name}", {"sha256", "source_sha256"})
    return Recorded(
        as_text(fields["sha256"], f"{name}.sha256"),
        as_text(fields["source_sha256"], f"{name}.source_sha256"),
    )


def obtain_binaries(
    output_dir: Path, config: KernelConfig, compiler: KernelCompiler
) -> dict[str, bytes]:
    """The binaries of the program in ``output_dir`` by file name, built where needed.

    Waits while another process works on the directory. Errors of building leave no stamp;
    ArtifactError if the directory cannot be locked.
    """
    cache = output_dir / CACHE_DIRECTORY
    cache.mkdir(exist_ok=True)
    with _locked(cache):
        paths = {name: output_dir / source for name, source in binary_sources(config).items()}
        texts = {name: path.read_bytes() for name, path in paths.items()}
        sources = {name: hashlib.sha256(text).hexdigest() for name, text in texts.items()}
        context = compiler.reuse_context()
        # What else these are made of has not been read, so they are built each time.
        unread = {kernel_file(kernel.func_id) for kernel in config.kernels if kernel.external}
        unread |= {name for name, path in paths.items() if _includes_more(path, texts[name])}
        verified = _verified(cache, context, sources, unread)
        missing = [name for name in sources if name not in verified]
        strangers = [path for path in cache.glob("*.bin") if path.name not in verified]
        strangers += cache.glob(".*.tmp")
        if not missing and not strangers:
            return verified
        _discard(cache / STAMP_NAME)
        for path in strangers:
            _discard(path)
        built = compile_binaries(output_dir, config, compiler, missing)
        for name, binary in built.items():
            replace_file(cache / name, binary)
        binaries = {name: verified[name] if name in verified else built[name] for name in sources}
        if context is not None:
            # Of a source that was edited meanwhile nobody knows which text was compiled.
            records = {
                name: Recorded(hashlib.sha256(binary).hexdigest(), sources[name])
                for name, binary in binaries.items()
                if name not in unread and paths[name].read_bytes() == texts[name]
            }
            replace_file(cache / STAMP_NAME, Stamp(context, records).to_json())
        return binaries


def invalidate_binaries(output_dir: Path) -> None:
    """Make the next use of ``output_dir`` build every binary afresh."""
    cache = output_dir / CACHE_DIRECTORY
    if not cache.is_dir():
        return
    with _locked(cache):
        _discard(cache / STAMP_NAME)
        for path in cache.glob("*.bin"):
            _discard(path)


def _includes_more(path: Path, text: bytes) -> bool:
    """Whether a source includes a file of its own directory, or one that its text does not tell.

    The SDK's headers are part of the context, and the system's are taken not to change.
    """
    # Only directories that a user may edit need it, and compiling its patterns takes its time.
    from pypto.language.includes import scan

    found = scan(text)
    return found.obstacle is not None or any(
        include.quoted and (path.parent / include.name).exists() for include in found.includes
    )


def _verified(
    cache: Path,
    context: Mapping[str, str] | None,
    sources: Mapping[str, str],
    unread: set[str],
) -> dict[str, bytes]:
    data = _regular_file(cache / STAMP_NAME, _MAX_STAMP_BYTES)
    if context is None or data is None:
        return {}
    try:
        stamp = Stamp.parse(data)
    except FieldError:
        return {}
    if stamp.context != context:
        return {}
    verified = {}
    for name, source in sources.items():
        record = stamp.binaries.get(name)
        if record is None or record.source_sha256 != source or name in unread:
            continue
        binary = _regular_file(cache / name, None)
        if binary is not None and hashlib.sha256(binary).hexdigest() == record.sha256:
            verified[name] = binary
    return verified


def _regular_file(path: Path, limit: int | None) -> bytes | None:
    """The bytes of a file; None for a longer one, for none, and for all that is no plain file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or (limit is not None and status.st_size > limit):
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def _discard(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except IsADirectoryError:
        shutil.rmtree(path)


@contextmanager
def _locked(cache: Path) -> Iterator[None]:
    try:
        lock = locks.acquire(str(cache / LOCK_NAME), shared=False, timeout=_FOREVER)
    except locks.LockUnavailable as error:
        raise ArtifactError(f"{error}; keep the program on a file system that can lock") from error
    with lock:
        yield
