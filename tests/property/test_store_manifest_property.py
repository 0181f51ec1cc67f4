"""Manifests round-trip, and nothing but the canonical bytes of a sound one is accepted."""

from __future__ import annotations

import json
import posixpath

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from pypto_store.keys import ArtifactSpec, State
from pypto_store.manifest import FileRecord, Manifest, ManifestError, parse
from pypto_store.paths import RESERVED_NAMES, path_fault
from pypto_store.testing import READY, sample_key

shas = st.binary(min_size=32, max_size=32).map(bytes.hex)
plain_names = st.text("abcXYZ019_.+@=-", min_size=1, max_size=6)
odd_names = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=6)
paths = st.lists(st.one_of(plain_names, odd_names), min_size=1, max_size=3).map("/".join)
sound_paths = paths.filter(lambda path: path_fault(path) is None)
files = st.lists(
    st.builds(FileRecord, sound_paths, st.integers(0, 2**63 - 1), shas, st.booleans()),
    max_size=5,
    unique_by=lambda record: record.path,
).map(lambda records: tuple(sorted(records, key=lambda record: record.path)))
tokens = st.text("abc019", min_size=1, max_size=4)
keys = st.builds(sample_key, st.text("ab", max_size=2), st.text("ab", max_size=2))


@st.composite
def manifests(draw):
    inventory = draw(files)
    names = [record.path for record in inventory]
    required = draw(st.lists(st.sampled_from(names), unique=True)) if names else []
    state = draw(st.sampled_from(State))
    level = draw(st.none() | tokens) if state is State.READY else None
    execution = draw(st.lists(tokens, unique=True, max_size=2))
    spec = ArtifactSpec(state, draw(tokens), tuple(required), tuple(execution), level)
    try:
        return Manifest(draw(keys), spec, inventory)
    except ManifestError:
        assume(False)  # one path is a directory of another


@given(manifests())
def test_round_trip_and_agreement_with_json(manifest):
    data = manifest.encode()
    assert parse(data) == manifest
    assert parse(data, key=manifest.key) == manifest
    assert parse(data, key=manifest.key, spec=manifest.spec) == manifest
    document = json.loads(data)
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":")) + "\n"
    assert canonical.encode() == data


def verdicts(data, key, spec):
    """What the general parser and both short cuts make of the same bytes."""
    found = []
    for given_values in ({}, {"key": key}, {"key": key, "spec": spec}):
        try:
            found.append(parse(data, **given_values))
        except ManifestError:
            found.append(None)
    return found


@given(manifests(), st.data())
def test_one_changed_byte_never_gives_the_same_manifest(manifest, data):
    encoded = bytearray(manifest.encode())
    place = data.draw(st.integers(0, len(encoded) - 1))
    encoded[place] = data.draw(st.integers(0, 255).filter(lambda byte: byte != encoded[place]))
    general, keyed, full = verdicts(bytes(encoded), manifest.key, manifest.spec)
    assert general != manifest
    # The short cuts accept exactly what the general parser accepts and is of that key and spec.
    matches_key = general is not None and general.key == manifest.key
    assert keyed == (general if matches_key else None)
    assert full == (general if matches_key and general.spec == manifest.spec else None)


pieces = st.sampled_from(
    [b",", b"[", b"]", b"{", b"}", b'"', b"1", b"\\", b"true", b"\xff", b"}],", b'],"key":']
)


@given(manifests(), st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), pieces), max_size=4))
def test_spliced_bytes_are_judged_alike_by_every_path(manifest, edits):
    encoded = manifest.encode()
    for start, length, piece in edits:
        at = int(start * len(encoded))
        encoded = encoded[:at] + piece + encoded[at + int(length * 8) :]
    general, keyed, full = verdicts(encoded, manifest.key, manifest.spec)
    for verdict in (general, keyed, full):
        assert verdict is None or verdict.encode() == encoded
    if general is not None and (general.key, general.spec) == (manifest.key, manifest.spec):
        assert keyed == full == general
    else:
        assert full is None


jsons = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | shas,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


@given(manifests(), st.data(), jsons)
def test_any_value_in_any_place_is_a_manifest_error_or_canonical(manifest, data, value):
    document = json.loads(manifest.encode())
    node, path = document, []
    while (isinstance(node, (dict, list)) and node and data.draw(st.booleans())) or not path:
        step = data.draw(
            st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node)))
        )
        path.append((node, step))
        node = node[step]
    holder, step = path[-1]
    holder[step] = value
    encoded = (json.dumps(document, sort_keys=True, separators=(",", ":")) + "\n").encode()
    for verdict in verdicts(encoded, manifest.key, manifest.spec):
        assert verdict is None or verdict.encode() == encoded


@given(st.binary(max_size=200))
@example(b"[" * 50_000)
def test_any_bytes_are_a_manifest_error(data):
    for given_values in ({}, {"key": sample_key(), "spec": READY}):
        with pytest.raises(ManifestError):
            parse(data, **given_values)


awkward = st.lists(
    st.sampled_from(["", ".", "..", "a", "b.c", "/", "//", "artifact_manifest.json"]), max_size=5
).map("/".join)


@given(st.one_of(paths, awkward, st.text(max_size=8)))
def test_a_path_is_fine_exactly_when_it_is_its_own_normal_relative_form(path):
    """Checked against the standard library's idea of normal, which the store does not use."""
    try:
        encoded = path.encode()
    except UnicodeEncodeError:
        encoded = None
    normal = (
        encoded is not None
        and path not in ("", ".", "..")
        and "\0" not in path
        and posixpath.normpath(path) == path
        and not path.startswith(("/", "../"))
        and path not in RESERVED_NAMES
        and max(map(len, encoded.split(b"/"))) <= 255
    )
    assert (path_fault(path) is None) == normal
