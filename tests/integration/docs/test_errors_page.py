"""The page of errors names every error that reaches a user, and none that there is not."""

from __future__ import annotations

import builtins
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pypto
import pypto_store
import pypto_toolchains
import pytest

PAGE = Path(__file__).parents[3] / "docs/reference/errors.md"

# What becomes of errors of the product that no caller sees.
INTERNAL = {
    "ExtraSourceError": "a bypass, with its text as the reason",
    "IrTypeError": "an InvalidOperationError at the user's line, or a VerifyError",
    "NotComparable": "an answer of the command verify",
    "NotCompleted": "a private build",
    "StaleFacts": "the request is made again without what was remembered",
    "StoredFileLost": "a private build",
    "Undecodable": "evidence is not shown",
    "Unidentifiable": "a bypass, with its text as the reason",
}

_ROW = re.compile(r"^\| (`[^|]*) \|", re.MULTILINE)
_NAME = re.compile(r"`([\w.]+)`")


def _classes(package: object) -> Iterator[type[BaseException]]:
    path, name = package.__path__, package.__name__  # type: ignore[attr-defined]
    for found in pkgutil.walk_packages(path, f"{name}."):
        if "_sdk" in found.name or found.name.endswith("__main__"):
            continue
        try:
            module = importlib.import_module(found.name)
        except ImportError:  # needs a package that is optional
            continue
        for value in vars(module).values():
            if (
                inspect.isclass(value)
                and issubclass(value, BaseException)
                and value.__module__ == found.name
            ):
                yield value


@pytest.fixture(scope="module")
def classes() -> dict[str, type[BaseException]]:
    packages = (pypto, pypto_toolchains, pypto_store)
    return {cls.__name__: cls for package in packages for cls in _classes(package)}


def _found(classes: dict[str, type[BaseException]], name: str) -> type[BaseException]:
    found = classes.get(name) or getattr(builtins, name, None)
    assert found is not None, f"there is no class {name}"
    return found


@pytest.fixture(scope="module")
def text() -> str:
    return PAGE.read_text(encoding="utf-8")


def test_every_error_of_the_product_is_on_the_page(
    classes: dict[str, type[BaseException]], text: str
) -> None:
    own = {n for n, c in classes.items() if c.__module__.startswith("pypto.") and n[0] != "_"}
    assert {"ParserError", "KernelFault", "DamagedProgram", "StructuralDifference"} <= own
    named = {name.rpartition(".")[2] for name in _NAME.findall(text)}
    assert own - named - set(INTERNAL) == set()
    assert set(INTERNAL) - own == set(), "no such class"
    assert set(INTERNAL) & named == set(), "on the page, though nobody sees it"


def test_every_class_on_the_page_is_one(classes: dict[str, type[BaseException]], text: str) -> None:
    rows = [name for row in _ROW.findall(text) for name in _NAME.findall(row)]
    assert len(rows) > 30
    for name in rows:
        module, _, short = name.rpartition(".")
        found = _found(classes, short)
        assert issubclass(found, BaseException), name
        if module.startswith("pypto"):
            assert getattr(importlib.import_module(module), short) is found, name
        else:
            assert not module or found.__module__.endswith(f".{module}"), name


def test_what_a_class_is_said_to_be_it_is(
    classes: dict[str, type[BaseException]], text: str
) -> None:
    said = re.findall(r"`([\w.]+)`, an? `(\w+)`(?: and an? `(\w+)`)?", text)
    said += [(name, base, "") for name, base in re.findall(r"`(\w+)` is an? `(\w+)`", text)]
    assert len(said) > 12
    for name, *bases in said:
        for base in filter(None, bases):
            cls = _found(classes, name.rpartition(".")[2])
            assert issubclass(cls, _found(classes, base)), (name, base)
