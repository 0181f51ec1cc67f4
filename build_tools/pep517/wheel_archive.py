"""Writes wheels whose bytes depend on their content alone."""

from __future__ import annotations

import base64
import hashlib
import stat
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from project_metadata import Project

# The first moment a zip archive can tell.
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Member:
    """One file of the archive."""

    content: bytes
    executable: bool = False


def members_below(
    directory: Path, prefix: str, executables: Iterable[str] = ()
) -> dict[str, Member]:
    """Every file below ``directory``, named ``prefix/<relative path>``.

    ``executables`` are relative paths; modes on disk say nothing, since Bazel gives every output
    the same one.
    """
    declared = set(executables)
    found = {
        path.relative_to(directory).as_posix(): path
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }
    if missing := declared - set(found):
        raise FileNotFoundError(
            f"declared executable and not in {prefix}: {', '.join(sorted(missing))}"
        )
    return {
        f"{prefix}/{name}": Member(path.read_bytes(), name in declared)
        for name, path in found.items()
    }


def write_wheel(
    out: Path,
    project: Project,
    tag: str,
    readme: str,
    licenses: Mapping[str, bytes],
    members: Mapping[str, Member],
) -> None:
    """Write ``out`` with ``members`` and the dist-info directory made of ``project``.

    ``tag`` is such as ``cp311-cp311-linux_x86_64``; ``py3-none-any`` makes a pure one.
    """
    info = project.dist_info
    pure = "true" if tag.endswith("-none-any") else "false"
    wheel = f"Wheel-Version: 1.0\nGenerator: pypto\nRoot-Is-Purelib: {pure}\nTag: {tag}\n"
    content = dict(members)
    content[f"{info}/METADATA"] = Member(project.metadata(readme).encode())
    content[f"{info}/WHEEL"] = Member(wheel.encode())
    content[f"{info}/entry_points.txt"] = Member(project.entry_points().encode())
    for name, text in licenses.items():
        content[f"{info}/licenses/{name}"] = Member(text)

    record = [
        f"{name},{_digest(member.content)},{len(member.content)}"
        for name, member in sorted(content.items())
    ]
    record.append(f"{info}/RECORD,,")
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, member in sorted(content.items()):
            _add(archive, name, member)
        _add(archive, f"{info}/RECORD", Member(("\n".join(record) + "\n").encode()))


def _digest(content: bytes) -> str:
    return (
        "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    )


def _add(archive: zipfile.ZipFile, name: str, member: Member) -> None:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.create_system = 3  # Unix, whose modes external_attr holds
    entry.compress_type = zipfile.ZIP_DEFLATED
    # Without S_IFREG some installers take the entry for one of no type and drop its mode.
    entry.external_attr = (stat.S_IFREG | (0o755 if member.executable else 0o644)) << 16
    archive.writestr(entry, member.content)
