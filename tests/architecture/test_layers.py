"""Imports run one way, and only the listed facades may point back."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pypto
import pypto_store
import pypto_toolchains
import pytest

# Lowest first: a package may import what stands before it, and itself.
LAYERS = (
    "pypto_store",
    "pypto_toolchains",
    "pypto.backend",
    "pypto.ir",
    "pypto.language",
    "pypto.codegen",
    "pypto.runtime",
    "pypto.compiler",
    "pypto.jit",
    "pypto.tools",
)

# The names that a lower package offers although an upper one defines them. Each is reached by a
# module-level ``__getattr__``, so importing the lower package imports nothing of the upper one.
FACADES = {
    "pypto.language": {"pypto.jit"},
    "pypto.ir": {"pypto.compiler", "pypto.runtime"},
    "pypto.runtime": {"pypto.compiler"},
}

ROOTS = {
    "pypto": Path(pypto.__file__).parent,
    "pypto_store": Path(pypto_store.__file__).parent,
    "pypto_toolchains": Path(pypto_toolchains.__file__).parent,
}

# The runtime's native parts are reached as ``pypto._native`` and belong to no layer of Python.
NATIVE = "pypto._native"


def _modules() -> Iterator[tuple[str, Path]]:
    for root, directory in ROOTS.items():
        for path in sorted(directory.rglob("*.py")):
            relative = path.relative_to(directory).with_suffix("")
            if "_sdk" in relative.parts:
                continue
            parts = [root, *relative.parts]
            if parts[-1] == "__init__":
                parts.pop()
            yield ".".join(parts), path


MODULES = dict(_modules())


def _layer(module: str) -> str | None:
    for layer in LAYERS:
        if module == layer or module.startswith(layer + "."):
            return layer
    return None


def _in_facade_function(tree: ast.Module, node: ast.AST) -> bool:
    return any(
        isinstance(function, ast.FunctionDef)
        and function.name == "__getattr__"
        and any(inner is node for inner in ast.walk(function))
        for function in tree.body
    )


def _type_checking_blocks(tree: ast.Module) -> set[int]:
    return {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
    }


def _imports(module: str, path: Path) -> Iterator[tuple[str, bool, int]]:
    """Each imported module, whether it stands in a facade position, and its line."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = _type_checking_blocks(tree)
    is_package = path.name == "__init__.py"
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                anchor = module.split(".")
                anchor = anchor[: len(anchor) - node.level + (1 if is_package else 0)]
                base = ".".join([*anchor, *([node.module] if node.module else [])])
            names = [
                full if (full := f"{base}.{alias.name}") in MODULES or full == NATIVE else base
                for alias in node.names
            ]
        else:
            continue
        facade = id(node) in typing_only or _in_facade_function(tree, node)
        for name in names:
            yield name, facade, node.lineno


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_module_imports_only_its_own_and_lower_layers(module: str) -> None:
    own = _layer(module)
    if own is None:
        # The product's root re-exports; it stands above every layer.
        return
    for name, facade, line in _imports(module, MODULES[module]):
        if name == NATIVE or name.split(".")[0] not in ROOTS:
            continue
        target = _layer(name)
        where = f"{module}:{line} imports {name}"
        if name == "pypto" or target is None:
            pytest.fail(f"{where}: nothing inside imports from the product's root")
        if LAYERS.index(target) > LAYERS.index(own):
            allowed = module == own and facade and target in FACADES.get(own, set())
            assert allowed, f"{where}, which is a layer above {own}"


@pytest.mark.parametrize("package", sorted(FACADES))
def test_a_facade_is_used(package: str) -> None:
    path = MODULES[package]
    targets = {_layer(name) for name, facade, _ in _imports(package, path) if facade}
    assert targets >= FACADES[package], f"{package} does not point at all that it is listed for"


def test_no_package_exports_a_function_under_the_name_of_its_submodule() -> None:
    """With both, attribute access gives the function first and the module later."""
    for package, path in MODULES.items():
        if path.name != "__init__.py":
            continue
        submodules = {
            name.rsplit(".", 1)[1]
            for name in MODULES
            if name.startswith(package + ".") and name.count(".") == package.count(".") + 1
        }
        tree = ast.parse(path.read_text(encoding="utf-8"))
        exported = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if f"{node.module}.{alias.name}" not in MODULES
        }
        assert not submodules & exported, f"{package} exports {sorted(submodules & exported)}"
