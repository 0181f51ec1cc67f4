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
bytes. Everything else in the cache is deleted.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto.runtime.binary_build import binary_sources, compile_binaries, kernel_file
from pypto.runtime.json_fields import (
    FieldError,
    as_int,
    as_object,
    as_text,
    check_keys,
    parse_object,
)
from pypto.runtime.kernel_compiler import KernelCompiler
from pypto.runtime.kernel_config import KernelConfig

SCHEMA = 2
STAMP_NAME = "binary_context.json"
CACHE_DIRECTORY = "cache"
LOCK_NAME = ".lock"

_MAX_STAMP_BYTES = 1 << 20


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

    Waits while another process works on the directory. Errors of building leave no stamp.
    """
    cache = output_dir / CACHE_DIRECTORY
    cache.mkdir(exist_ok=True)
    with _locked(cache / LOCK_NAME):
        sources = {
            name: hashlib.sha256((output_dir / source).read_bytes()).hexdigest()
            for name, source in binary_sources(config).items()
        }
        context = compiler.reuse_context()
        verified = _verified(cache, context, sources)
        missing = [name for name in sources if name not in verified]
        strangers = [path for path in cache.glob("*.bin") if path.name not in verified]
        if not missing and not strangers:
            return verified
        (cache / STAMP_NAME).unlink(missing_ok=True)
        for path in strangers:
            path.unlink()
        built = compile_binaries(output_dir, config, compiler, missing)
        for name, binary in built.items():
            _replace(cache / name, binary)
        binaries = {name: verified[name] if name in verified else built[name] for name in sources}
        if context is not None:
            # An external source includes files that nothing here has read.
            external = {kernel_file(kernel.func_id) for kernel in config.kernels if kernel.external}
            records = {
                name: Recorded(hashlib.sha256(binary).hexdigest(), sources[name])
                for name, binary in binaries.items()
                if name not in external
            }
            _replace(cache / STAMP_NAME, Stamp(context, records).to_json())
        return binaries


def invalidate_binaries(output_dir: Path) -> None:
    """Make the next use of ``output_dir`` build every binary afresh."""
    cache = output_dir / CACHE_DIRECTORY
    if not cache.is_dir():
        return
    with _locked(cache / LOCK_NAME):
        (cache / STAMP_NAME).unlink(missing_ok=True)
        for path in cache.glob("*.bin"):
            path.unlink()


def _verified(
    cache: Path, context: Mapping[str, str] | None, sources: Mapping[str, str]
) -> dict[str, bytes]:
    try:
        stamp = Stamp.parse((cache / STAMP_NAME).read_bytes())
    except (FileNotFoundError, FieldError):
        return {}
    if context is None or stamp.context != context:
        return {}
    verified = {}
    for name, source in sources.items():
        record = stamp.binaries.get(name)
        path = cache / name
        if record is None or record.source_sha256 != source or path.is_symlink():
            continue
        try:
            binary = path.read_bytes()
        except FileNotFoundError:
            continue
        if hashlib.sha256(binary).hexdigest() == record.sha256:
            verified[name] = binary
    return verified


def _replace(path: Path, data: bytes) -> None:
    # Never rewritten in place: a process may have the old file mapped.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            yield
        finally:
            # A child forked meanwhile shares the lock; closing our descriptor would not end it.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)
