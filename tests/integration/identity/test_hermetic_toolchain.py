"""What the hermetic policy takes part of a key from, and what it does not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from described_toolchains import (
    Edit,
    component,
    description,
    patch,
    rebuild,
    says,
    tool,
    toolchain,
    variable,
    write_toolchain,
)
from mutations import House, Mutation, Outcome, check
from pypto_toolchains.evidence import Unavailable
from pypto_toolchains.identity import ToolchainIdentity

CHANGES, KEEPS, BYPASSES, CAUGHT = Outcome


def move_toolchain(name: str) -> Edit:
    def edit(house: House) -> None:
        moved = house.top / "deeper" / name
        moved.parent.mkdir()
        toolchain(house).rename(moved)
        house.environ["PYPTO_TOOLCHAIN"] = str(moved / "identity.json")

    return edit


def link_toolchain(house: House) -> None:
    """Every file is a link, as in a Bazel sandbox."""
    farm = house.top / "farm"
    for path in toolchain(house).rglob("*"):
        if path.is_file():
            link = farm / path.relative_to(toolchain(house))
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)
    house.environ["PYPTO_TOOLCHAIN"] = str(farm / "identity.json")


def name_it_relatively(house: House) -> None:
    house.environ["PYPTO_TOOLCHAIN"] = "../toolchain/identity.json"


def make_all_executable(house: House) -> None:
    for path in toolchain(house).rglob("*"):
        path.chmod(0o555 if path.is_file() else 0o755)


def directory_for_description(house: House) -> None:
    description(house).unlink()
    description(house).mkdir()


def move_list(house: House) -> None:
    (toolchain(house) / "inventory.txt").rename(toolchain(house) / "list.txt")
    says(lambda document: document["inventory"].update(path="list.txt"))(house)


def gone(path: str) -> Edit:
    return lambda house: (toolchain(house) / path).unlink()


def extra_link(house: House) -> None:
    (toolchain(house) / "zig/lib/include/math.h").symlink_to("/usr/include/math.h")


def note_beside(house: House) -> None:
    (toolchain(house) / "NOTE").write_text("")


HEADER = "zig/lib/include/stddef.h"

DEVICE_TOOLCHAIN = [
    Mutation(
        "another build of the compiler", "device_toolchain", rebuild("zig/zig", "\x7fELF2"), CHANGES
    ),
    Mutation("another header", "device_toolchain", rebuild(HEADER, "#define X"), CHANGES),
    Mutation("another file", "device_toolchain", rebuild("zig/lib/new.h", ""), CHANGES),
    Mutation(
        "another target",
        "device_toolchain",
        tool(argv=["zig/zig", "c++", "-target", "x86_64-linux-gnu.2.36"]),
        CHANGES,
    ),
    Mutation(
        "another order of arguments",
        "device_toolchain",
        tool(argv=["zig/zig", "-target", "c++", "x86_64-linux-gnu.2.28"]),
        CHANGES,
    ),
    Mutation("another dialect", "device_toolchain", tool(dialect="clang"), CHANGES),
    Mutation(
        "no cross compiler",
        "device_toolchain",
        says(lambda document: document["tools"].pop("aarch64_cxx")),
        CHANGES,
    ),
    Mutation("another label", "", component("device_toolchain", label="@other//:zig"), KEEPS),
    Mutation("the toolchain is moved", "", move_toolchain("moved"), KEEPS),
    Mutation("it lies where no text leads", "", move_toolchain(os.fsdecode(b"\xff \n")), KEEPS),
    Mutation("each file of it is a link", "", link_toolchain, KEEPS),
    Mutation("it is named relatively", "", name_it_relatively, KEEPS),
    Mutation("all of it is executable", "", make_all_executable, KEEPS),
    Mutation("its list has another name", "", move_list, KEEPS),
    Mutation("a file lies beside it", "", note_beside, KEEPS),
    Mutation(
        "a header is patched",
        "device_toolchain",
        patch(HEADER, "typedef unsigned char size_t;\n"),
        CAUGHT,
        f"{HEADER} was changed",
    ),
    Mutation(
        "the compiler is patched",
        "device_toolchain",
        patch("zig/zig", "\x7fElF"),
        CAUGHT,
        "zig/zig was changed",
    ),
    Mutation("a header is gone", "device_toolchain", gone(HEADER), CAUGHT, f"{HEADER} is missing"),
    Mutation(
        "a header is added",
        "device_toolchain",
        extra_link,
        CAUGHT,
        "zig/lib/include/math.h was added",
    ),
    Mutation(
        "the compiler is not executable",
        "device_toolchain",
        lambda h: (toolchain(h) / "zig/zig").chmod(0o644),
        CAUGHT,
        "zig/zig is not executable",
    ),
    Mutation(
        "the list is gone",
        "device_toolchain",
        gone("inventory.txt"),
        CAUGHT,
        "inventory.txt: cannot be read",
    ),
    Mutation(
        "the list is another one",
        "device_toolchain",
        patch("inventory.txt", ""),
        CAUGHT,
        "not the one that the description was written for",
    ),
    Mutation(
        "the description is gone",
        "device_toolchain",
        gone("identity.json"),
        BYPASSES,
        "No such file",
    ),
    Mutation(
        "it is a directory",
        "device_toolchain",
        directory_for_description,
        BYPASSES,
        "Is a directory",
    ),
    Mutation(
        "it is no JSON", "device_toolchain", patch("identity.json", "{"), BYPASSES, "not valid JSON"
    ),
    Mutation(
        "it is of another schema",
        "device_toolchain",
        says(lambda document: document.update(schema=2)),
        BYPASSES,
        "schema is 2",
    ),
    Mutation(
        "a tool lies outside",
        "device_toolchain",
        tool(argv=["../zig"]),
        BYPASSES,
        "normal relative path",
    ),
    Mutation(
        "a device toolkit is selected",
        "device_toolchain",
        variable("ASCEND_HOME_PATH", "/opt/ascend"),
        BYPASSES,
        "unset ASCEND_HOME_PATH",
    ),
    Mutation(
        "a device is the target",
        "device_toolchain",
        lambda h: setattr(h, "platform", "a2a3"),
        BYPASSES,
        "'a2a3' needs a device toolkit",
    ),
]

VARIABLES = [
    Mutation("another PATH", "", variable("PATH", "/nowhere"), KEEPS),
    Mutation("no PATH", "", lambda h: h.environ.pop("PATH"), KEEPS),
    Mutation("another home", "", variable("HOME", "/home/other"), KEEPS),
    Mutation("another language", "", variable("LANG", "de_DE.UTF-8"), KEEPS),
    Mutation("another place for temporary files", "", variable("TMPDIR", "/var/tmp"), KEEPS),
    Mutation("headers by variable", "", variable("CPATH", "/opt/include"), KEEPS),
    Mutation("libraries by variable", "", variable("LD_LIBRARY_PATH", "lib:"), KEEPS),
    Mutation("a date by variable", "", variable("SOURCE_DATE_EPOCH", "1"), KEEPS),
    Mutation("another working directory", "", lambda h: setattr(h, "cwd", h.top), KEEPS),
    Mutation("another epoch", "settings", variable("PYPTO_CACHE_EPOCH", "2"), CHANGES),
]


@pytest.mark.parametrize("mutation", [*DEVICE_TOOLCHAIN, *VARIABLES], ids=str)
def test_the_hermetic_identity(described: House, mutation: Mutation) -> None:
    check(described, mutation, "hermetic")


def test_two_installations_with_two_toolchains_have_one_identity(
    described: House, tmp_path: Path
) -> None:
    other = House(tmp_path / "another" / "place")
    written = write_toolchain(other.top / "tools", other.sdk)
    other.environ = {"PYPTO_TOOLCHAIN": str(written)}
    one, two = described.known("hermetic"), other.known("hermetic")
    assert one.digest == two.digest
    assert one.components == two.components
    assert str(tmp_path) not in str(one)


def test_it_is_no_identity_of_another_policy(described: House) -> None:
    assert described.known("hermetic").digest != described.known("build").digest


def test_the_working_directory_of_a_relative_name_counts(described: House) -> None:
    """A record that was made in one directory does not answer in another."""
    other = described.top / "other"
    write_toolchain(other / "toolchain", described.sdk, {"zig/zig": ("\x7fELF2", True)})
    (other / "cwd").mkdir()
    described.environ["PYPTO_TOOLCHAIN"] = "../toolchain/identity.json"
    one = described.known("hermetic")
    described.cwd = other / "cwd"
    assert described.known("hermetic").digest != one.digest


def test_another_toolchain_is_another_identity_in_the_same_process(described: House) -> None:
    other = write_toolchain(described.top / "other", described.sdk, {"zig/zig": ("\x7fELF2", True)})
    process = described.process()
    one = process.identity("hermetic")
    described.environ["PYPTO_TOOLCHAIN"] = str(other)
    two = process.identity("hermetic")
    assert isinstance(one, ToolchainIdentity)
    assert isinstance(two, ToolchainIdentity)
    assert one.digest != two.digest


def test_a_toolchain_that_is_mended_is_used_without_a_restart(described: House) -> None:
    process = described.process()
    path = description(described)
    path.rename(path.with_name("gone"))
    assert isinstance(process.identity("hermetic"), Unavailable)
    path.with_name("gone").rename(path)
    assert isinstance(process.identity("hermetic"), ToolchainIdentity)
    patch(HEADER, "")(described)
    assert process.changed("hermetic") is not None
    rebuild(HEADER, "typedef unsigned long size_t;\n")(described)
    assert process.changed("hermetic") is None


def test_a_toolchain_that_is_replaced_is_no_longer_the_identified_one(described: House) -> None:
    """Its files are what its description says, but neither is what the key names."""
    process = described.process()
    assert isinstance(process.identity("hermetic"), ToolchainIdentity)
    for look in ("for the first time", "again"):
        rebuild(HEADER, f"// {look}")(described)
        said = process.changed("hermetic")
        assert said is not None
        assert said.startswith("device_toolchain: ")
        assert "restart the process" in said
        rebuild(HEADER, "typedef unsigned long size_t;\n")(described)
        assert process.changed("hermetic") is None


def test_a_list_has_to_be_of_what_is_declared(described: House) -> None:
    """A list with a digest of its own says nothing about the declared component."""
    for change, complaint in (
        (component("device_toolchain", digest="ab" * 32), "does not list what"),
        (tool(argv=["zig/other"]), "does not list 'zig/other', the tool host_cxx"),
    ):
        before = description(described).read_text()
        change(described)
        said = described.process().changed("hermetic")
        assert said is not None
        assert complaint in said
        assert "install the toolchain //zig:kernel again" in said
        description(described).write_text(before)


def test_an_assembler_that_is_not_the_declared_one_is_caught(described: House) -> None:
    component("ptoas", digest="ab" * 32)(described)
    said = described.process().changed("hermetic")
    assert said is not None
    assert said.startswith("ptoas: ")
    assert "(//ptoas)" in said
