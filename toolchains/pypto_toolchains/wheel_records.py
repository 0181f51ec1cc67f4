"""What an installer recorded of a wheel: its ``METADATA``, ``WHEEL`` and ``RECORD``.

The records are believed, as Build-IDs are: they say which files the wheel brought, and whoever
edits such a file in place has to say so (see `PYPTO_CACHE_EPOCH`). They are not looked for beyond
the directory that holds the imported package.
"""

from __future__ import annotations

import csv
import email
import hashlib
import io
import os
import re
from dataclasses import dataclass

from pypto_toolchains.disk import Disk, read_whole

RECORD_NAMES = ("METADATA", "WHEEL", "RECORD")

_MAX_RECORD_BYTES = 16 * 1024 * 1024
_INFO = ".dist-info"
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(\[[^\]]*\])?")


class WheelUnknown(Exception):
    """An installed distribution has not the records of a wheel; the text says what is missing."""


@dataclass(frozen=True, slots=True)
class InstalledWheel:
    """A wheel as an installer left it.

    `site` is the directory that its packages lie in, `requirements` what it declares, as written.
    `files` are the normalised absolute paths of RECORD, and `digests` those of the three records,
    in the order of RECORD_NAMES.
    """

    name: str
    version: str
    site: str
    requirements: tuple[str, ...]
    files: frozenset[str]
    digests: tuple[str, ...]


def installed_wheel(name: str, site: str, disk: Disk) -> InstalledWheel:
    """The wheel of the project `name` that was installed into the directory `site`.

    Raises WheelUnknown, or OSError where a record cannot be read.
    """
    found = [
        entry
        for entry in disk.listing(site).split("\0")
        if entry.endswith(_INFO) and normalised(entry.removesuffix(_INFO).split("-")[0]) == name
    ]
    if len(found) != 1:
        told = f"several records ({', '.join(found)})" if found else "no record of a wheel"
        raise WheelUnknown(f"{site} has {told} for {name}; install the wheel of {name} anew")
    info = os.path.join(site, found[0])
    contents = []
    for record in RECORD_NAMES:
        path = os.path.join(info, record)
        if not disk.exists(path):
            raise WheelUnknown(f"{path} is missing; install the wheel of {name} anew")
        contents.append(read_whole(path, disk, _MAX_RECORD_BYTES))
    try:
        metadata, wheel, record = (content.decode("utf-8") for content in contents)
        files = _files(record, site)
    except (UnicodeDecodeError, csv.Error) as error:
        raise WheelUnknown(f"the records in {info} are malformed: {error}") from error
    fields = email.message_from_string(metadata)
    told_name, version = fields.get("Name"), fields.get("Version")
    if told_name is None or normalised(told_name) != name or not version:
        raise WheelUnknown(f"{info}/METADATA names another project than {name}, or no version")
    if not str(email.message_from_string(wheel).get("Wheel-Version", "")).startswith("1."):
        raise WheelUnknown(f"{info}/WHEEL has no Wheel-Version 1")
    for listed in ("METADATA", "WHEEL"):
        if os.path.join(info, listed) not in files:
            raise WheelUnknown(f"{info}/RECORD does not list {listed}")
    return InstalledWheel(
        name=name,
        version=version,
        site=site,
        requirements=tuple(map(str, fields.get_all("Requires-Dist", []))),
        files=files,
        digests=tuple(hashlib.sha256(content).hexdigest() for content in contents),
    )


def required_project(requirement: str) -> str | None:
    """The normalised project that a ``Requires-Dist`` text names, None if it asks for extras or
    is malformed."""
    found = _REQUIREMENT.match(requirement)
    return None if found is None or found[2] else normalised(found[1])


def normalised(name: str) -> str:
    """A project's name in the one spelling that all of its spellings share."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _files(record: str, site: str) -> frozenset[str]:
    rows = csv.reader(io.StringIO(record, newline=""))
    return frozenset(os.path.normpath(os.path.join(site, row[0])) for row in rows if row)
