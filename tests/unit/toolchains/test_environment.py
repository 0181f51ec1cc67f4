"""Every variable that the product reads is registered, with a class and a reason."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pypto
import pypto_store
import pypto_toolchains
import pytest
from pypto_toolchains.environment import EnvironmentRegistry, VariableClass

REGISTRY = EnvironmentRegistry.load()
PACKAGES = [Path(str(module.__file__)).parent for module in (pypto, pypto_store, pypto_toolchains)]
NATIVE = Path(__file__).parents[3] / "native"

_GETENV = re.compile(r"\b(?:secure_)?getenv\s*\(\s*\"([A-Za-z0-9_]+)\"")
_ANY_GETENV = re.compile(r"\b(?:secure_)?getenv\s*\(")


def sources() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted(package.rglob("*.py"))


def constants(tree: ast.Module) -> dict[str, str]:
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name) and isinstance(node.value.value, str):
                    found[target.id] = node.value.value
    return found


def is_environment(node: ast.expr) -> bool:
    """Whether an expression is called `environ`, alone or as an attribute."""
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name in ("environ", "_environ")


def reads(path: Path) -> Iterator[tuple[int, ast.expr]]:
    """Line and name expression of every single variable that a file reads."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Subscript) and is_environment(node.value):
            yield node.lineno, node.slice
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            function = node.func
            lookup = function.attr in ("get", "pop", "setdefault")
            if function.attr in ("getenv", "getenvb") or (
                lookup and is_environment(function.value)
            ):
                yield node.lineno, node.args[0]
        elif isinstance(node, ast.Compare) and any(map(is_environment, node.comparators)):
            yield node.lineno, node.left


ALL_CONSTANTS = {
    name: value
    for path in sources()
    for name, value in constants(ast.parse(path.read_text())).items()
}
# Functions that are given the name: their callers' constants are looked up by the other rule.
GIVEN = {"name", "variable"}


@pytest.mark.parametrize("path", list(sources()), ids=lambda path: path.name)
def test_every_read_of_a_python_file_is_registered(path: Path) -> None:
    own = {**ALL_CONSTANTS, **constants(ast.parse(path.read_text()))}
    for line, name in reads(path):
        if isinstance(name, ast.Constant):
            value = name.value
        elif isinstance(name, ast.Name) and name.id in GIVEN:
            continue
        else:
            identifier = name.attr if isinstance(name, ast.Attribute) else getattr(name, "id", "")
            value = own.get(identifier)
        assert value in REGISTRY.classes, f"{path}:{line}: {ast.unparse(name)} is not registered"


def test_every_variable_constant_is_registered() -> None:
    named = {value for name, value in ALL_CONSTANTS.items() if name.endswith("_VARIABLE")}
    assert named
    assert named <= set(REGISTRY.classes)


def test_every_read_of_a_native_file_is_registered() -> None:
    if not NATIVE.is_dir():
        pytest.skip("native sources are not at hand")
    for path in sorted(NATIVE.rglob("*")):
        if path.suffix not in (".cc", ".cpp", ".h", ".hpp") or "test" in path.parts:
            continue
        text = path.read_text()
        named = _GETENV.findall(text)
        assert len(named) == len(_ANY_GETENV.findall(text)), f"{path}: getenv of no literal"
        assert set(named) <= set(REGISTRY.classes), path


def test_the_lint_sees_an_unregistered_read(tmp_path: Path) -> None:
    file = tmp_path / "reader.py"
    file.write_text(
        "import os\nA = 'X_A'\nos.environ[A]\nos.environ.get('X_B')\nos.getenv('X_C')\n"
        "'X_D' in os.environ\n"
    )
    assert sorted(ast.unparse(name) for _, name in reads(file)) == [
        "'X_B'",
        "'X_C'",
        "'X_D'",
        "A",
    ]


def test_malformed_registries_are_refused() -> None:
    row = {"class": "semantic", "reason": "r"}
    good = {"schema": 1, "variables": {"A": row}}
    assert EnvironmentRegistry.parse(good).classes == {"A": VariableClass.SEMANTIC}
    for bad in (
        {**good, "schema": 2},
        {"schema": 1, "variables": {"A": {"class": "semantic"}}},
        {"schema": 1, "variables": {"A": {"class": "semantic", "reason": ""}}},
        {"schema": 1, "variables": {"A": {"class": "other", "reason": "r"}}},
    ):
        with pytest.raises(ValueError, match=r"environment\.json"):
            EnvironmentRegistry.parse(bad)
