"""The product's own part of an identity: sources, templates, extension, interpreter, SDK, pin."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from mutations import House, Mutation, Outcome, append, check, other_build_id, this_python

CHANGES, KEEPS, BYPASSES, CAUGHT = Outcome

Edit = Callable[[House], object]


def create(path: str, text: str = "") -> Edit:
    """Make a file below the packages."""

    def edit(house: House) -> None:
        (house.site / path).parent.mkdir(exist_ok=True)
        (house.site / path).write_text(text)

    return edit


def remove(path: str) -> Edit:
    """Remove a file of the packages."""
    return lambda house: (house.site / path).unlink()


def rename(path: str, name: str) -> Edit:
    """Give a file of the packages another name."""
    return lambda house: (house.site / path).rename((house.site / path).with_name(name))


def interpreter(**fields: str) -> Edit:
    """Another interpreter runs the product."""

    def edit(house: House) -> None:
        house.interpreter = dataclasses.replace(house.interpreter, **fields)

    return edit


def copied_interpreter(house: House, name: str, change: Callable[[Path], object]) -> None:
    """The interpreter at another path, changed there."""
    copy = house.top / name / "python3"
    copy.parent.mkdir()
    shutil.copy(this_python(), copy)
    change(copy)
    house.interpreter = dataclasses.replace(house.interpreter, executable=str(copy))


def linked_interpreter(house: House) -> None:
    """The same interpreter, started through a link as virtual environments have it."""
    link = house.top / "venv-python"
    link.symlink_to(this_python())
    house.interpreter = dataclasses.replace(house.interpreter, executable=str(link))


def touch(house: House) -> None:
    os.utime(house.package / "__init__.py", (1, 1))


def script_for_extension(house: House) -> None:
    house.native.write_text("not native")


def move(house: House) -> None:
    """The whole installation lies elsewhere, as another checkout of it does."""
    moved = house.top / "moved"
    house.site.rename(moved)
    house.site = moved
    house.package = moved / "pypto"
    house.native = house.package / "_native.so"
    house.sdk = house.package / "_sdk"


PYPTO = [
    Mutation("a source is edited", "pypto", append("pypto/language/op.py"), CHANGES),
    Mutation("a source of the store is edited", "pypto", append("pypto_store/key.py"), CHANGES),
    Mutation(
        "a source of the toolchains is edited", "pypto",
        append("pypto_toolchains/search.py"), CHANGES,
    ),
    Mutation(
        "what code generation writes is edited", "pypto",
        append("pypto/codegen/kernel_wrapper.py"), CHANGES,
    ),
    Mutation("a source is added", "pypto", create("pypto/ir/more.py"), CHANGES),
    Mutation("a subpackage is added", "pypto", create("pypto/more/__init__.py"), CHANGES),
    Mutation("a source is removed", "pypto", remove("pypto/jit/stat.py"), CHANGES),
    Mutation(
        "a source has another name", "pypto", rename("pypto/jit/stat.py", "stats.py"), CHANGES
    ),
    Mutation("a template is added", "pypto", create("pypto/codegen/kernel.tmpl"), CHANGES),
    Mutation("data is edited", "pypto", append("pypto_toolchains/environment.json"), CHANGES),
    Mutation("the extension is rebuilt", "pypto", lambda h: other_build_id(h.native), CHANGES),
    Mutation("another Python version", "pypto", interpreter(version="3.99"), CHANGES),
    Mutation("another Python ABI", "pypto", interpreter(abi="cpython-399 .so"), CHANGES),
    Mutation(
        "the interpreter is moved", "pypto",
        lambda h: copied_interpreter(h, "other", lambda path: None), CHANGES,
    ),
    Mutation("the interpreter is linked to", "", linked_interpreter, KEEPS),
    Mutation("bytecode is written", "", create("pypto/__pycache__/x.py"), KEEPS),
    Mutation("a note lies beside the sources", "", create("pypto/notes.txt"), KEEPS),
    Mutation("a source is touched", "", touch, KEEPS),
    Mutation(
        "distribution metadata says another version", "",
        create("pypto-9.dist-info/METADATA", "Name: pypto\nVersion: 9\n"), KEEPS,
    ),
    Mutation("the extension is gone", "pypto", lambda h: h.native.unlink(), BYPASSES, "_native.so"),
    Mutation("the extension is a script", "pypto", script_for_extension, BYPASSES, "ELF"),
    Mutation("Python is embedded", "pypto", interpreter(executable=""), BYPASSES, "embedded"),
    Mutation(
        "the interpreter is a script", "pypto",
        lambda h: copied_interpreter(h, "script", lambda path: path.write_text("#!/bin/sh\n")),
        BYPASSES, "ELF",
    ),
]  # fmt: skip


@pytest.mark.conforms("cache.84")
@pytest.mark.parametrize("mutation", PYPTO, ids=str)
def test_the_product(house: House, mutation: Mutation) -> None:
    check(house, mutation)


@pytest.mark.conforms("cache.84")
def test_a_rebuilt_interpreter(house: House) -> None:
    copied_interpreter(house, "one", lambda path: None)
    rebuilt = Mutation(
        "it is rebuilt in place",
        "pypto",
        lambda h: other_content(Path(h.interpreter.executable)),
        CHANGES,
    )
    check(house, rebuilt)


def other_content(path: Path) -> None:
    """Another build of a native file, which may have no Build-ID to tell it by."""
    try:
        other_build_id(path)
    except AssertionError:
        path.write_bytes(path.read_bytes() + b"\n")


def test_the_same_installation_elsewhere(house: House) -> None:
    """Where the product lies is no part of what it is."""
    check(house, Mutation("it is moved", "", move, KEEPS))
