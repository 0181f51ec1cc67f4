"""The lock file of Debian packages, and the check of what apt downloaded against it.

    # comment
    <name> <version> <size> <sha256>

apt has already verified every package against the archive's signed index. The lock adds that the
bytes are those this project was tested with. Debian's development suite moves on and drops old
versions, so a package of another version is a fact to report, and one of the same version with
other bytes is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bootstrap.failure import SetupError
from bootstrap.settings import Pins


@dataclass(frozen=True, slots=True)
class Package:
    """One Debian package file. ``size`` is bytes, ``sha256`` lower-case hex."""

    name: str
    version: str
    size: int
    sha256: str


def parse_lock(text: str) -> dict[str, Package]:
    """Read the lock file; raises ValueError on a malformed or repeated line."""
    packages: dict[str, Package] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 4 or len(words[3]) != 64 or words[0] in packages:
            raise ValueError(f"line {number} of the Debian lock file is malformed: {line!r}")
        name, version, size, sha256 = words
        packages[name] = Package(name, version, int(size), sha256)
    return packages


def format_lock(packages: Iterable[Package]) -> str:
    """The text that parse_lock reads."""
    rows = sorted(f"{p.name} {p.version} {p.size} {p.sha256}" for p in packages)
    return (
        "# Written by build_tools/bootstrap/relock.py: name, version, bytes, sha256.\n"
        + "\n".join(rows)
        + "\n"
    )


def check(downloaded: Iterable[Package], locked: Mapping[str, Package], pins: Pins) -> list[str]:
    """Return the names of packages that moved on since the lock was written.

    Raises SetupError for a package that has the locked version and other bytes, and under
    ``Pins.STRICT`` for every difference.
    """
    if pins is Pins.OFF:
        return []
    moved = []
    for package in downloaded:
        lock = locked.get(package.name)
        if lock is not None and lock.version == package.version:
            if lock.sha256 != package.sha256:
                raise SetupError(
                    f"checksum of {package.name} {package.version} is {package.sha256}"
                    f" and the lock file says {lock.sha256}",
                    "do not use this mirror, or set BAZELW_PINS=off if you know why it differs",
                )
        elif pins is Pins.STRICT:
            raise SetupError(
                f"the suite has {package.name} {package.version} and the lock file"
                f" {'has ' + lock.version if lock else 'does not have it'}",
                "unset BAZELW_PINS to accept what the archive signed, or write the lock file anew",
            )
        else:
            moved.append(package.name)
    return moved
