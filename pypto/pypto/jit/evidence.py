"""The readable inputs of a key, for `python -m pypto_store why`. Made on a miss, and only there.

Each record names the digest it explains. What cannot be told exactly is told by its digest, and a
component whose inputs are no longer what was hashed is left out: an explanation may be missing, it
must not be wrong.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence

from pypto.backend import DEFAULT_RUNTIME
from pypto.jit.application import ExtraSourceError, application_digest, source_fields
from pypto.jit.artifacts import FORMAT, FORMAT_NUMBER
from pypto.jit.extern_sources import NO_EXTERNS, ExternSources
from pypto.jit.names import NameUse
from pypto.jit.parsed import ParsedFunction
from pypto.jit.policy import CachePolicy
from pypto.jit.snapshot import SourceSnapshot
from pypto.jit.specialization import Specialization
from pypto.jit.value_text import Undecodable, ValueReader, own_text
from pypto_store import ArtifactKey
from pypto_store.evidence import EvidenceRecord, Input
from pypto_toolchains.identity import ToolchainIdentity
from pypto_toolchains.packages import FileHasher

_OWN_MARKS = (b"module\0", b"name\0")


def evidence(
    key: ArtifactKey,
    snapshot: SourceSnapshot,
    specialization: Specialization,
    policy: CachePolicy,
    identity: ToolchainIdentity,
    hasher: FileHasher,
    externs: ExternSources = NO_EXTERNS,
) -> tuple[EvidenceRecord, ...]:
    """One record for each component of `key` that can be told."""
    subject = snapshot.functions[0][0].unit
    records = [
        EvidenceRecord.of("format", FORMAT, [Input("", "number", str(FORMAT_NUMBER))]),
        EvidenceRecord.of("environment", identity.digest, environment_inputs(identity)),
        EvidenceRecord.of("source", key.source, [*_sources(snapshot), *_externs(externs)], subject),
        EvidenceRecord.of("specialization", specialization.digest, _arguments(specialization)),
    ]
    try:
        inputs = list(_application(policy, hasher))
        now = application_digest(policy.extra_source_paths, policy.extra_fingerprint, hasher)
    except ExtraSourceError:
        return tuple(records)
    if now == key.application:
        records.append(EvidenceRecord.of("application", key.application, inputs))
    return tuple(records)


def environment_inputs(identity: ToolchainIdentity) -> Iterator[Input]:
    """The settings and facts that an identity is made of, in its order."""
    for name, value in identity.settings:
        if value is not None:
            yield Input("setting", name, value)
    for component in identity.components:
        for name, value in component.facts:
            yield Input(component.component, name, value)


def _application(policy: CachePolicy, hasher: FileHasher) -> Iterator[Input]:
    if policy.extra_fingerprint is not None:
        yield Input("fingerprint", "text", policy.extra_fingerprint)
    for position, path in enumerate(policy.extra_source_paths, 1):
        kind, files = source_fields(path, hasher)
        of = f"extra source {position}: {os.path.basename(path)}"
        yield Input(of, "kind", kind)
        for name, digest in files:
            shown = os.fsdecode(name) or os.path.basename(path)
            yield Input(of, f"file {shown}", f"sha256 {digest.hex()}")


def _arguments(specialization: Specialization) -> Iterator[Input]:
    for parameter in specialization.bound.parameters:
        assert isinstance(parameter, tuple)
        name, kind, *rest = parameter
        of = "parameter " + str(name)
        yield Input(of, "kind", str(kind))
        if kind == "tensor":
            extents, dtype, layout = rest
            assert isinstance(extents, tuple)
            shape = ", ".join("dynamic" if extent is None else str(extent) for extent in extents)
            yield Input(of, "shape", f"[{shape}]")
            yield Input(of, "dtype", str(dtype).upper())
            yield Input(of, "layout", str(layout))
        elif kind == "constexpr" and isinstance(rest[0], bytes):
            yield Input(of, "value", _whole(rest[0], ()))
        else:
            yield Input(of, "dtype", ", ".join(map(str, rest)).upper())
    options = specialization.options
    planner = options.memory_planner
    for option, value in (
        ("platform", options.platform),
        ("runtime", DEFAULT_RUNTIME.value),
        ("strategy", options.strategy.name),
        ("memory_planner", "default" if planner is None else planner.name),
        ("auto_deps", str(options.analyze_auto_scopes_for_deps)),
    ):
        yield Input("option", option, value)


def _sources(snapshot: SourceSnapshot) -> Iterator[Input]:
    units = [declaration.unit for declaration, _ in snapshot.functions]
    for (_, parsed), fields in zip(snapshot.functions, snapshot.fields, strict=True):
        yield from _function(parsed, fields, units)


def _externs(externs: ExternSources) -> Iterator[Input]:
    for position, package in enumerate(externs.packages.values(), 1):
        of = f"extern kernel {position}"
        yield Input(of, "core types", ", ".join(part.core_type for part in package.parts))
        for file in package.files:
            place = file.path.split("/", 2)[2]
            yield Input(of, f"file {place}", f"sha256 {hashlib.sha256(file.data).hexdigest()}")


def _function(
    parsed: ParsedFunction, fields: tuple[str | bytes | bool, ...], units: Sequence[str]
) -> Iterator[Input]:
    unit, kind, level, auto_scope, text, defaults, *names = fields
    of = "function " + str(unit)
    yield Input(of, "kind", str(kind))
    yield Input(of, "level", _whole(level, units))
    yield Input(of, "auto_scope", str(auto_scope))
    assert isinstance(text, bytes)
    # An indented function is parsed inside a block that is none of its own.
    shown = text.decode("utf-8", "surrogatepass").removeprefix("if 1:\n")
    yield Input(of, "text", shown)
    yield Input(of, "defaults", _whole(defaults, units))
    uses = {use.name: use for use in parsed.facts.names}
    rest = iter(names)
    for name in rest:
        where = str(next(rest, "absent"))
        value = b"" if where == "absent" else next(rest, b"")
        if isinstance(name, str) and isinstance(value, bytes) and name in uses:
            yield from _used(of, where, uses[name], value, units)
        else:
            yield Input(of, where + " " + str(name), _digest(value))


def _used(
    of: str, where: str, use: NameUse, encoding: bytes, units: Sequence[str]
) -> Iterator[Input]:
    """A name of the outside, or what is used below it."""
    if where == "absent":
        yield Input(of, f"absent {use.name}", "not defined")
        return
    try:
        found = list(_paths(use, encoding, units))
    except Undecodable:
        found = [("", _digest(encoding))]
    for path, value in found:
        yield Input(of, f"{where} {use.name}{'.' if path else ''}{path}", value)


def _paths(use: NameUse, encoding: bytes, units: Sequence[str]) -> Iterator[tuple[str, str]]:
    paths = [".".join(path).encode() for path in use.paths]
    below = b"".join(b"\0" + path for path in paths)
    if encoding.startswith(_OWN_MARKS) and encoding.endswith(below):
        own = encoding.removesuffix(below)
        if own.count(b"\0") == 1:
            # A name of ours is enough; what is used below it follows from the text.
            yield "", own_text(own, units)
            return
    reader = ValueReader(encoding, units)
    for path, following in zip(paths, [*paths[1:], None], strict=True):
        if not reader.accept(path + b"\0"):
            raise Undecodable(f"no {path!r}")
        if reader.accept(b"absent"):
            text = "not defined"
        elif reader.comes_next(*_OWN_MARKS):
            kind, name = reader.until(b"\0"), reader.until(b"\0")
            text = own_text(kind + b"\0" + name, units)
            if not reader.accept(path):
                raise Undecodable(f"no {path!r}")
        else:
            text = reader.value()
        if following is None and not reader.done:
            raise Undecodable("more than was used")
        yield path.decode(), text


def _whole(encoding: str | bytes | bool, units: Sequence[str]) -> str:
    assert isinstance(encoding, bytes)
    try:
        reader = ValueReader(encoding, units)
        text = reader.value()
        return text if reader.done else _digest(encoding)
    except Undecodable:
        return _digest(encoding)


def _digest(value: str | bytes | bool) -> str:
    data = value if isinstance(value, bytes) else repr(value).encode("utf-8", "surrogatepass")
    return f"sha256 {hashlib.sha256(data).hexdigest()[:32]}"
