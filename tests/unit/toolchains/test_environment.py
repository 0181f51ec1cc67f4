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

# The edge: whoever else wants a variable is given a mapping.
MAY_TOUCH_THE_PROCESS = {
    "pypto/compiler/entry.py",
    "pypto/jit/decorator.py",
    "pypto/jit/live.py",
    "pypto/jit/surroundings.py",
    "pypto/runtime/host.py",
    "pypto_store/__main__.py",
}

# Mappings of variables, by how they are called; and what may be called so and be something else.
ENVIRONMENTS = re.compile(r"(?:^|_)environ$")
PERHAPS = re.compile(r"(?:^|_)(?:env|environment|tools|variables)$")
VARIABLE = re.compile(r"[A-Z][A-Z0-9_]+")

# What the standard library reads for whoever calls these.
IMPLICIT = {
    "expanduser": ("HOME",),
    "expandvars": ("*",),
    "get_exec_path": ("PATH",),
    "getpass": ("*",),
    "gettempdir": ("TMPDIR", "TEMP", "TMP"),
    "gettempdirb": ("TMPDIR", "TEMP", "TMP"),
    "home": ("HOME",),
    "which": ("PATH",),
}
# They do so where they get no directory.
TEMPORARY = {"mkdtemp", "mkstemp", "NamedTemporaryFile", "TemporaryDirectory", "TemporaryFile"}

# Functions that are given the name: their callers' constants are looked up by the other rule.
GIVEN = {"name", "variable"}

NATIVE_READ = re.compile(r"\b(?:secure_)?getenv\b")
NATIVE_NAMED = re.compile(r"\b(?:secure_)?getenv\s*\(\s*\"([A-Za-z0-9_]+)\"\s*\)")
NATIVE_OTHER = re.compile(r"\b(?:_*environ|putenv|(?:un)?setenv|clearenv|wordexp)\b")


def sources() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted(package.rglob("*.py"))


def name_of(path: Path) -> str:
    return next(str(path.relative_to(top.parent)) for top in PACKAGES if path.is_relative_to(top))


def constants(tree: ast.Module) -> dict[str, str]:
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name) and isinstance(node.value.value, str):
                    found[target.id] = node.value.value
    return found


def last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def is_environment(node: ast.expr, name: ast.expr) -> bool:
    """Whether `name` is looked up in a mapping of variables, as far as names tell."""
    called = last_name(node)
    if ENVIRONMENTS.search(called):
        return True
    text = name.value if isinstance(name, ast.Constant) else ALL_CONSTANTS.get(last_name(name))
    return bool(PERHAPS.search(called)) and bool(VARIABLE.fullmatch(str(text)))


def reads(tree: ast.Module) -> Iterator[tuple[int, ast.expr]]:
    """Line and name expression of every single variable that a module reads."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and is_environment(node.value, node.slice):
            yield node.lineno, node.slice
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            function = node.func
            lookup = function.attr in ("get", "pop", "setdefault")
            if function.attr in ("getenv", "getenvb") or (
                lookup and is_environment(function.value, node.args[0])
            ):
                yield node.lineno, node.args[0]
        elif isinstance(node, ast.Compare):
            if any(is_environment(one, node.left) for one in node.comparators):
                yield node.lineno, node.left


def implicit_reads(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of every variable that the standard library reads for a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = last_name(node.func)
            placed = any(keyword.arg == "dir" for keyword in node.keywords)
            if called in TEMPORARY and not placed:
                called = "gettempdir"
            for variable in IMPLICIT.get(called, ()):
                yield node.lineno, variable


def touches(tree: ast.Module) -> Iterator[int]:
    """The lines at which a module takes hold of the process's environment."""
    names = {"environ", "environb", "getenv", "getenvb", "putenv", "unsetenv"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in names:
            if isinstance(node.value, ast.Name) and node.value.id in ("os", "posix"):
                yield node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module in ("os", "posix"):
            if any(one.name in names or one.name == "*" for one in node.names):
                yield node.lineno
        elif isinstance(node, ast.Import):
            if any(one.name in ("os", "posix") and one.asname for one in node.names):
                yield node.lineno
        elif isinstance(node, ast.Call) and last_name(node.func) == "getattr" and node.args:
            if last_name(node.args[0]) in ("os", "posix"):
                yield node.lineno


def native_faults(text: str) -> Iterator[str]:
    """What is wrong with how a native file reads variables."""
    named = NATIVE_NAMED.findall(text)
    if len(named) != len(NATIVE_READ.findall(text)):
        yield "getenv of no literal"
    if NATIVE_OTHER.search(text):
        yield "another use of the environment than getenv"
    yield from (f"{name} is not registered" for name in named if name not in REGISTRY.classes)


ALL_CONSTANTS = {
    name: value
    for path in sources()
    for name, value in constants(ast.parse(path.read_text())).items()
}


@pytest.mark.parametrize("path", list(sources()), ids=name_of)
def test_every_read_of_a_python_file_is_registered(path: Path) -> None:
    tree = ast.parse(path.read_text())
    own = {**ALL_CONSTANTS, **constants(tree)}
    for line, name in reads(tree):
        if isinstance(name, ast.Constant):
            value = name.value
        elif isinstance(name, ast.Name) and name.id in GIVEN:
            continue
        else:
            value = own.get(last_name(name))
        assert value in REGISTRY.classes, f"{path}:{line}: {ast.unparse(name)} is not registered"
    for line, variable in implicit_reads(tree):
        assert variable in REGISTRY.classes, f"{path}:{line}: {variable} is not registered"
    if name_of(path) not in MAY_TOUCH_THE_PROCESS:
        for line in touches(tree):
            pytest.fail(f"{path}:{line}: only the edge reads the process's environment")


def test_the_edge_is_no_larger_than_it_must_be() -> None:
    touching = {name_of(path) for path in sources() if any(touches(ast.parse(path.read_text())))}
    assert touching == MAY_TOUCH_THE_PROCESS


def test_every_variable_constant_is_registered() -> None:
    named = {value for name, value in ALL_CONSTANTS.items() if name.endswith("_VARIABLE")}
    assert named
    assert named <= set(REGISTRY.classes)


def test_every_variable_of_our_own_is_registered() -> None:
    """Whatever a mapping of variables is called, our names in the sources are theirs."""
    ours = re.compile(r"(?:PYPTO|PTOAS|PTO_ISA|ASCEND)_[A-Z0-9_]+")
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                if ours.fullmatch(node.value):
                    assert node.value in REGISTRY.classes, f"{path}:{node.lineno}: {node.value}"


def test_every_read_of_a_native_file_is_registered() -> None:
    files = [
        path
        for path in sorted(NATIVE.rglob("*"))
        if path.suffix in (".c", ".cc", ".cpp", ".h", ".hpp") and "test" not in path.parts
    ]
    assert files, "native sources are not at hand"
    for path in files:
        assert not list(native_faults(path.read_text())), path


@pytest.mark.parametrize(
    "line",
    [
        "os.environ[A]",
        "os.environ.get('X_A')",
        "os.getenv('X_A')",
        "'X_A' in os.environ",
        "self._environ.pop('X_A')",
        "tool_environ['X_A']",
        "world.tools.get('X_A')",
        "env.setdefault('X_A', '')",
        "request.environment['X_A']",
    ],
)
def test_the_lint_sees_an_unregistered_read(line: str) -> None:
    ((_, name),) = reads(ast.parse(line))
    assert ast.unparse(name) in ("A", "'X_A'")
    assert not list(reads(ast.parse("tools['cxx'], environment.digest in known")))


@pytest.mark.parametrize(
    ("line", "variable"),
    [
        ("Path.home()", "HOME"),
        ("os.path.expanduser(x)", "HOME"),
        ("shutil.which(x)", "PATH"),
        ("tempfile.mkdtemp()", "TMPDIR"),
        ("TemporaryDirectory(prefix=x)", "TMPDIR"),
    ],
)
def test_the_lint_sees_what_the_standard_library_reads(line: str, variable: str) -> None:
    assert variable in {name for _, name in implicit_reads(ast.parse(line))}
    assert not list(implicit_reads(ast.parse("tempfile.mkdtemp(dir=x)")))


@pytest.mark.parametrize(
    "line",
    [
        "os.environ",
        "from os import environ",
        "from os import *",
        "import os as o",
        "getattr(os, name)",
        "os.environb",
        "posix.environ",
        "os.putenv(a, b)",
    ],
)
def test_the_lint_sees_who_takes_hold_of_the_environment(line: str) -> None:
    assert list(touches(ast.parse(line)))


@pytest.mark.parametrize(
    "text",
    [
        'getenv("X_A")',
        'std::getenv ( "X_A" )',
        'secure_getenv("X_A")',
        "getenv(name)",
        "#define READ getenv",
        'getenv("PATH") getenv(kName)',
        "extern char** environ;",
        "__environ[0]",
        'setenv("PATH", "", 1)',
        "clearenv()",
    ],
)
def test_the_lint_sees_an_unregistered_native_read(text: str) -> None:
    assert list(native_faults(text))
    assert not list(native_faults('getenv("PATH"); std::getenv("HOME")'))


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
