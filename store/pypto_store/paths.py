"""Which names a payload file may have.

A payload path is relative, separated by "/", already normal, and encodable as UTF-8, so that one
file has one spelling and no spelling leaves the entry's directory.
"""

from __future__ import annotations

import re

MANIFEST_NAME = "artifact_manifest.json"
SIGNATURE_NAME = "artifact_manifest.json.sig"
RESERVED_NAMES = frozenset({MANIFEST_NAME, SIGNATURE_NAME})

# One pass accepts the common spelling; `path_fault` explains or accepts everything else.
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+@=-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.+@=-]*)*")
_LIMIT = 4096  # bytes; Linux PATH_MAX, so a longer one could not be opened anyway
_COMPONENT_LIMIT = 255  # bytes; NAME_MAX of the file systems in use
# Names from the entry down to the file. Walking and removing a tree recurse once per level, and
# the interpreter's own limit is no answer that a caller could use.
DEPTH_LIMIT = 128
# A plain path this short breaks none of the limits.
PLAIN_LIMIT = _COMPONENT_LIMIT


def path_fault(path: object) -> str | None:
    """Why `path` cannot name a payload file, or None if it can."""
    if type(path) is not str:
        return f"payload path {path!r} is not text"
    if _PLAIN.fullmatch(path) is not None and len(path) <= PLAIN_LIMIT:
        return f"{path!r} is a reserved name" if path in RESERVED_NAMES else None
    if not path:
        return "payload path is empty"
    if path.startswith("/"):
        return f"payload path {path!r} is absolute"
    if "\0" in path:
        return f"payload path {path!r} holds a NUL"
    try:
        encoded = path.encode("utf-8")
    except UnicodeEncodeError:
        return f"payload path {path!r} is not UTF-8"
    if len(encoded) > _LIMIT:
        return f"payload path of {len(encoded)} bytes is longer than {_LIMIT}"
    components = path.split("/")
    if len(components) > DEPTH_LIMIT:
        return f"payload path {path!r} is deeper than {DEPTH_LIMIT} names"
    for component in components:
        if component in ("", ".", ".."):
            return f"payload path {path!r} is not normal"
        if len(component.encode("utf-8")) > _COMPONENT_LIMIT:
            return f"payload path {path!r} has a component longer than {_COMPONENT_LIMIT} bytes"
    return f"{path!r} is a reserved name" if path in RESERVED_NAMES else None
