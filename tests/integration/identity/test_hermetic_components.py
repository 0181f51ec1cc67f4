"""What the hermetic policy takes from the product and its SDK, beside the toolchain."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil

import pytest
from described_toolchains import Edit, component, declare, toolchain, variable
from mutations import House, Mutation, Outcome, check, other_build_id

CHANGES, KEEPS, BYPASSES, CAUGHT = Outcome


def append(path: str) -> Edit:
    """Add a line to a file below the packages."""

    def change(house: House) -> None:
        with (house.site / path).open("a") as file:
            file.write("\n")

    return change


def move_installation(house: House) -> None:
    moved = house.top / "elsewhere"
    house.site.rename(moved)
    house.site = moved
    house.package = moved / "pypto"
    house.native = house.package / "_native.so"
    house.sdk = house.package / "_sdk"


def other_interpreter(**fields: str) -> Edit:
    def change(house: House) -> None:
        house.interpreter = dataclasses.replace(house.interpreter, **fields)

    return change


def copy_interpreter(house: House) -> None:
    copy = house.top / "python"
    shutil.copy(os.path.realpath(house.interpreter.executable), copy)
    house.interpreter = dataclasses.replace(
        house.interpreter, executable=str(copy), version="3.11 (another day, another compiler)"
    )


def other_sdk(house: House) -> None:
    """The SDK is built from other sources, and the toolchain for the one before."""
    with (house.sdk / "include/pto/pto-inst.hpp").open("a") as file:
        file.write("\n")
    house.build_sdk()


def other_sdk_and_toolchain(house: House) -> None:
    other_sdk(house)
    declare(toolchain(house), house.sdk)


def other_pin(house: House) -> None:
    (house.sdk / "pto_isa.pin").write_text("ab" * 32 + "\n")
    house.build_sdk()
    component("runtime", digest=_revision(house))(house)


def other_pin_and_toolchain(house: House) -> None:
    other_pin(house)
    declare(toolchain(house), house.sdk)


def _revision(house: House) -> str:
    revision: str = json.loads((house.sdk / "sdk.json").read_text())["revision"]
    return revision


def other_assembler(house: House) -> None:
    other_build_id(house.sdk / "bin/ptoas")
    house.build_sdk()
    declare(toolchain(house), house.sdk)


def other_flags(house: House) -> None:
    """The SDK describes itself in other words, which its revision does not cover."""
    path = house.sdk / "sdk.json"
    metadata = json.loads(path.read_text())
    metadata["targets"]["a2a3sim"]["incore"]["flags"].append("-DOTHER")
    path.write_text(json.dumps(metadata))


def patch_sdk(house: House) -> None:
    with (house.sdk / "include/pto/pto-inst.hpp").open("a") as file:
        file.write("\n")


PYPTO = [
    Mutation("a source is edited", "pypto", append("pypto/language/op.py"), CHANGES),
    Mutation("data is edited", "pypto", append("pypto_toolchains/environment.json"), CHANGES),
    Mutation("the extension is rebuilt", "pypto", lambda h: other_build_id(h.native), CHANGES),
    Mutation(
        "another release of Python",
        "pypto",
        other_interpreter(release="3.99.0", version="3.99.0 (main)"),
        CHANGES,
    ),
    Mutation("another ABI of Python", "pypto", other_interpreter(abi="cpython-399 .so"), CHANGES),
    Mutation("the installation is moved", "", move_installation, KEEPS),
    Mutation("the same Python of another build", "", copy_interpreter, KEEPS),
    Mutation("the extension is gone", "pypto", lambda h: h.native.unlink(), BYPASSES, "_native.so"),
]

RUNTIME = [
    Mutation(
        "code that dispatches is edited", "runtime", append("pypto/runtime/worker.py"), CHANGES
    ),
    Mutation("another SDK and its toolchain", "runtime", other_sdk_and_toolchain, CHANGES),
    Mutation("other flags of the same SDK", "runtime", other_flags, CHANGES),
    Mutation("another label", "", component("runtime", label="@other//:sdk"), KEEPS),
    Mutation("another SDK than declared", "runtime", other_sdk, BYPASSES, "(//pypto:sdk)"),
    Mutation(
        "another revision is declared",
        "runtime",
        component("runtime", digest="ab" * 32),
        BYPASSES,
        "declares abab",
    ),
    Mutation("the SDK is patched", "runtime", patch_sdk, CAUGHT, "was changed after it was built"),
    Mutation(
        "an SDK is selected",
        "runtime",
        variable("PYPTO_RUNTIME_ROOT", "/opt/sdk"),
        BYPASSES,
        "unset PYPTO_RUNTIME_ROOT",
    ),
]

PTO_ISA = [
    Mutation("another pin and its toolchain", "pto_isa", other_pin_and_toolchain, CHANGES),
    Mutation("another label", "", component("pto_isa", label="@other//:isa"), KEEPS),
    Mutation("another pin than declared", "pto_isa", other_pin, BYPASSES, "(//isa:headers)"),
    Mutation(
        "a checkout is selected",
        "pto_isa",
        variable("PTO_ISA_ROOT", "/opt/isa"),
        BYPASSES,
        "unset PTO_ISA_ROOT",
    ),
]

PTOAS = [
    Mutation("another assembler", "ptoas", other_assembler, CHANGES),
    Mutation("another label", "", component("ptoas", label="@other//:ptoas"), KEEPS),
    Mutation(
        "the assembler may not be executed",
        "ptoas",
        lambda h: (h.sdk / "bin/ptoas").chmod(0o644),
        CAUGHT,
        "may not be executed",
    ),
    Mutation(
        "an assembler is selected",
        "ptoas",
        variable("PTOAS_ROOT", "/opt/ptoas"),
        BYPASSES,
        "unset PTOAS_ROOT",
    ),
    Mutation("an empty selection is none", "", variable("PTOAS_ROOT", ""), KEEPS),
]


@pytest.mark.parametrize("mutation", [*PYPTO, *RUNTIME, *PTO_ISA, *PTOAS], ids=str)
def test_the_hermetic_identity_of_a_component(described: House, mutation: Mutation) -> None:
    check(described, mutation, "hermetic")
