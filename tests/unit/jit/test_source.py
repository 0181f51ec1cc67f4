from __future__ import annotations

import builtins
import importlib.util
import itertools
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType

import pypto.language as pl
import pytest
from pypto.ir.nodes import FunctionKind
from pypto.jit.declaration import Declaration, Declared, enclosing_values
from pypto.jit.module_text import ModuleTexts
from pypto.jit.parsed import SourceChanged, SourceMissing, compiles_to, parse
from pypto.jit.snapshot import SourceSnapshot
from pypto.jit.source import SourceCapture

_NUMBER = itertools.count()

Load = Callable[..., ModuleType]


class Mark(Declared):
    """Stands for what pl.jit returns."""

    def __init__(self, declaration: Declaration) -> None:
        self.declaration = declaration


def marker(texts: ModuleTexts) -> Callable[[FunctionType], Mark]:
    def mark(function: FunctionType) -> Mark:
        text = texts.of(function.__code__, function.__globals__)
        frame = sys._getframe(1)
        return Mark(
            Declaration(
                function,
                FunctionKind.ORCHESTRATION,
                None,
                True,
                text,
                enclosing_values(function, text, frame),
            )
        )

    return mark


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    """Writes a module and imports it; `mark` in it declares a function."""
    loaded: list[str] = []

    def importing(text: str, *, directory: str = "one", name: str = "kernels") -> ModuleType:
        path = tmp_path / directory / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        module.__dict__["mark"] = marker(ModuleTexts())
        sys.modules[name] = module
        loaded.append(name)
        sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
        try:
            # Past the bytecode cache: same second, same size, another text.
            exec(compile(path.read_bytes(), str(path), "exec", dont_inherit=True), module.__dict__)
        finally:
            sys.dont_write_bytecode = before
        return module

    yield importing
    for name in loaded:
        sys.modules.pop(name, None)


def snapshot(mark: Mark) -> SourceSnapshot:
    return SourceCapture(mark.declaration).take()


def digest(mark: Mark) -> str:
    taken = snapshot(mark)
    assert taken.digest is not None, taken.bypass
    return taken.digest.hex


BASE = """
import math
import pypto.language as pl
N = 4
@mark
def helper(x):
    return pl.add(x, 1)
@mark
def kernel(x, out):
    # a comment
    y: pl.Tile[[N, N], pl.FP32] = helper(x)
    return pl.store(y, [0, 0], out)
"""


@pytest.mark.conforms("language.158")
def test_place_and_time_of_the_file_do_not_count(load: Load) -> None:
    first = digest(load(BASE).kernel)
    moved = load("# more\n# lines\n\nOTHER = 1\n" + BASE, directory="two")
    os.utime(moved.__file__ or "", (1, 1))
    assert digest(moved.kernel) == first


@pytest.mark.conforms("language.158")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("N = 4", "N = 5"),
        ("N = 4", "N = 4.0"),
        ("N = 4", "N = True"),
        ("N = 4", "N = [4]"),
        ("N = 4", "from pypto.language import FP32 as N"),
        ("pl.add(x, 1)", "pl.add(x, 2)"),
        ("def helper(x)", "def helper(x, y=1)"),
        ("# a comment", "# another"),
        ("return pl.store", "return  pl.store"),
        ("helper(x)\n    return pl.store", "pl.exp(x)\n    return pl.store"),
        ("N = 4\n", ""),
    ],
)
def test_what_a_kernel_uses_counts(load: Load, old: str, new: str) -> None:
    assert old in BASE
    before = digest(load(BASE).kernel)
    assert digest(load(BASE.replace(old, new, 1)).kernel) != before


@pytest.mark.conforms("language.158")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("import math", "import math\nUNUSED = 1"),
        ("N = 4", "N = 2 + 2"),
        (
            "    return pl.store(y, [0, 0], out)\n",
            "    return pl.store(y, [0, 0], out)\n\n\n# end\n",
        ),
    ],
)
def test_what_it_does_not_use_does_not_count(load: Load, old: str, new: str) -> None:
    before = digest(load(BASE).kernel)
    assert digest(load(BASE.replace(old, new, 1)).kernel) == before


@pytest.mark.conforms("language.158")
@pytest.mark.parametrize("pair", [("0.0", "-0.0"), ("1", "True"), ("1", "1.0"), ("(1,)", "[1]")])
def test_values_are_typed(load: Load, pair: tuple[str, str]) -> None:
    text = "C = {}\n@mark\ndef kernel(x):\n    return x + C\n"
    assert len({digest(load(text.format(value)).kernel) for value in pair}) == 2


def test_attributes_are_followed_and_nothing_beside_them(load: Load, tmp_path: Path) -> None:
    text = (
        "class cfg:\n    ROWS = {rows}\n    COLS = {cols}\n"
        "@mark\ndef kernel(x):\n    return x + cfg.ROWS\n"
    )
    first = digest(load(text.format(rows=1, cols=1)).kernel)
    assert digest(load(text.format(rows=1, cols=2)).kernel) == first
    assert digest(load(text.format(rows=2, cols=1)).kernel) != first


@pytest.mark.conforms("language.158")
def test_closure_values_count(load: Load) -> None:
    text = "def make(n):\n    @mark\n    def kernel(x):\n        return x + n\n    return kernel\n"
    module = load(text)
    assert digest(module.make(1)) == digest(module.make(1))
    assert digest(module.make(1)) != digest(module.make(2))
    taken = snapshot(module.make(3))
    assert taken.entry.namespace == {"n": 3}


def test_enclosing_names_of_annotations_count(load: Load) -> None:
    text = (
        "from __future__ import annotations\nimport pypto.language as pl\n"
        "def make(n):\n    @mark\n    def kernel(x: pl.Tensor[[n, n], pl.FP32]):\n"
        "        return x\n    return kernel\n"
    )
    module = load(text)
    assert digest(module.make(1)) != digest(module.make(2))
    assert snapshot(module.make(3)).entry.namespace["n"] == 3


def test_names_in_string_annotations_count(load: Load) -> None:
    text = (
        "import pypto.language as pl\nN = {}\n"
        '@mark\ndef kernel(x: "pl.Tensor[[N, N], pl.FP32]"):\n    return x\n'
    )
    assert digest(load(text.format(1)).kernel) != digest(load(text.format(2)).kernel)


def test_shadowing_a_builtin_counts(load: Load) -> None:
    text = "@mark\ndef kernel(x):\n    return min(x, 1)\n"
    assert digest(load(text).kernel) != digest(load("min = 3\n" + text).kernel)


def test_guards_hold_until_something_changes(load: Load) -> None:
    module = load(BASE + "\nL = [1]\n@mark\ndef other(x):\n    return x + L[0]\n")
    taken = snapshot(module.kernel)
    assert taken.guards.hold()
    module.N = 5
    assert not taken.guards.hold()
    module.N = 4
    assert taken.guards.hold()
    module.helper = module.kernel
    assert not taken.guards.hold()
    listed = snapshot(module.other)
    module.L.append(2)
    assert not listed.guards.hold()
    module.L.pop()
    assert listed.guards.hold()


def test_guards_compare_what_an_attribute_makes_anew(load: Load) -> None:
    module = load(
        "class Config:\n    base = 1.5\n    @property\n    def scale(self):\n"
        "        if self.base < 0:\n            raise RuntimeError\n"
        "        return self.base * 2\n"
        "config = Config()\nZERO = 0.0\n@mark\ndef kernel(x):\n    return x * config.scale + ZERO\n"
    )
    taken = snapshot(module.kernel)
    assert module.config.scale is not module.config.scale
    assert taken.guards.hold()
    for base in (2.5, -1.0):
        module.config.base = base
        assert not taken.guards.hold()
    module.config.base = 1.5
    assert taken.guards.hold()
    for zero in (-0.0, 0, False):
        module.ZERO = zero
        assert not taken.guards.hold()


def test_guards_notice_a_name_that_appears_or_goes(load: Load) -> None:
    module = load("@mark\ndef kernel(x):\n    return min(x, LATER)\n")
    taken = snapshot(module.kernel)
    assert "LATER" not in taken.entry.namespace
    assert taken.guards.hold()
    module.LATER = 1
    assert not taken.guards.hold()
    del module.LATER
    module.min = 3
    assert not taken.guards.hold()


def test_defaults_count_by_what_they_are(load: Load) -> None:
    module = load("N = 1\n@mark\ndef kernel(x, n=N, *, m=(1, [2])):\n    return x + n\n")
    function = module.kernel.declaration.function
    taken = snapshot(module.kernel)
    assert taken.defaults == {"n": 1, "m": (1, [2])}
    for change in (
        lambda: function.__kwdefaults__["m"][1].append(3),
        lambda: setattr(function, "__defaults__", (True,)),
        lambda: setattr(function, "__kwdefaults__", {"m": 4}),
    ):
        change()
        assert not taken.guards.hold()
        changed = snapshot(module.kernel)
        assert changed.digest != taken.digest
        assert changed.defaults != {"n": 1, "m": (1, [2])}
        taken = changed


def test_guards_notice_another_builtin(load: Load) -> None:
    module = load("@mark\ndef kernel(x):\n    return min(x, 1)\n")
    # Of its own, because whoever reports a failure needs the interpreter's.
    names = module.__dict__["__builtins__"] = dict(vars(builtins))
    taken = snapshot(module.kernel)
    assert taken.entry.namespace == {"min": min}
    assert taken.guards.hold()
    names["min"] = max
    assert not taken.guards.hold()
    changed = snapshot(module.kernel)
    assert changed.digest != taken.digest
    del names["min"]
    assert not changed.guards.hold()
    assert snapshot(module.kernel).entry.namespace == {}


@pytest.mark.parametrize(
    "value",
    ["1000.5", "10 ** 20", "'a' * 40", "b'a' * 40", "(1.5, ('a', 2.5))", "float('nan')", "2j"],
)
def test_rebinding_an_equal_value_is_no_change(load: Load, value: str) -> None:
    module = load(f"C = {value}\n@mark\ndef kernel(x):\n    return x + C\n")
    taken = snapshot(module.kernel)
    module.C = eval(value)
    assert taken.guards.hold()


def test_guards_notice_a_rebound_cell(load: Load) -> None:
    module = load(
        "def make():\n    n = 1\n    def change(v):\n        nonlocal n\n        n = v\n"
        "    @mark\n    def kernel(x):\n        return x + n\n    return kernel, change\n"
    )
    kernel, change = module.make()
    taken = snapshot(kernel)
    assert taken.guards.hold()
    change(2)
    assert not taken.guards.hold()


def test_what_has_no_identity_is_a_bypass_that_names_it(load: Load) -> None:
    module = load("THING = object()\n@mark\ndef kernel(x):\n    return x + THING\n")
    taken = snapshot(module.kernel)
    assert taken.digest is None
    assert taken.bypass is not None
    assert "THING" in taken.bypass


def test_helpers_are_sources_in_the_namespace_even_recursively(load: Load) -> None:
    module = load("@mark\ndef one(x):\n    return two(x)\n@mark\ndef two(x):\n    return one(x)\n")
    taken = snapshot(module.one)
    two = taken.entry.namespace["two"]
    assert two.unit == "kernels:two"  # type: ignore[attr-defined]
    assert two.namespace["one"] is taken.entry  # type: ignore[attr-defined]
    assert set(taken.source_map()) == {"kernels:one", "kernels:two"}


def test_positions_are_the_files_own(load: Load) -> None:
    module = load(
        "\n\ndef make():\n    @mark\n    def kernel(x):\n        return x\n    return kernel\n"
    )
    entry = snapshot(module.make()).entry
    statement = entry.tree.body[0]
    assert entry.first_line == 5
    assert entry.user_position(statement) == (6, 9)
    assert entry.source_line(statement) == "        return x"
    assert entry.span(statement).line == 2


TEXTS = {
    "import": "import os as pl\n@mark\ndef kernel(x):\n    return pl.sep(pl.abc(x))\n",
    "plain": "@mark\ndef kernel(x):\n    return x\n",
    "decorator lines": "@mark\n# between\n\ndef kernel(\n    x,\n    y=1,\n):\n    return x\n",
    "low string": '@mark\ndef kernel(x):\n    """doc\nlow\n"""\n    return x\n',
    "low string last": '@mark\ndef kernel(x):\n    return """a\nlow\n"""\n',
    "low bracket": "@mark\ndef kernel(x):\n    return (x,\n1,\n)\n",
    "trailing low": '@mark\ndef kernel(x):\n    x\n    """never\nrecorded"""\n',
    "low comment": "@mark\ndef kernel(x):\n    y = 1\n# low\n    return y\nAFTER = 1\n",
    "one line": "@mark\ndef kernel(x): return x\nAFTER = 1\n",
    "last in file": "@mark\ndef kernel(x):\n    return x",
    "continued": "@mark\ndef kernel(x):\n    return x + \\\n1\nAFTER = 2\n",
    "tabs": "if True:\n\t@mark\n\tdef kernel(x):\n\t\treturn x\n",
    "form feed": "@mark\ndef kernel(x):\n    y = 'a\x0cb'\n    return y\n",
    "crlf": "@mark\r\ndef kernel(x):\r\n    return x\r\n",
    "coding": "# -*- coding: latin-1 -*-\n@mark\ndef kernel(x):\n    return 'caf\u00e9'\n",
    "nested scope": "@mark\ndef kernel(x):\n    return [i for i in x if (lambda: i)()]\n",
    "future": "from __future__ import annotations\n@mark\ndef kernel(x: Q) -> R:\n    return x\n",
}


@pytest.mark.parametrize("name", TEXTS)
def test_every_shape_of_text_is_cut_and_compiles_to_what_was_imported(
    load: Load, name: str
) -> None:
    text = TEXTS[name]
    encoding = "latin-1" if name == "coding" else "utf-8"
    module = load("")
    path = Path(module.__file__ or "")
    path.write_bytes(text.encode(encoding))
    exec(compile(path.read_bytes(), str(path), "exec", dont_inherit=True), module.__dict__)
    declaration = module.kernel.declaration
    parsed = parse(declaration)
    assert parsed.tree.name == "kernel"
    assert "AFTER" not in parsed.text.decode()
    assert compiles_to(declaration.text, declaration.function.__code__)


def test_another_captured_name_at_the_same_place_is_another_function(load: Load) -> None:
    text = (
        "def make(one, two):\n    @mark\n    def kernel(x):\n        return x + {}\n"
        "    return kernel\n"
    )
    module = load(text.format("one"))
    made = module.make(1, 2).declaration
    path = Path(module.__file__ or "")
    path.write_text(text.format("two"))
    edited = ModuleTexts().of(made.function.__code__, {})
    assert edited is not None
    # Names of captured variables are in no instruction.
    assert not compiles_to(edited, made.function.__code__)


def test_a_nested_function_with_captures_compiles_to_what_was_imported(load: Load) -> None:
    module = load(
        "def make(a, b):\n    @mark\n    def kernel(x):\n        return x + b + a\n"
        "    return kernel\n"
    )
    declaration = module.make(1, 2).declaration
    assert compiles_to(declaration.text, declaration.function.__code__)


def test_an_edited_file_is_noticed_at_the_latest_on_a_miss(load: Load) -> None:
    module = load("@mark\ndef kernel(x):\n    return x + 1\n")
    declaration = module.kernel.declaration
    path = Path(module.__file__ or "")
    path.write_text("@mark\ndef kernel(x):\n    return x + 2\n")
    text = ModuleTexts().of(declaration.function.__code__, {})
    edited = Declaration(
        declaration.function, declaration.kind, None, True, text, declaration.enclosing
    )
    mismatch = SourceCapture(edited).take().mismatch()
    assert mismatch is not None
    assert "changed since import" in mismatch


def test_another_function_at_the_place_is_never_taken_for_it(load: Load) -> None:
    module = load("@mark\ndef kernel(x):\n    return x + 1\n")
    declaration = module.kernel.declaration
    path = Path(module.__file__ or "")
    path.write_text("@mark\ndef strange(x):\n    return x + 1\n")
    text = ModuleTexts().of(declaration.function.__code__, {})
    edited = Declaration(
        declaration.function, declaration.kind, None, True, text, declaration.enclosing
    )
    with pytest.raises(SourceChanged, match="kernel"):
        parse(edited)


@pytest.mark.conforms("language.36")
def test_without_a_text_the_kernel_is_named() -> None:
    namespace: dict[str, object] = {"mark": marker(ModuleTexts())}
    exec("@mark\ndef kernel(x):\n    return x\n", namespace)
    made = namespace["kernel"]
    assert isinstance(made, Mark)
    with pytest.raises(SourceMissing, match="kernel"):
        snapshot(made)


def test_a_file_is_read_once_until_it_changes(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    module = load(BASE)
    code = module.kernel.declaration.function.__code__
    texts = ModuleTexts()
    first = texts.of(code, {})
    assert texts.of(code, {}) is first
    path = Path(module.__file__ or "")
    path.write_text(BASE + "# more\n")
    assert texts.of(code, {}) is not first


LANGUAGE = """
import pypto.language as pl
@mark
def kernel(x, out):
    return pl.store(pl.tile.reshape(pl.cast(x, pl.FP32), pl.FACTOR), [0, 0], out)
"""


@pytest.mark.parametrize(
    ("owner", "name", "new"),
    [
        (pl, "FACTOR", 3.0),
        (pl, "FACTOR", [2.0]),
        (pl, "store", pl.load),
        (pl, "FP32", pl.FP16),
        (pl.tile, "reshape", pl.load),
        (pl, "tile", ModuleType("tile")),
    ],
)
def test_what_somebody_sets_on_the_language_is_part_of_the_source(
    load: Load, monkeypatch: pytest.MonkeyPatch, owner: ModuleType, name: str, new: object
) -> None:
    monkeypatch.setattr(pl, "FACTOR", 2.0, raising=False)
    kernel = load(LANGUAGE).kernel
    taken = snapshot(kernel)
    assert taken.digest is not None, taken.bypass
    with monkeypatch.context() as changed:
        changed.setattr(owner, name, new)
        assert not taken.guards.hold()
        assert digest(kernel) != taken.digest.hex
    assert taken.guards.hold()
    assert digest(kernel) == taken.digest.hex


def test_a_helper_that_is_set_on_the_language_counts_by_its_text(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    digests = []
    for factor in (2, 3):
        monkeypatch.undo()
        module = load(
            f"""
import pypto.language as pl
@mark
def helper(x):
    return pl.mul(x, {factor})
@mark
def kernel(x):
    return pl.helper(x)
"""
        )
        monkeypatch.setattr(pl, "helper", module.helper, raising=False)
        digests.append(digest(module.kernel))
    assert digests[0] != digests[1]
