"""Every documented ``python -m pypto.jit`` line is one that the command understands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from pypto.jit.__main__ import _parsed

ROOT = next(
    parent for parent in Path(__file__).parents if (parent / "docs" / "adr" / "README.md").exists()
)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINES = [
    (page.relative_to(ROOT).as_posix(), line)
    for page in PAGES
    for line in re.findall(
        r"^    (?:\w+=\S+ )*python -m pypto\.jit (.+)$",
        page.read_text(encoding="utf-8").replace("\\\n", ""),
        re.MULTILINE,
    )
]


@pytest.mark.parametrize(("page", "line"), LINES)
def test_the_line_is_understood(page: str, line: str) -> None:
    words = shlex.split(line, comments=True)
    assert _parsed(words).command == words[0], page


def test_every_command_is_documented_somewhere() -> None:
    assert {line.split()[0] for _, line in LINES} >= {"warm", "stat", "verify"}


def test_a_line_with_a_mistake_is_noticed() -> None:
    with pytest.raises(SystemExit):
        _parsed(["verify", "--rout", "kernel-cache"])
