"""The identity of the SDK directory: what its pin says, and which revision its files have."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pypto_toolchains.checkout import Checkout, NoCleanCheckout
from pypto_toolchains.disk import Disk, read_whole
from pypto_toolchains.evidence import Evidence, Unavailable
from pypto_toolchains.packages import FileHasher, hash_files

METADATA_NAME = "sdk.json"
RUNTIME_ROOT_VARIABLE = "PYPTO_RUNTIME_ROOT"
ISA_ROOT_VARIABLE = "PTO_ISA_ROOT"

_MAX_PIN_BYTES = 4096


class SdkUnknown(Exception):
    """The SDK does not say what it is; the text says why."""


@dataclass(frozen=True, slots=True)
class SelectedSdk:
    """The SDK that a build reads.

    `root` is its absolute directory, `revision` what it records of the build that made it; None
    for a source checkout, which `source` then is. `isa` is the checkout of the instruction set
    whose headers replace those of the SDK, if any does.
    """

    root: str
    revision: str | None
    source: Checkout | None = None
    isa: Checkout | None = None

    @property
    def recallable(self) -> bool:
        """Whether its identity rests on files alone: git has to be asked again by each process."""
        return self.source is None and self.isa is None


def selected_root(environ: Mapping[str, str], variable: str) -> str | None:
    """The directory that RUNTIME_ROOT_VARIABLE or ISA_ROOT_VARIABLE selects; None if unset.

    Raises SdkUnknown for a relative one: what it means would change with the directory.
    """
    root = environ.get(variable)
    if not root:
        return None
    if not root.startswith("/"):
        raise SdkUnknown(f"{variable}={root} is relative; set it to an absolute directory")
    return root


def capture_runtime(
    sdk: SelectedSdk, environ: Mapping[str, str], native: str, sources: str, disk: Disk
) -> Evidence | Unavailable:
    """The `runtime` component: the SDK's revision and its description of itself, which no revision
    covers; the extension, and the Python code beside it."""
    if sdk.source is not None:
        try:
            revision = ("checkout.revision", sdk.source.revision(environ))
        except NoCleanCheckout as error:
            return Unavailable("runtime", str(error))
    elif sdk.revision is not None and is_revision(sdk.revision):
        revision = ("sdk.revision", sdk.revision)
    else:
        return Unavailable(
            "runtime", f"{sdk.root} records no build revision; reinstall the package"
        )
    try:
        metadata = disk.sha256(f"{sdk.root}/{METADATA_NAME}")
    except OSError as error:
        return Unavailable("runtime", f"the SDK cannot be read: {error}")
    facts = (revision, ("sdk.metadata", metadata), ("native", native), ("sources", sources))
    return Evidence.of("runtime", facts)


def capture_isa(sdk: SelectedSdk, environ: Mapping[str, str], disk: Disk) -> Evidence | Unavailable:
    """The `pto_isa` component: the revision that the SDK's pin selects, and that of a checkout
    which replaces the headers."""
    try:
        facts = [("pin", _isa_pin(sdk.root, disk))]
        if sdk.isa is not None:
            facts.append(("checkout.revision", sdk.isa.revision(environ)))
    except (SdkUnknown, NoCleanCheckout) as error:
        return Unavailable("pto_isa", str(error))
    return Evidence.of("pto_isa", tuple(facts))


def changed_since_built(sdk: SelectedSdk, hasher: FileHasher) -> str | None:
    """Why the files of an SDK are not those that were built, or None. Reads all of them.

    A source checkout was not built: git tells of its files.
    """
    if sdk.source is not None:
        return None
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


def _isa_pin(root: str, disk: Disk) -> str:
    """The revision of the instruction set that ``pto_isa.pin`` selects. Raises SdkUnknown."""
    path = pin_path(root)
    try:
        pin = read_whole(path, disk, _MAX_PIN_BYTES).decode("ascii").strip()
    except (OSError, ValueError) as error:
        raise SdkUnknown(f"cannot read {path}: {error}; reinstall the package") from error
    if not pin:
        raise SdkUnknown(f"{path} is empty; reinstall the package")
    return pin


def actual_revision(root: Path, hasher: FileHasher = hash_files) -> str:
    """The revision the files below `root` have now.

    SHA-256 over ``relative path NUL content-SHA-256-hex LF`` of every file but ``sdk.json``,
    sorted by path. Raises OSError, for what is no file too.
    """
    top = str(root)
    names: list[str] = []
    for directory, _, files in os.walk(top):
        for name in files:
            relative = os.path.relpath(os.path.join(directory, name), top)
            if relative != METADATA_NAME:
                names.append(relative)
    names.sort()
    for name in names:
        # The hasher would wait at a pipe.
        if not os.path.isfile(f"{top}/{name}"):
            raise OSError(errno.EINVAL, "no regular file", f"{top}/{name}")
    content = hashlib.sha256()
    for name, digest in zip(names, hasher([f"{top}/{name}" for name in names]), strict=True):
        content.update(os.fsencode(name) + b"\0" + digest.hex().encode() + b"\n")
    return content.hexdigest()
