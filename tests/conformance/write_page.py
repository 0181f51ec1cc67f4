"""Writes the conformance pages of docs/reference: `./bazelw run //tests/conformance:write`.

Plain Python does too: `python tests/conformance/write_page.py`.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from conformance_table import (
    DOCUMENTS,
    ProvingTest,
    Section,
    TableError,
    read_markers,
    read_sections,
)

_FOLDER = Path("docs/reference")

# The page of each document.
PAGES = {
    "cache": _FOLDER / "conformance.md",
    "entry": _FOLDER / "conformance-entry-points.md",
    "language": _FOLDER / "conformance-language.md",
}

_WRITTEN = """\
<!-- Written by tests/conformance/write_page.py from the rows in tests/conformance/rows and the
`conforms` markers of the tests. Edit those, then run ./bazelw run //tests/conformance:write -->
"""
_PROVEN = """\
A test of its last column
fails when the behaviour is broken: each row also names edits of the product that break it, and
`python tests/conformance/break_rows.py` makes them one after the other in a copy of the tree and
demands to see the tests fail. [How to change a row](../../CONTRIBUTING.md) is in the contributors'
guide, and [the decision](../adr/0016-conformance-table.md) says why the table is made this way.
"""

_INTRODUCTIONS = {
    "cache": f"""\
# What holds, and which test proves it

{_WRITTEN}
Each row is a behaviour of the persistent cache that users may rely on. {_PROVEN}
The numbers are names and do not change. The rows 84 to 99 are about the evidence of tools that
makes up a key; that page will be the identities' own.
""",
    "entry": f"""\
# What holds of the entry points, and which test proves it

{_WRITTEN}
Each row is a behaviour of compiling, loading and running a program that users may rely on; the
[map of the entry points](entry-points.md) says what they are for. {_PROVEN}
The numbers are names and do not change. What programs for several chips will do is refused for now,
and rows 9, 42 and 43 say so.
""",
    "language": f"""\
# What holds of the kernel language, and which test proves it

{_WRITTEN}
Each row is a promise to whoever writes kernels: a name of the language, a spelling, or what a
program means; the [pages of the language](language-programs.md) explain them. {_PROVEN}
The numbers are names and do not change.
""",
}


def page(root: Path, document: str) -> str:
    """The text of the page of ``document`` for the tree at ``root``.

    Raises:
        TableError: rows or markers that cannot be read.
    """
    proofs = read_markers(root)
    sections = [s for s in read_sections(root) if s.document == document]
    return "\n".join([_INTRODUCTIONS[document], *(_section(s, proofs) for s in sections)])


def _section(section: Section, proofs: dict[str, tuple[ProvingTest, ...]]) -> str:
    lines = [f"## {section.heading}", ""]
    if section.note:
        lines += [section.note, ""]
    lines += ["| Row | What holds | Tests |", "|---|---|---|"]
    for row in section.rows:
        cell = "<br>".join(_links(proofs.get(row.id, ()))) or "none yet"
        lines.append(f'| <a id="{row.id}"></a>{row.number} | {row.says} | {cell} |')
    return "\n".join(lines) + "\n"


def _links(tests: Sequence[ProvingTest]) -> Iterator[str]:
    """One link for each file, followed by its tests in words: those wrap where names would not."""
    for file, of_file in itertools.groupby(tests, key=lambda test: test.file):
        target = os.path.relpath(file, _FOLDER)
        names = "; ".join(_in_words(test.name) for test in of_file)
        yield f"[{PurePosixPath(file).name}]({target}): {names}"


def _in_words(name: str) -> str:
    words = (part.removeprefix("test_").replace("_", " ") for part in name.split("::"))
    return ", ".join(words).replace("|", "\\|")


def source_root() -> Path:
    """The tree to read and write: under Bazel the workspace, not its copy of some files."""
    return Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", Path(__file__).parents[2]))


def main() -> int:
    """Write the pages; 1 if the table cannot be read."""
    root = source_root()
    try:
        texts = {document: page(root, document) for document in DOCUMENTS}
    except TableError as error:
        print(error, file=sys.stderr)
        return 1
    for document, text in texts.items():
        (root / PAGES[document]).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
