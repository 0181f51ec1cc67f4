"""Every reason for a bypass that the code can give is told in the page that people are sent to."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pypto.jit
import pypto.language
import pypto_toolchains
import pytest

ROOT = next(
    parent for parent in Path(__file__).parents if (parent / "docs" / "adr" / "README.md").exists()
)
PAGE = ROOT / "docs" / "how-to" / "my-build-is-not-cached.md"
GAP = "…"

# What is made with a reason, and which argument that is.
MADE_WITH_A_REASON = {
    "AssemblerUnknown": 0,
    "ClosureUnknown": 0,
    "DescriptionError": 0,
    "ElfUnreadable": 0,
    "ExtraSourceError": 0,
    "InterpreterUnknown": 0,
    "InventoryError": 0,
    "LoaderCacheUnreadable": 0,
    "NoCleanCheckout": 0,
    "PtoasNotFound": 0,
    "ResourcesUnknown": 0,
    "SdkUnknown": 0,
    "SourceChanged": 0,
    "SourceMissing": 0,
    "StartupUnknown": 0,
    "Unavailable": 1,
    "Unidentifiable": 0,
    "UnknownLauncher": 0,
    "WheelUnknown": 0,
    "_Unpackaged": 0,
}
# Functions that give one.
GIVE_A_REASON = {
    "_changed",
    "_moved",
    "_other_assembler",
    "changed_since_built",
    "mismatch",
    "recheck",
    "refusal",
    "validate",
}


def _says_something(text: str) -> bool:
    """Whether it is more than a component's name before another reason."""
    return len(re.findall(r"[a-z]", re.sub(r"^[a-z_]+: ", "", text))) >= 6


def _text(node: ast.expr, constants: Mapping[str, str]) -> str | None:
    """A text with a gap for whatever is put into it; None for what is no text at all."""
    match node:
        case ast.Name(name):
            return constants.get(name)
        case ast.Constant(str(value)):
            return value
        case ast.JoinedStr(values):
            return "".join(
                str(part.value) if isinstance(part, ast.Constant) else GAP for part in values
            )
        case ast.BinOp(left, ast.Add(), right):
            one, other = _text(left, constants), _text(right, constants)
            return None if one is None and other is None else (one or GAP) + (other or GAP)
    return None


def _constants(tree: ast.Module) -> dict[str, str]:
    """The texts that a module gives names to."""
    return {
        node.targets[0].id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    }


def _expressions(tree: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            if name in MADE_WITH_A_REASON and len(node.args) > MADE_WITH_A_REASON[name]:
                yield node.args[MADE_WITH_A_REASON[name]]
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "self._bypass":
            yield node.value
        if isinstance(node, ast.FunctionDef) and node.name in GIVE_A_REASON:
            for inner in ast.walk(node):
                if isinstance(inner, ast.Return) and inner.value is not None:
                    both = isinstance(inner.value, ast.IfExp)
                    yield from [inner.value.body, inner.value.orelse] if both else [inner.value]


def _reasons() -> dict[str, str]:
    """Where each reason of the code is, by the reason."""
    files = [
        *Path(str(pypto_toolchains.__file__)).parent.glob("*.py"),
        *Path(str(pypto.jit.__file__)).parent.glob("*.py"),
        Path(str(pypto.language.__file__)).parent / "extern_package.py",
    ]
    found = {}
    for file in files:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        constants = _constants(tree)
        for expression in _expressions(tree):
            text = _text(expression, constants)
            if text is not None and _says_something(text):
                found[text] = f"{file.name}:{expression.lineno}"
    return found


def _told() -> list[str]:
    """The reasons of the page: what its tables' first columns quote."""
    page = PAGE.read_text(encoding="utf-8").partition("## Reasons of a bypass")[2]
    rows = re.findall(r"^\| (`.*?) \| ", page, re.MULTILINE)
    return [text for row in rows for text in re.findall(r"`([^`]+)`", row)]


def _matches(told: str, reason: str) -> bool:
    pattern = ".*".join(map(re.escape, told.split(GAP)))
    return re.fullmatch(pattern, reason, re.DOTALL) is not None


def test_every_reason_of_the_code_is_told() -> None:
    told = _told()
    missing = {
        reason: place
        for reason, place in _reasons().items()
        if not any(_matches(pattern, reason) for pattern in told)
    }
    assert missing == {}, f"add these to {PAGE.name}"


def test_every_reason_of_the_page_is_one_of_the_code() -> None:
    reasons = _reasons()
    stale = [told for told in _told() if not any(_matches(told, reason) for reason in reasons)]
    assert stale == [], f"remove these from {PAGE.name}"


@pytest.mark.parametrize(
    "reason", ["it frobs the … of …", "no C++ compiler … anywhere", "a value is nested"]
)
def test_what_is_not_told_is_noticed(reason: str) -> None:
    assert not any(_matches(pattern, reason) for pattern in _told())


def test_reasons_are_found_in_the_code() -> None:
    reasons = _reasons()
    assert len(reasons) > 80
    assert "no C++ compiler … on PATH; install it" in reasons
    assert "an extra source changed during the build" in reasons
