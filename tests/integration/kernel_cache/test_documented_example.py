"""The page about prewarmed caches shows the example as it is."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path

ROOT = next(
    parent
    for parent in Path(__file__).parents
    if (parent / "docs" / "how-to" / "ship-a-prewarmed-cache.md").exists()
)
EXAMPLE = ROOT / "docs" / "examples" / "prewarmed_cache"
PAGE = (ROOT / "docs" / "how-to" / "ship-a-prewarmed-cache.md").read_text(encoding="utf-8")
BLOCKS = [
    textwrap.dedent(block)
    for block in re.findall(r"(?:^ {4}.*\n|^\n(?= {4}))+", PAGE, re.MULTILINE)
]


def _words(text: str) -> str:
    """A text without line breaks and what a formatter may add to lists that are broken."""
    return re.sub(r",(?=[)\]])", "", re.sub(r"\s+", "", text))


def test_targets_are_those_of_the_example() -> None:
    build = (EXAMPLE / "BUILD.bazel").read_text(encoding="utf-8")
    shown = [block for block in BLOCKS if re.search(r"^(py_library|pypto_\w+)\($", block, re.M)]
    assert len(shown) == 3
    for block in shown:
        for statement in block.strip().split("\n\n"):
            # The example's targets are seen by tests as well.
            bare = re.sub(r"    visibility = .*\n", "", build)
            assert _words(statement) in _words(bare), statement


def test_requests_are_those_of_the_example() -> None:
    (shown,) = [json.loads(block) for block in BLOCKS if '"schema_version"' in block]
    whole = json.loads((EXAMPLE / "kernels.json").read_text(encoding="utf-8"))
    assert shown["schema_version"] == whole["schema_version"]
    assert [request for request in whole["requests"] if request in shown["requests"]] == (
        shown["requests"]
    )
