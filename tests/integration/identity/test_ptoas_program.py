"""A standalone assembler: what it is known by, and that it has to work."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mutations import House, Mutation, Outcome, check, differences, other_build_id
from ptoas_programs import (
    BUNDLED,
    FAILING,
    OF_ANOTHER_DIALECT,
    SILENT,
    make_program,
    make_unstartable,
    without_build_id,
)
from pypto_toolchains import process, ptoas_acceptance
from pypto_toolchains.evidence import Unavailable

CHANGES, KEEPS, BYPASSES, _ = Outcome

Edit = Callable[[House], object]


@pytest.fixture(scope="module")
def _house(tmp_path_factory: pytest.TempPathFactory) -> House:
    return House(tmp_path_factory.mktemp("house") / "house")


@pytest.fixture
def program_house(_house: House, tmp_path: Path) -> House:
    """A house that is told to use a copy of the bundled assembler, with an empty store."""
    root = tmp_path / "assembler"
    root.mkdir()
    shutil.copy(BUNDLED, root / "ptoas")
    (root / "ptoas").chmod(0o755)
    _house.top = tmp_path
    _house.root = tmp_path / "root"
    _house.environ = {"PATH": os.environ["PATH"], "PTOAS_ROOT": str(root)}
    return _house


def program(house: House) -> Path:
    """The assembler that is selected."""
    return Path(house.environ["PTOAS_ROOT"], "ptoas")


def replaced(source: str) -> Edit:
    """Another program stands there."""
    return lambda house: make_program(source, program(house).parent)


def append(house: House) -> None:
    """The bytes change and the Build-ID does not."""
    with program(house).open("ab") as file:
        file.write(b"\n")


def at_another_place(house: House) -> None:
    moved = house.top / "moved" / "bin"
    moved.mkdir(parents=True)
    shutil.move(program(house), moved / "ptoas")
    house.environ["PTOAS_ROOT"] = str(moved.parent)


def on_path(house: House) -> None:
    """PATH has another assembler, which counts only where none is bundled."""
    make_program(SILENT, house.top / "first")
    house.environ["PATH"] = f"{house.top / 'first'}:{house.environ['PATH']}"


def behind_a_link(house: House) -> None:
    real = house.top / "real"
    shutil.move(program(house), real)
    program(house).symlink_to(real)


def truncated(house: House) -> None:
    program(house).write_bytes(BUNDLED.read_bytes()[:60])


def script(house: House) -> None:
    program(house).write_text(f'#!/bin/sh\nexec {BUNDLED} "$@"\n')


TABLE = [
    Mutation("it is rebuilt", "ptoas", lambda h: other_build_id(program(h)), CHANGES),
    Mutation("it loses its Build-ID", "ptoas", lambda h: without_build_id(program(h)), CHANGES),
    Mutation("its bytes change", "", append, KEEPS),
    Mutation("it is touched", "", lambda h: os.utime(program(h), (1, 1)), KEEPS),
    Mutation("it lies elsewhere", "", at_another_place, KEEPS),
    Mutation("it lies behind a link", "", behind_a_link, KEEPS),
    Mutation("PATH has another", "", on_path, KEEPS),
    Mutation(
        "the same one is selected as the bundled", "", lambda h: h.environ.pop("PTOAS_ROOT"), KEEPS
    ),
    Mutation("it fails", "ptoas", replaced(FAILING), BYPASSES, "error: unknown operation"),
    Mutation(
        "it does not start", "ptoas", lambda h: make_unstartable(program(h).parent), BYPASSES,
        "libMissingPart.so.1: cannot open shared object file",
    ),
    Mutation(
        "it speaks another dialect", "ptoas", replaced(OF_ANOTHER_DIALECT), BYPASSES,
        "without the header of the instructions",
    ),
    Mutation("it writes nothing", "ptoas", replaced(SILENT), BYPASSES, "text without"),
    Mutation("it is cut off", "ptoas", truncated, BYPASSES, "ends inside"),
    Mutation("it is a script", "ptoas", script, BYPASSES, "no launcher that can be identified"),
    Mutation(
        "it may not be executed", "ptoas", lambda h: program(h).chmod(0o644), BYPASSES, "PTOAS_ROOT"
    ),
    Mutation("it is gone", "ptoas", lambda h: program(h).unlink(), BYPASSES, "PTOAS_ROOT"),
]  # fmt: skip


@pytest.mark.conforms("cache.88", "cache.89")
@pytest.mark.parametrize("mutation", TABLE, ids=str)
def test_a_standalone_assembler(program_house: House, mutation: Mutation) -> None:
    check(program_house, mutation)


@pytest.mark.conforms("cache.93")
def test_one_without_a_build_id_is_known_by_its_content(program_house: House) -> None:
    without_build_id(program(program_house))
    assert program_house.facts("ptoas")["ptoas.native"].startswith("sha256:")
    check(program_house, Mutation("its bytes change", "ptoas", append, CHANGES))


def test_it_is_tried_once_for_each_build(
    program_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []
    run_tool = process.run_tool

    def counted(argv: list[str], **options: Any) -> object:
        tried.append(argv[0])
        return run_tool(argv, **options)

    monkeypatch.setattr(ptoas_acceptance, "run_tool", counted)
    first = program_house.known()
    assert len(tried) == 1
    program_house.environ["PYPTO_CACHE_EPOCH"] = "another"  # so nothing is recalled as a whole
    assert "settings" in differences(first, program_house.known())
    assert len(tried) == 1
    other_build_id(program(program_house))
    program_house.known()
    assert len(tried) == 2
    program_house.environ["LD_LIBRARY_PATH"] = "/nowhere/else"  # another loader's business
    program_house.known()
    assert len(tried) == 3


def test_a_refusal_is_short_and_not_remembered(program_house: House) -> None:
    make_program(FAILING, program(program_house).parent)
    process = program_house.process()
    refused = process.identity()
    assert isinstance(refused, Unavailable)
    assert len(refused.reason) < 800
    assert str(program(program_house)) in refused.reason
    shutil.copy(BUNDLED, program(program_house))
    assert not isinstance(process.identity(), Unavailable)
