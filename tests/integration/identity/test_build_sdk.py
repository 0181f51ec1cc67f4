"""The runtime and the instruction set of an installed SDK, and what is held against its files."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from mutations import House, Mutation, Outcome, append, check, differences, other_build_id

CHANGES, KEEPS, BYPASSES, CAUGHT = Outcome

HEADER = "include/pto/pto-inst.hpp"
ELEMENTWISE = "include/pto/sim/elementwise.hpp"  # of generated kernels, which name it
PIN = "pto_isa.pin"


def patch(path: str):
    """Edit a file of the SDK in place, as no build does."""

    def edit(house: House) -> None:
        with (house.sdk / path).open("a") as file:
            file.write("\n")

    return edit


def rebuild(path: str):
    """Edit a file of the SDK and build it."""

    def edit(house: House) -> None:
        patch(path)(house)
        house.build_sdk()

    return edit


def other_pin(house: House) -> None:
    (house.sdk / PIN).write_text("0" * 64 + "\n")


def other_pin_built(house: House) -> None:
    other_pin(house)
    house.build_sdk()


def other_metadata(house: House) -> None:
    """Its files are the same, and so is their revision; what compilers are told is not."""
    path = house.sdk / "sdk.json"
    described = json.loads(path.read_text())
    described["targets"]["a2a3sim"]["incore"]["flags"].append("-O0")
    path.write_text(json.dumps(described))


def unreadable_directory(house: House) -> None:
    """A name that no reader follows: links in a circle."""
    (house.sdk / "include" / "around").symlink_to("around")


def metadata(text: str):
    return lambda house: (house.sdk / "sdk.json").write_text(text)


RUNTIME = [
    Mutation("a header is built", "runtime", rebuild(HEADER), CHANGES),
    Mutation("an operation is built", "runtime", rebuild(ELEMENTWISE), CHANGES),
    Mutation("a helper source is added", "runtime", rebuild("src/more.cpp"), CHANGES),
    Mutation("the extension is rebuilt", "runtime", lambda h: other_build_id(h.native), CHANGES),
    Mutation("a runtime source is edited", "runtime", append("pypto/runtime/sdk.py"), CHANGES),
    Mutation("metadata is edited", "runtime", other_metadata, CHANGES),
    Mutation("files are touched", "", lambda h: os.utime(h.sdk / HEADER, (1, 1)), KEEPS),
    Mutation("a header is patched", "runtime", patch(HEADER), CAUGHT, "was changed after"),
    Mutation("an operation is patched", "runtime", patch(ELEMENTWISE), CAUGHT, "was changed after"),
    Mutation("a header is added", "runtime", patch("include/more.h"), CAUGHT, "was changed after"),
    Mutation(
        "a header is removed", "runtime", lambda h: (h.sdk / HEADER).unlink(), CAUGHT,
        "was changed after",
    ),
    Mutation("a header is unreadable", "runtime", unreadable_directory, CAUGHT, "cannot be read"),
    Mutation(
        "no metadata", "runtime", lambda h: (h.sdk / "sdk.json").unlink(), BYPASSES, "sdk.json"
    ),
    Mutation("metadata of no form", "runtime", metadata("{}"), BYPASSES, "sdk.json"),
    Mutation("metadata of no text", "runtime", metadata("\0"), BYPASSES, "sdk.json"),
]  # fmt: skip

PTO_ISA = [
    Mutation("another pin is built", "pto_isa", other_pin_built, CHANGES),
    Mutation("no pin", "pto_isa", lambda h: (h.sdk / PIN).unlink(), BYPASSES, PIN),
    Mutation("an empty pin", "pto_isa", lambda h: (h.sdk / PIN).write_text(""), BYPASSES, "empty"),
    Mutation(
        "a pin of no text", "pto_isa", lambda h: (h.sdk / PIN).write_bytes(b"\xff"), BYPASSES, PIN
    ),
    Mutation(
        "an endless pin", "pto_isa", lambda h: (h.sdk / PIN).write_text("0" * 9999), BYPASSES, PIN
    ),
    Mutation(
        "a pin with more space", "runtime", lambda h: (h.sdk / PIN).write_text(
            (h.sdk / PIN).read_text() + "\n"), CAUGHT, "was changed after",
    ),
]  # fmt: skip


@pytest.mark.conforms("cache.86")
@pytest.mark.parametrize("mutation", RUNTIME, ids=str)
def test_the_runtime(house: House, mutation: Mutation) -> None:
    check(house, mutation)


@pytest.mark.conforms("cache.87")
@pytest.mark.parametrize("mutation", PTO_ISA, ids=str)
def test_the_instruction_set(house: House, mutation: Mutation) -> None:
    check(house, mutation)


@pytest.mark.conforms("cache.87")
def test_a_pin_that_was_patched_is_caught_before_building(house: House) -> None:
    """It makes another key; but nothing is built for it that the pin's revision did not make."""
    before = house.known()
    other_pin(house)
    assert differences(before, house.known()) == {"pto_isa"}
    changed = house.process().changed()
    assert changed is not None
    assert "was changed after it was built" in changed


@pytest.mark.conforms("cache.87")
def test_an_identity_reads_no_header_and_starts_no_git(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither when it is worked out nor when it is recalled."""
    house.known()
    monkeypatch.setattr("subprocess.Popen", lambda *_, **__: pytest.fail("a process was started"))
    shutil.rmtree(house.sdk / "include")
    shutil.rmtree(house.sdk / "src")
    first = house.known()
    records = house.root / "tools"
    for path in records.iterdir():
        if b'"observations"' in path.read_bytes():
            path.unlink()
    told = house.worked_out
    assert house.known().digest == first.digest
    assert house.worked_out == told + 1


def test_the_build_information_shows(house: House) -> None:
    facts = house.facts("runtime")
    assert set(facts) == {"sdk.revision", "sdk.metadata", "native", "sources"}
    assert house.facts("pto_isa") == {"pin": Path(house.sdk / PIN).read_text().strip()}
