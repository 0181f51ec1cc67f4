"""`why`: the component and the input that differ, and what is said where nothing tells it."""

from __future__ import annotations

import os
import re

import pytest
from pypto_store import ArtifactKey, ArtifactStore, Digest
from pypto_store.evidence import EvidenceRecord, Input
from pypto_store.testing import GENERATED, payload_builder, snapshot

TEXT = "def f():\n    one = 1\n    two = 2\n    return one"
SOURCE = {("function m:f", "text"): TEXT, ("function m:f", "global X"): "1"}
SPECIALIZATION = {("parameter x", "dtype"): "FP16", ("option", "platform"): "a2a3sim"}
ENVIRONMENT = {("device_toolchain", "driver.version"): "12.2", ("setting", "policy"): "build"}
APPLICATION = {("extra source 1: extra", "file a.py"): "sha256 aa"}
NAMES = ("application", "environment", "format", "source", "specialization")
PLAIN = {
    "application": APPLICATION,
    "environment": ENVIRONMENT,
    "format": {("", "number"): "1"},
    "source": SOURCE,
    "specialization": SPECIALIZATION,
}


class House:
    """A root whose keys are made of readable inputs."""

    def __init__(self, top):
        self.top = top
        self.root = top / "root"
        self.store = ArtifactStore(self.root)
        self.count = 0

    def publish(self, *, subject="m:f", evidence=True, **changes):
        """Publish a key that has `changes` (component -> inputs); gives its digest.

        Keys are published a second apart.
        """
        records = {}
        for name in NAMES:
            inputs = {**PLAIN[name], **changes.get(name, {})}
            inputs = {place: value for place, value in inputs.items() if value is not None}
            told = [Input(*place, value) for place, value in inputs.items()]
            digest = Digest.of(repr((name, subject if name == "source" else "", told)).encode())
            of = subject if name == "source" else ""
            records[name] = EvidenceRecord.of(name, digest, told, of)
        key = ArtifactKey(**{name: record.digest for name, record in records.items()})
        parent = self.top / "p"
        result = self.store.get_or_build(key, GENERATED, payload_builder(), private_parent=parent)
        self.count += 1
        stamp = 1_700_000_000 + self.count
        os.utime(result.entry.path / "artifact_manifest.json", (stamp, stamp))
        if evidence:
            self.store.keep_evidence(records.values())
        return key.digest.hex


@pytest.fixture
def house(tmp_path):
    return House(tmp_path)


def compared(done):
    assert done.status == 0, done.err
    (explanation,) = done.document["explanations"]
    return explanation["compared"]


def told(comparison):
    """Component, owner, name, before and after of each differing input."""
    return [
        (part["component"], item["of"], item["name"], item["before"], item["after"])
        for part in comparison["components"]
        for item in part["inputs"]
    ]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"source": {("function m:f", "global X"): "2"}},
            ("source", "function m:f", "global X", "1", "2"),
        ),
        (
            {"source": {("function m:f", "global Y"): "3"}},
            ("source", "function m:f", "global Y", None, "3"),
        ),
        (
            {"source": {("function m:f", "global X"): None}},
            ("source", "function m:f", "global X", "1", None),
        ),
        (
            {"application": {("extra source 1: extra", "file a.py"): "sha256 bb"}},
            ("application", "extra source 1: extra", "file a.py", "sha256 aa", "sha256 bb"),
        ),
        (
            {"environment": {("device_toolchain", "driver.version"): "12.3"}},
            ("environment", "device_toolchain", "driver.version", "12.2", "12.3"),
        ),
        (
            {"specialization": {("parameter x", "dtype"): "FP32"}},
            ("specialization", "parameter x", "dtype", "FP16", "FP32"),
        ),
        ({"format": {("", "number"): "2"}}, ("format", "", "number", "1", "2")),
    ],
)
def test_the_input_that_differs_is_named(house, command, change, expected):
    before = house.publish()
    after = house.publish(**change)
    (comparison,) = compared(command("why", "--root", house.root, after[:16]))
    assert comparison["key"] == before
    assert told(comparison) == [expected]
    assert [part["component"] for part in comparison["components"]] == list(change)
    # The other way round for the other key.
    ((*place, old, new),) = told(compared(command("why", "--root", house.root, before))[0])
    assert (*place, new, old) == expected


def test_two_keys_are_compared_in_the_order_given(house, command):
    one = house.publish()
    house.publish(source={("function m:f", "global X"): "5"})
    two = house.publish(
        source={("function m:f", "global X"): "2"},
        specialization={("parameter x", "dtype"): "FP32"},
    )
    (comparison,) = compared(command("why", "--root", house.root, one, two))
    assert comparison["key"] == one
    assert [part["component"] for part in comparison["components"]] == ["source", "specialization"]
    assert (
        command("why", "--root", house.root, one, one).document["explanations"][0]["compared"][0][
            "components"
        ]
        == []
    )


def test_the_nearest_come_first(house, command):
    X = ("function m:f", "global X")
    far = house.publish(
        source={X: "7"}, application={("fingerprint", "text"): "r"},
    )  # fmt: skip
    other_kernel = house.publish(subject="m:g")
    old = house.publish(source={X: "9"})
    young = house.publish(source={X: "10"})
    two_inputs = house.publish(source={X: "8", ("function m:f", "text"): "other"})
    key = house.publish()
    done = command("why", "--root", house.root, key, "--nearest", "9")
    order = [comparison["key"] for comparison in compared(done)]
    assert order == [young, old, two_inputs, far, other_kernel]
    assert [item["key"] for item in compared(command("why", "--root", house.root, key))] == order[
        :3
    ]


def test_a_kernels_keys_are_told_in_the_order_of_publication(house, command):
    X = ("function m:f", "global X")
    first = house.publish()
    house.publish(subject="m:other")
    second = house.publish(source={X: "2"})
    third = house.publish(source={X: "2"}, specialization={("parameter x", "dtype"): "FP32"})
    listed = [item["key"] for item in command("ls", "--root", house.root).document["entries"]]
    first, second, third = sorted((first, second, third), key=listed.index, reverse=True)
    for time, key in enumerate((first, second, third)):
        (path,) = house.root.glob(f"artifacts/v1/*/{key}/generated/artifact_manifest.json")
        os.utime(path, (1_600_000_000 + time,) * 2)
    for name in ("f", "m:f", "m.f"):
        done = command("why", "--root", house.root, "--kernel", name)
        explanations = done.document["explanations"]
        assert [item["key"] for item in explanations] == [first, second, third]
        assert explanations[0]["compared"] == []
        assert explanations[1]["compared"][0]["key"] == first
        assert explanations[2]["compared"][0]["key"] in (first, second)
    absent = command("why", "--root", house.root, "--kernel", "nothing")
    assert (absent.status, absent.out) == (1, "")
    assert "m:f, m:other" in absent.err


def test_absent_and_damaged_evidence_is_said(house, command, on_terminal):
    one = house.publish()
    two = house.publish(source={("function m:f", "global X"): "2"}, evidence=False)
    (comparison,) = compared(command("why", "--root", house.root, one, two))
    (part,) = comparison["components"]
    assert part["inputs"] == []
    assert part["untold"] == "after: no evidence is kept of it"
    (path,) = (house.root / "evidence").glob(f"{part['before']}.json")
    path.write_bytes(b"{}")
    (part,) = compared(command("why", "--root", house.root, one, two))[0]["components"]
    assert "damaged" in part["untold"] and "before" in part["untold"]
    wide = on_terminal("why", "--root", house.root, one, two, width=200)
    assert "no evidence is kept of it" in wide.out


def test_alike_inputs_of_different_digests_are_said(house, command):
    one = house.publish()
    two = house.publish(specialization={("parameter x", "dtype"): "FP32"})
    document = command("why", "--root", house.root, one, two)
    (part,) = compared(document)[0]["components"]
    record = EvidenceRecord.of(
        "specialization",
        Digest(part["after"]),
        [Input(*place, value) for place, value in SPECIALIZATION.items()],
    )
    (house.root / "evidence" / f"{part['after']}.json").write_bytes(record.encode())
    (part,) = compared(command("why", "--root", house.root, one, two))[0]["components"]
    assert "the rules of its digest changed" in part["untold"]


def test_a_terminal_shows_values_and_diffs(house, on_terminal):
    house.publish()
    long = TEXT.replace("one = 1", f"one = {'1' * 90}")
    two = house.publish(
        source={("function m:f", "text"): long, ("function m:f", "global X"): "2"},
        environment={("setting", "CPATH"): "/evil\x1b[31m[bold]\udcff"},
    )
    for width in (80, 100):
        done = on_terminal("why", "--root", house.root, two, width=width)
        shown = re.sub(r"\x1b\[[0-9;]*m", "", done.out)
        lines = shown.splitlines()
        assert max(map(len, lines)) <= width
        assert "        global X: 1 -> 2" in lines
        assert "        -    one = 1" in [line.rstrip() for line in lines]
        assert "return one" not in shown  # unchanged lines beyond the next are left out
        assert "\\x1b[31m[bold]\\udcff" in shown
        assert f"{two[:12]} of m:f, 2023-11-1" in shown


def test_the_only_key_has_nothing_beside_it(house, command, on_terminal):
    one = house.publish()
    assert compared(command("why", "--root", house.root, one)) == []
    assert "nothing to compare it with" in on_terminal("why", "--root", house.root, one).out


def test_a_damaged_manifest_is_a_reason(house, command):
    one = house.publish()
    (path,) = house.root.glob(f"artifacts/v1/*/{one}/generated/artifact_manifest.json")
    path.write_bytes(b"{}")
    done = command("why", "--root", house.root, one)
    assert (done.status, done.out) == (1, "")
    assert "damaged" in done.err and "fsck" in done.err


@pytest.mark.parametrize(
    "words", [[], ["a", "b", "c"], ["a", "--kernel", "f"], ["a", "b", "--nearest", "1"]]
)
def test_what_makes_no_question_is_refused(house, command, words):
    house.publish()
    done = command("why", "--root", house.root, *words)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("error: ")


def test_asking_writes_nothing(house, command):
    one, two = house.publish(), house.publish(source={("function m:f", "global X"): "2"})
    before = snapshot(house.root)
    command("why", "--root", house.root, one, two)
    command("why", "--root", house.root, "--kernel", "f")
    command("ls", "--root", house.root, "--kernel", "f")
    command("show", "--root", house.root, one)
    assert snapshot(house.root) == before


def test_ls_and_show_use_evidence_too(house, command, on_terminal):
    one = house.publish()
    house.publish(subject="m:g")
    listed = command("ls", "--root", house.root, "--kernel", "f").document["entries"]
    assert [(entry["key"], entry["kernel"]) for entry in listed] == [(one, "m:f")]
    inputs = command("show", "--root", house.root, one).document["inputs"]
    assert {"of": "function m:f", "name": "global X", "value": "1"} in inputs["source"]
    assert set(inputs) == set(NAMES)
    assert "driver.version" not in on_terminal("show", "--root", house.root, one).out
    assert "driver.version: 12.2" in on_terminal("show", "--root", house.root, one, "--inputs").out
