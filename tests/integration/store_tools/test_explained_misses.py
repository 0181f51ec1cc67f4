"""Real requests: what a miss leaves for `why`, and that nothing else ever touches it."""

from __future__ import annotations

import pytest
from pypto_store.testing import snapshot

FP16 = ("pl.FP32", "pl.FP16")


def inputs_between(house, before, after):
    done = house.command("why", before, after)
    assert done.status == 0, done.err
    (explanation,) = done.document["explanations"]
    (comparison,) = explanation["compared"]
    assert all(part["untold"] is None for part in comparison["components"])
    return {
        (part["component"], item["of"], item["name"]): (item["before"], item["after"])
        for part in comparison["components"]
        for item in part["inputs"]
    }


def change_text(old, new):
    def change(house):
        text = (house.top / "kernels.py").read_text()
        assert old in text
        house.write(text.replace(old, new))
        return {}

    return change


def change_extra_source(house):
    (house.top / "extra" / "a.py").write_text("changed = 1")
    return {}


HELPER = "function kernels:helper"
CHANGES = {
    "global": (
        change_text("SCALE = 2.0", "SCALE = 3.0"),
        {("source", HELPER, "global SCALE"): ("2.0", "3.0")},
    ),
    "helper": (change_text("pl.mul(", "pl.add("), {("source", HELPER, "text"): None}),
    "dtype": (
        change_text(*FP16),
        {
            ("source", "function kernels:kernel", "text"): None,
            ("specialization", "parameter x", "dtype"): ("FP32", "FP16"),
            ("specialization", "parameter out", "dtype"): ("FP32", "FP16"),
        },
    ),
    "extra source": (
        change_extra_source,
        {("application", "extra source 1: extra", "file a.py"): None},
    ),
    "variable": (
        lambda _: {"env": {"CPLUS_INCLUDE_PATH": "/opt/include"}},
        {("environment", "setting", "CPLUS_INCLUDE_PATH"): (None, "/opt/include")},
    ),
    "platform": (
        lambda _: {"arch": "Ascend950"},
        {("specialization", "option", "platform"): ("a2a3sim", "a5sim")},
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_why_names_what_was_changed(house, name):
    change, expected = CHANGES[name]
    (house.top / "extra").mkdir()
    (house.top / "extra" / "a.py").write_text("")
    first, _ = house.request(sources=["extra"])
    options = change(house)
    second, _ = house.request(sources=["extra"], **options)
    assert first["stats"]["misses"] == second["stats"]["misses"] == 1
    found = inputs_between(house, first["key"], second["key"])
    assert found.keys() == expected.keys()
    for place, values in expected.items():
        assert values is None or found[place] == values


def test_a_hit_does_not_look_at_evidence(house):
    report, _ = house.request(warm=True)
    assert report["evidence"] != []  # the hook that watches sees it
    assert report["makes_evidence"]
    evidence = house.root / "evidence"
    before = snapshot(house.root)
    assert any(path.startswith("evidence/") for path in before)
    report, _ = house.request(warm=True)
    assert (report["stats"]["ready_hits"], report["evidence"]) == (1, [])
    assert not report["makes_evidence"]
    assert snapshot(house.root) == before
    for path in evidence.iterdir():
        path.write_bytes(b"damage")
    assert house.request(warm=True)[0]["stats"]["ready_hits"] == 1
    for path in evidence.iterdir():
        path.unlink()
    assert house.request(warm=True)[0]["stats"]["ready_hits"] == 1
    assert list(evidence.iterdir()) == []


def test_a_read_only_miss_leaves_nothing(house):
    house.request()
    house.write((house.top / "kernels.py").read_text().replace("2.0", "3.0"))
    before = snapshot(house.root)
    report, _ = house.request(readonly=True)
    assert report["stats"]["misses"] == 1
    assert report["evidence"] == []
    assert snapshot(house.root) == before


def test_evidence_that_cannot_be_kept_costs_nothing_but_itself(house):
    house.root.mkdir()
    (house.root / "evidence").write_bytes(b"in the way")
    report, told = house.request(env={"PYPTO_LOG": "info"})
    assert report["key"] is not None
    assert report["stats"]["generation_builds"] == 1
    assert report["stats"]["storage_errors"] == report["stats"]["bypasses"] == 0
    assert "the inputs of its key are not kept" in told
    assert "FileExistsError" in told or "NotADirectoryError" in told
    report, _ = house.request()
    assert report["stats"]["generated_hits"] == 1


def test_a_kernels_history_is_told(lived_in):
    done = lived_in.command("why", "--kernel", "kernel")
    assert done.status == 0, done.err
    explanations = done.document["explanations"]
    assert [len(item["compared"]) for item in explanations] == [0, 1, 1]
    assert {item["kernel"] for item in explanations} == {"kernels:kernel"}
    last = explanations[-1]["compared"][0]["components"]
    assert [part["component"] for part in last] == ["source", "specialization"]
