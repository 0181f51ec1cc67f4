"""Every ``python -m pypto_store`` line and every variable of the pages is one that there is."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest
from pypto_store.tools import command_line
from pypto_toolchains.environment import EnvironmentRegistry

ROOT = next(
    parent for parent in Path(__file__).parents if (parent / "docs" / "adr" / "README.md").exists()
)
PAGES = {
    page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8")
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
}
COMMAND = re.compile(r"\bpython -m pypto_store ([a-z]+(?: [^`\n|]*)?)")
LINES = sorted(
    (page, line)
    for page, text in PAGES.items()
    for line in COMMAND.findall(re.sub(r"^ +\w+=.*\\\n", "", text, flags=re.MULTILINE))
    if page.startswith("docs/how-to/")
)
# What names are not read by the package: those of tests, and of a build that is not the user's.
OF_TESTS = re.compile(r"PYPTO_(?:TEST|HOST)_\w+")
VARIABLE = re.compile(r"\bPYPTO_[A-Z_]*[A-Z]\b(?![_*…])")


def understood(line: str) -> str:
    words = shlex.split(line, comments=True)
    chosen = next(word for word in words if not word.startswith("-"))
    command = command_line._command(chosen)
    environ = {command_line.ROOT_VARIABLE: "/root-of-the-cache"}
    parsed = command_line._parser(chosen, command, environ).parse_args(words)
    return str(parsed.command)


@pytest.mark.parametrize(("page", "line"), LINES)
def test_the_line_is_understood(page: str, line: str) -> None:
    assert understood(line) == line.split()[0], page


def test_how_tos_show_how_entries_reach_a_fleet() -> None:
    assert {line.split()[0] for _, line in LINES} >= {"export", "import", "keygen", "pull", "push"}


def test_every_variable_is_registered() -> None:
    known = set(EnvironmentRegistry.load().classes)
    unknown = {
        (page, name)
        for page, text in PAGES.items()
        for name in VARIABLE.findall(text)
        if name not in known and not OF_TESTS.fullmatch(name)
    }
    assert unknown == set()


@pytest.mark.parametrize("line", ["push --tot", "pull --kernel", "keygen", "pusch"])
def test_a_line_with_a_mistake_is_noticed(line: str) -> None:
    with pytest.raises((SystemExit, ImportError)):
        understood(line)


def test_links_between_pages_lead_somewhere() -> None:
    broken = []
    for page, text in PAGES.items():
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, heading = target.partition("#")
            if "://" in target or target.startswith("mailto:"):
                continue
            # By the names alone: a test's files are links.
            name = os.path.normpath(f"{page}/../{path}") if path else page
            if not name.endswith(".md") or not (name in PAGES or name.startswith("docs/")):
                continue  # a page that these tests are not given, or no page
            if name not in PAGES or heading not in {"", *headings(name)}:
                broken.append((page, target))
    assert broken == []


def headings(page: str) -> set[str]:
    """The anchors of a page, as GitHub makes them."""
    found = re.findall(r"^#+ (.+)$", PAGES[page], re.MULTILINE)
    plain = (re.sub(r"[^\w\s-]", "", title.lower()) for title in found)
    return {re.sub(r"\s", "-", title.strip()) for title in plain}
