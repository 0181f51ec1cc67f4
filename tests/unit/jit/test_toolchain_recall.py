"""A process finds the identity an earlier one worked out, unless what it rests on changed."""

from __future__ import annotations

import dataclasses
import os
import shutil
from pathlib import Path

import pypto.jit.toolchain as toolchain_module
import pytest
from pypto.jit.surroundings import Surroundings
from pypto.jit.toolchain import Toolchain
from pypto.runtime.host import installed_sdk
from pypto_toolchains.build_policy import BuildPolicy
from pypto_toolchains.evidence import Unavailable
from pypto_toolchains.identities import Asked
from pypto_toolchains.identity import ToolchainIdentity


class Capturing:
    """One process after the other, with a store at `root`."""

    def __init__(self, top: Path) -> None:
        self.root = top / "root"
        self.first = top / "bin"
        self.first.mkdir()
        self.environ = {"PATH": f"{self.first}:{os.environ.get('PATH', '/usr/bin:/bin')}"}
        self.cwd = str(top)
        self.worked_out = 0

    def question(self, platform: str = "a2a3sim") -> Asked:
        return Surroundings(self.environ, self.cwd).question(platform, str(self.root))

    def identity(self, platform: str = "a2a3sim") -> ToolchainIdentity:
        process = Toolchain()
        found = process.identity(self.question(platform))
        assert isinstance(found, ToolchainIdentity), found
        process.remember(found, str(self.root))
        return found


@pytest.fixture
def capturing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Capturing:
    one = Capturing(tmp_path)
    real = BuildPolicy.capture

    def counted(*args):
        one.worked_out += 1
        return real(*args)

    monkeypatch.setattr(BuildPolicy, "capture", counted)
    return one


def test_a_later_process_works_nothing_out(capturing: Capturing, monkeypatch) -> None:
    first = capturing.identity()
    assert capturing.worked_out == 1
    monkeypatch.setattr(toolchain_module, "selected_sdk", lambda _: pytest.fail("the SDK was read"))
    again = capturing.identity()
    assert capturing.worked_out == 1
    assert (again.digest, again.components, again.settings) == (
        first.digest, first.components, first.settings
    )  # fmt: skip


def test_an_sdk_that_was_replaced_since_it_was_read_is_not_kept(
    capturing: Capturing, monkeypatch
) -> None:
    """The record would tell later processes the old revision beside the new SDK."""
    read = dataclasses.replace(installed_sdk(), revision="0" * 64)
    monkeypatch.setattr(toolchain_module, "selected_sdk", lambda _: read)
    found = Toolchain().identity(capturing.question())
    assert isinstance(found, Unavailable)
    assert "was replaced; restart" in str(found)


def test_both_platforms_are_kept(capturing: Capturing) -> None:
    for _ in range(2):
        capturing.identity("a2a3sim")
        capturing.identity("a5sim")
    assert capturing.worked_out == 2


@pytest.mark.parametrize("name", ["as", "ld", "cc1plus", "g++"])
def test_a_tool_that_appears_earlier_on_the_path_is_seen(capturing: Capturing, name) -> None:
    capturing.identity()
    tool = shutil.which(name) or str(shutil.which("as"))
    (capturing.first / name).symlink_to(tool)
    capturing.identity()
    # The driver finds some of these before it comes to PATH: then nothing has changed for it.
    assert capturing.worked_out == (2 if name == "g++" else capturing.worked_out)
    assert capturing.worked_out in (1, 2)


def test_another_assembler_in_its_place_is_seen(capturing: Capturing) -> None:
    assembler = capturing.first / "ptoas"
    shutil.copy(installed_sdk().ptoas, assembler)
    assembler.chmod(0o755)
    capturing.environ["PTOAS_ROOT"] = str(capturing.first)
    before = capturing.identity()
    facts = {name: value for item in before.components for name, value in item.facts}
    data = bytearray(assembler.read_bytes())
    data[data.index(bytes.fromhex(facts["ptoas.native"].partition(":")[2]))] ^= 1
    assembler.write_bytes(data)
    assert capturing.identity().digest != before.digest
    assert capturing.worked_out == 2


@pytest.mark.parametrize(
    ("variable", "value"),
    [("PYPTO_CACHE_EPOCH", "2"), ("COMPILER_PATH", "/nowhere"), ("LD_LIBRARY_PATH", "/nowhere")],
)
def test_other_variables_are_other_circumstances(capturing: Capturing, variable, value) -> None:
    before = capturing.identity()
    capturing.environ[variable] = value
    assert capturing.identity().digest != before.digest or variable == "COMPILER_PATH"
    assert capturing.worked_out == 2


def test_edited_sources_are_seen(capturing: Capturing, monkeypatch) -> None:
    before = capturing.identity()
    begin = toolchain_module._begin_hashing

    def edited(packages):
        hashes = begin(packages)

        def wait():
            (names, digests), *others = hashes()
            return [(names, bytes([digests[0] ^ 1]) + digests[1:]), *others]

        return wait

    monkeypatch.setattr(toolchain_module, "_begin_hashing", edited)
    assert capturing.identity().digest != before.digest
    assert capturing.worked_out == 2


def test_a_damaged_record_is_worked_out_and_written_again(capturing: Capturing) -> None:
    capturing.identity()
    for record in (capturing.root / "tools").iterdir():
        record.write_bytes(record.read_bytes()[:-1])
    capturing.identity()
    capturing.identity()
    assert capturing.worked_out == 2
