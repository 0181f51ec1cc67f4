"""The identity of the SDK directory: what its pin says, and which revision its files have."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from pypto_toolchains.disk import Disk
from pypto_toolchains.evidence import Evidence, Unavailable
from pypto_toolchains.packages import FileHasher, hash_files

METADATA_NAME = "sdk.json"
_MAX_PIN_BYTES = 4096


class SdkUnknown(Exception):
    """The SDK does not say what it is; the text says why."""


@dataclass(frozen=True, slots=True)
class SelectedSdk:
    """The SDK that a build reads: its absolute directory, and the revision it records."""

    root: str
    revision: str


def capture_runtime(sdk: SelectedSdk, native: str, sources: str) -> Evidence | Unavailable:
    """The `runtime` component: the SDK's revision, the extension, the Python code beside it."""
    if not is_revision(sdk.revision):
        return Unavailable(
            "runtime", f"{sdk.root} records no build revision; reinstall the package"
        )
    return Evidence.of(
        "runtime", (("sdk.revision", sdk.revision), ("native", native), ("sources", sources))
    )


def capture_isa(sdk: SelectedSdk, disk: Disk) -> Evidence | Unavailable:
    """The `pto_isa` component: the revision that the SDK's pin selects."""
    try:
        pin = isa_pin(sdk.root)
        disk.sha256(pin_path(sdk.root))  # for whoever watches what this rests on
        return Evidence.of("pto_isa", (("pin", pin),))
    except (SdkUnknown, OSError) as error:
        return Unavailable("pto_isa", str(error))


def changed_since_built(sdk: SelectedSdk, hasher: FileHasher) -> str | None:
    """Why the files of the SDK are not those that were built, or None. Reads all of them."""
    try:
        actual = actual_revision(Path(sdk.root), hasher)
    except OSError as error:
        return f"runtime: the SDK cannot be read: {error}"
    if actual == sdk.revision:
        return None
    return f"runtime: the SDK at {sdk.root} was changed after it was built; reinstall the package"


def is_revision(value: object) -> bool:
    """Whether `value` is a full SHA-256 in lower-case hex."""
    return isinstance(value, str) and len(value) == 64 and not value.strip("0123456789abcdef")


def pin_path(root: str) -> str:
    """The file that names the revision of the instruction set."""
    return f"{root}/pto_isa.pin"


def isa_pin(root: str) -> str:
    """The revision of the instruction set that ``pto_isa.pin`` selects. Raises SdkUnknown."""
    path = pin_path(root)
    try:
        pin = _read(path, _MAX_PIN_BYTES).decode("ascii").strip()
    except (OSError, ValueError) as error:
        raise SdkUnknown(f"cannot read {path}: {error}") from error
    if not pin:
        raise SdkUnknown(f"{path} is empty")
    return pin


def actual_revision(root: Path, hasher: FileHasher = hash_files) -> str:
    """The revision the files below `root` have now.

    SHA-256 over ``relative path NUL content-SHA-256-hex LF`` of every file but ``sdk.json``,
    sorted by path. Raises OSError.
    """
    top = str(root)
    names: list[str] = []
    for directory, _, files in os.walk(top):
        for name in files:
            relative = os.path.relpath(os.path.join(directory, name), top)
            if relative != METADATA_NAME:
                names.append(relative)
    names.sort()
    content = hashlib.sha256()
    for name, digest in zip(names, hasher([f"{top}/{name}" for name in names]), strict=True):
        content.update(os.fsencode(name) + b"\0" + digest.hex().encode() + b"\n")
    return content.hexdigest()


def _read(path: str, limit: int) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        content = os.read(fd, limit + 1)
    finally:
        os.close(fd)
    if len(content) > limit:
        raise ValueError(f"more than {limit} bytes")
    return content
