from __future__ import annotations

import dataclasses

import pytest
from pypto_store import ArtifactKey, ArtifactSpec, Digest, State
from pypto_store.testing import READY, sample_key


def test_key_digest_is_pinned():
    """Changing it orphans every stored artifact; it needs a new record name."""
    key = ArtifactKey(*(Digest(digit * 64) for digit in "abcde"))
    assert key.digest.hex == "cdf14f43df225facc726854e2d256b12b24c8512a8f614820a4c3a1e8f2c696c"


def test_spec_digest_is_pinned():
    assert READY.digest.hex == "e99ee3470daaa61ecf6ea9da2637862de4c7ff44c2c72608927fff33387356e1"


def test_every_component_counts_in_its_own_place():
    key = sample_key()
    seen = {key.digest}
    for field in ("format", "environment", "source", "application", "specialization"):
        seen.add(dataclasses.replace(key, **{field: Digest.of(b"other")}).digest)
    assert len(seen) == 6
    swapped = dataclasses.replace(key, format=key.source, source=key.format)
    assert swapped.digest != key.digest


def test_every_field_of_a_spec_counts():
    spec = ArtifactSpec(State.READY, "l2", ("a",), ("sim",), "x86-64")
    others = [
        dataclasses.replace(spec, build_kind="l3"),
        dataclasses.replace(spec, required_files=("a", "b")),
        dataclasses.replace(spec, execution=()),
        dataclasses.replace(spec, cpu_level=None),
        ArtifactSpec(State.GENERATED, "l2", ("a",), ("sim",)),
    ]
    assert len({spec.digest, *(other.digest for other in others)}) == 6


def test_order_of_required_files_and_capabilities_does_not_count():
    one = ArtifactSpec(State.READY, "l2", ("b", "a"), ("sim", "onboard"))
    other = ArtifactSpec(State.READY, "l2", ("a", "b"), ("onboard", "sim"))
    assert one == other
    assert one.digest == other.digest


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"state": "ready"}, TypeError),
        ({"build_kind": ""}, ValueError),
        ({"build_kind": "a b"}, ValueError),
        ({"required_files": ("a", "a")}, ValueError),
        ({"required_files": ("../a",)}, ValueError),
        ({"required_files": "a"}, TypeError),
        ({"execution": ("a/b",)}, ValueError),
        ({"cpu_level": ""}, ValueError),
        ({"state": State.GENERATED, "cpu_level": "x86-64"}, ValueError),
    ],
)
def test_impossible_specs_are_refused(fields, error):
    with pytest.raises(error):
        ArtifactSpec(**{"state": State.READY, "build_kind": "l2", **fields})


def test_components_must_be_digests():
    with pytest.raises(TypeError):
        dataclasses.replace(sample_key(), source="a" * 64)
