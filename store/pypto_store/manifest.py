"""The manifest: the one file of an entry that says what the others must be.

It is canonical JSON: ASCII, no blanks, keys in alphabetical order, one trailing newline. A
manifest with any other spelling of the same content is refused, which also refuses duplicate
and unknown fields, booleans for integers and every float.

Grammar (schema 1):

    manifest  = {"components": {"application": sha, "environment": sha, "format": sha,
                                "source": sha, "specialization": sha},
                 "files": [file, ...],            ; strictly ascending by path
                 "key": sha,                      ; the digest of the components
                 "schema": 1,
                 "spec": {"build_kind": token, "cpu_level": token or null,
                          "execution": [token, ...], "required_files": [path, ...],
                          "state": "generated" or "ready"}}
    file      = {"executable": bool, "path": path, "sha256": sha, "size": integer}
    sha       = 64 lower-case hexadecimal digits

Schema history: 1, the first. A change of meaning or of fields takes the next number and a line
here; a reader refuses the numbers it does not know.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from pypto_store.digest import Digest, is_digest_name
from pypto_store.keys import ArtifactKey, ArtifactSpec, State
from pypto_store.paths import PLAIN_LIMIT, RESERVED_NAMES, path_fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SCHEMA = 1
SIZE_LIMIT = 16 * 1024 * 1024  # bytes of one manifest
_FILE_SIZE_LIMIT = 2**63 - 1

_FIELDS = frozenset({"components", "files", "key", "schema", "spec"})
_COMPONENT_FIELDS = frozenset({"application", "environment", "format", "source", "specialization"})
_SPEC_FIELDS = frozenset({"build_kind", "cpu_level", "execution", "required_files", "state"})
_FILE_FIELDS = frozenset({"executable", "path", "sha256", "size"})
_STATES = {state.value: state for state in State}


# One canonical file, or the comma before it and one; sizes here stay below 2**63.
_PLAIN_FILE = re.compile(
    r'(?:\A|,)\{"executable":(false|true),'
    r'"path":"([A-Za-z0-9_][A-Za-z0-9_.+@=-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.+@=-]*)*)",'
    r'"sha256":"([0-9a-f]{64})","size":(0|[1-9][0-9]{0,17})\}'
)
_PLAIN_FILE_FIXED = len('{"executable":,"path":"","sha256":"","size":}') + 64


_FILES_END = b'],"key":'
_SPEC_END = b"}\n"


class ManifestError(ValueError):
    """A manifest that says something impossible, or not what was asked for."""


class FileRecord(NamedTuple):
    """One payload file: normal relative path, size in bytes, SHA-256, and whether it executes.

    A tuple rather than a checked value because a lookup makes one per file; Manifest checks them.
    """

    path: str
    size: int
    sha256: str
    executable: bool


# The generated constructor of a named tuple costs twice as much.
_new_record = tuple.__new__


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything an entry claims about itself; consistent from birth (ManifestError if not)."""

    key: ArtifactKey
    spec: ArtifactSpec
    files: tuple[FileRecord, ...]

    def __post_init__(self) -> None:
        for path, size, sha256, executable in self.files:
            if fault := path_fault(path):
                raise ManifestError(fault)
            if type(size) is not int or not 0 <= size <= _FILE_SIZE_LIMIT:
                raise ManifestError(f"{path!r} has an impossible size {size!r}")
            if type(sha256) is not str or not is_digest_name(sha256):
                raise ManifestError(f"{path!r} has a malformed sha256 {sha256!r}")
            if type(executable) is not bool:
                raise ManifestError(f"{path!r}: executable is neither true nor false")
        self._check_names()

    @classmethod
    def _of_checked_records(
        cls, key: ArtifactKey, spec: ArtifactSpec, files: tuple[FileRecord, ...]
    ) -> Manifest:
        """A manifest of records whose four values are each proven right already."""
        manifest = cls._unchecked(key, spec, files)
        manifest._check_names()
        return manifest

    @classmethod
    def of_proven_files(
        cls, key: ArtifactKey, spec: ArtifactSpec, files: tuple[FileRecord, ...]
    ) -> Manifest | None:
        """A manifest of files that somebody else proved right, each alone and all together.

        None unless `files` has what `spec` requires, which nobody can prove who does not know it.
        """
        if not {record[0] for record in files}.issuperset(spec.required_files):
            return None
        return cls._unchecked(key, spec, files)

    @classmethod
    def _unchecked(
        cls, key: ArtifactKey, spec: ArtifactSpec, files: tuple[FileRecord, ...]
    ) -> Manifest:
        manifest = object.__new__(cls)
        object.__setattr__(manifest, "key", key)
        object.__setattr__(manifest, "spec", spec)
        object.__setattr__(manifest, "files", files)
        return manifest

    def _check_names(self) -> None:
        paths = [record[0] for record in self.files]
        names = set(paths)
        if paths != sorted(names):
            raise ManifestError("files are not in strictly ascending order of their paths")
        directories: set[str] = set()
        for path in paths:
            parent = path.rpartition("/")[0]
            while parent and parent not in directories:
                directories.add(parent)
                parent = parent.rpartition("/")[0]
        if reserved := RESERVED_NAMES & (names | directories):
            raise ManifestError(f"{min(reserved)!r} is a reserved name")
        if clash := directories & names:
            raise ManifestError(f"{min(clash)!r} is both a file and a directory")
        if missing := set(self.spec.required_files) - names:
            raise ManifestError(f"required file {min(missing)!r} is not in the inventory")

    @property
    def payload_size(self) -> int:
        """Declared bytes of all payload files."""
        return sum(record.size for record in self.files)

    def find(self, path: str) -> FileRecord | None:
        """The record of one payload path, or None."""
        for record in self.files:
            if record.path == path:
                return record
        return None

    def encode(self) -> bytes:
        """The canonical bytes; ManifestError when they exceed the limit."""
        data = _head(self.key) + _encode_files(self.files) + _tail(self.key, self.spec)
        if len(data) > SIZE_LIMIT:
            raise ManifestError(f"a manifest of {len(data)} bytes is larger than {SIZE_LIMIT}")
        return data


def parse(
    data: bytes, *, key: ArtifactKey | None = None, spec: ArtifactSpec | None = None
) -> Manifest:
    """Read a manifest; ManifestError unless it is canonical, consistent and the expected one.

    With `key` (and `spec`) given, only a manifest of that key (and specification) is accepted.
    """
    if len(data) > SIZE_LIMIT:
        raise ManifestError(f"manifest is larger than {SIZE_LIMIT} bytes")
    if key is not None:
        # The canonical bytes around the file list are known beforehand, but for the spec:
        # comparing them proves key and specification without parsing either.
        head, middle = frame(key)
        middle_at = data.rfind(_FILES_END)
        if (
            data.startswith(head)
            and middle_at >= len(head)
            and data.startswith(middle, middle_at)
            and data.endswith(_SPEC_END)
        ):
            found = spec_of(data[middle_at + len(middle) : -len(_SPEC_END)])
            if found is not None and (spec is None or found == spec):
                plain = _plain_files(data[len(head) : middle_at])
                if plain is not None:
                    return Manifest._of_checked_records(key, found, plain)
    return _parse_whole(data, key, spec)


@lru_cache(maxsize=64)
def spec_of(encoded: bytes) -> ArtifactSpec | None:
    """The specification whose canonical JSON is `encoded`, or None if it is of none."""
    try:
        spec = _spec(json.loads(encoded))
    except (ValueError, RecursionError):
        return None
    return spec if _encode_spec(spec) == encoded else None


def _parse_whole(data: bytes, key: ArtifactKey | None, spec: ArtifactSpec | None) -> Manifest:
    document = _fields("manifest", _load(data), _FIELDS)
    if type(document["schema"]) is not int or document["schema"] != SCHEMA:
        raise ManifestError(f"schema {document['schema']!r} is unknown; this reader knows {SCHEMA}")
    found_key = _key(document, key)
    found_spec = _spec(document["spec"])
    if spec is not None and found_spec != spec:
        raise ManifestError(f"is of specification {found_spec.digest}, not {spec.digest}")
    files = _files(document["files"])
    if data != _head(found_key) + _encode_files(files) + _tail(found_key, found_spec):
        _refuse_spelling(data)
    return Manifest(found_key, found_spec, files)


def _key(document: Mapping[str, object], expected: ArtifactKey | None) -> ArtifactKey:
    components = _fields("components", document["components"], _COMPONENT_FIELDS)
    if expected is not None and document["key"] == expected.digest.hex:
        if components != {name: value.hex for name, value in expected.components()}:
            raise ManifestError("components do not belong to the key")
        return expected
    try:
        found = ArtifactKey(**{name: Digest(_text(value)) for name, value in components.items()})
    except ValueError as error:
        raise ManifestError(f"components: {error}") from None
    if document["key"] != found.digest.hex:
        raise ManifestError("key is not the digest of the components")
    if expected is not None:
        raise ManifestError(f"belongs to key {found.digest}, not {expected.digest}")
    return found


def _spec(value: object) -> ArtifactSpec:
    fields = _fields("spec", value, _SPEC_FIELDS)
    state = _STATES.get(_text(fields["state"]))
    if state is None:
        raise ManifestError(f"state {fields['state']!r} is unknown")
    level = fields["cpu_level"]
    try:
        return ArtifactSpec(
            state=state,
            build_kind=_text(fields["build_kind"]),
            required_files=_texts("required_files", fields["required_files"]),
            execution=_texts("execution", fields["execution"]),
            cpu_level=None if level is None else _text(level),
        )
    except ValueError as error:
        raise ManifestError(f"spec: {error}") from None


def _files(value: object) -> tuple[FileRecord, ...]:
    if type(value) is not list:
        raise ManifestError("files is not a list")
    records = []
    for item in value:
        if type(item) is not dict or item.keys() != _FILE_FIELDS:
            _fields("file", item, _FILE_FIELDS)
        records.append(FileRecord(item["path"], item["size"], item["sha256"], item["executable"]))
    return tuple(records)


def _plain_files(body: bytes) -> tuple[FileRecord, ...] | None:
    """The files of a list in which every one is spelled canonically with a plain path, or None.

    Matches and the commas between them that cover every byte are the list: this accepts nothing
    that the general parser would not, in a fifth of its time.
    """
    found = _PLAIN_FILE.findall(body.decode("ascii", "replace"))
    covered = len(found) - 1 + len(found) * _PLAIN_FILE_FIXED
    records = []
    for flag, path, sha256, size in found:
        if len(path) > PLAIN_LIMIT:
            return None
        covered += len(flag) + len(path) + len(size)
        records.append(_new_record(FileRecord, (path, int(size), sha256, flag == "true")))
    return tuple(records) if covered == len(body) else None


def _load(data: bytes) -> object:
    try:
        return json.loads(data.decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise ManifestError(f"manifest is not JSON: {error}") from None


def _fields(what: str, value: object, names: frozenset[str]) -> dict[str, object]:
    if type(value) is not dict:
        raise ManifestError(f"{what} is not an object")
    if missing := names - value.keys():
        raise ManifestError(f"{what} lacks the field {min(missing)!r}")
    if extra := value.keys() - names:
        raise ManifestError(f"{what} has an unknown field {min(extra)!r}")
    return value


def _text(value: object) -> str:
    if type(value) is not str:
        raise ManifestError(f"{value!r} is not text")
    return value


def _texts(what: str, value: object) -> tuple[str, ...]:
    if type(value) is not list:
        raise ManifestError(f"{what} is not a list")
    return tuple(_text(item) for item in value)


def _refuse_spelling(data: bytes) -> NoReturn:
    """Raise for bytes that parse but are not canonical, naming a duplicate field if any."""

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        fields: dict[str, object] = {}
        for name, value in pairs:
            if name in fields:
                raise ManifestError(f"field {name!r} is given twice")
            fields[name] = value
        return fields

    json.loads(data.decode("ascii"), object_pairs_hook=unique)
    raise ManifestError("manifest is not in canonical form")


def frame(key: ArtifactKey) -> tuple[bytes, bytes]:
    """The canonical bytes before the list of files, and those between it and the specification."""
    return _head(key), _middle(key)


def _head(key: ArtifactKey) -> bytes:
    components = ",".join([f'"{name}":"{value.hex}"' for name, value in key.components()])
    return b'{"components":{' + components.encode("ascii") + b'},"files":['


def _middle(key: ArtifactKey) -> bytes:
    return f'],"key":"{key.digest.hex}","schema":{SCHEMA},"spec":'.encode("ascii")


def _tail(key: ArtifactKey, spec: ArtifactSpec) -> bytes:
    return _middle(key) + _encode_spec(spec) + _SPEC_END


def _encode_spec(spec: ArtifactSpec) -> bytes:
    level = "null" if spec.cpu_level is None else encode_basestring_ascii(spec.cpu_level)
    return (
        f'{{"build_kind":{encode_basestring_ascii(spec.build_kind)},"cpu_level":{level},'
        f'"execution":[{_strings(spec.execution)}],'
        f'"required_files":[{_strings(spec.required_files)}],"state":"{spec.state.value}"}}'
    ).encode("ascii")


def _strings(values: Iterable[str]) -> str:
    return ",".join(map(encode_basestring_ascii, values))


def _encode_files(files: Iterable[FileRecord]) -> bytes:
    # "%d" writes True as 1 and 2.0 as 2, so that a wrongly typed value never compares equal to
    # the bytes it was read from.
    parts = []
    for path, size, sha256, executable in files:
        if type(path) is not str or type(size) is not int or type(sha256) is not str:
            raise ManifestError(f"file {path!r} has a field of the wrong type")
        flag = "true" if executable is True else "false"
        parts.append(
            f'{{"executable":{flag},"path":{encode_basestring_ascii(path)},'
            f'"sha256":{encode_basestring_ascii(sha256)},"size":{size}}}'
        )
    return ",".join(parts).encode("ascii")
