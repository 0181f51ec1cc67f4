"""The rows of the conformance table, and the tests that carry their numbers.

A row says in one paragraph what holds; tests name the rows they prove with
``@pytest.mark.conforms("cache.41")``; each row names at least one *break*, an edit of one place of
the product under which its tests have to fail. Nothing here imports a test: markers are read from
the syntax tree, so that a suite that cannot be imported on some machine is in the table all the
same.
"""

from __future__ import annotations

import ast
import itertools
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROWS = Path("tests/conformance/rows")
TESTS = Path("tests")

# Where a break may bite: what users run. A test that is edited to fail proves nothing.
BREAKABLE = ("pypto/pypto/", "store/pypto_store/", "toolchains/pypto_toolchains/")
BREAKABLE_PROGRAMS = ("tests/benchmarks/jit_cache_latency.py",)

_MARKER = "conforms"
# What rows are about; each document is a page of its own, with numbers of its own.
DOCUMENTS = ("cache", "entry", "language")

_ROW_ID = re.compile(rf"({'|'.join(DOCUMENTS)})\.[1-9][0-9]*")
_LONGEST_SENTENCE = 900


class TableError(Exception):
    """A rows file or a marker that cannot be read as part of the table; says where and what."""


@dataclass(frozen=True, slots=True)
class Break:
    """One edit: in ``file``, the only occurrence of ``find`` becomes ``replace``."""

    file: str
    find: str
    replace: str

    def __post_init__(self) -> None:
        if not self.file.startswith(BREAKABLE) and self.file not in BREAKABLE_PROGRAMS:
            raise TableError(f"{self.file}: a break edits the product, below {BREAKABLE}")
        if not self.find or self.find == self.replace:
            raise TableError(f"{self.file}: a break replaces some text by another")

    def applied(self, text: str) -> str:
        """``text`` with the edit made.

        Raises:
            TableError: ``find`` is not there exactly once.
        """
        if (count := text.count(self.find)) != 1:
            raise TableError(f"{self.file}: found {count} times, not once: {self.find!r}")
        return text.replace(self.find, self.replace)


@dataclass(frozen=True, slots=True)
class Row:
    """One behaviour, and the edits that take it away."""

    id: str
    says: str
    breaks: tuple[Break, ...]

    def __post_init__(self) -> None:
        if not _ROW_ID.fullmatch(self.id):
            raise TableError(f"{self.id!r} is no row id such as cache.41")
        if not self.says.endswith((".", ".)")) or "\n" in self.says or "|" in self.says:
            raise TableError(f"{self.id}: `says` is one line of sentences without a vertical bar")
        if len(self.says) > _LONGEST_SENTENCE:
            raise TableError(f"{self.id}: `says` has more than {_LONGEST_SENTENCE} characters")

    @property
    def document(self) -> str:
        """Which of the DOCUMENTS it belongs to."""
        return self.id.partition(".")[0]

    @property
    def number(self) -> int:
        """The number within its document."""
        return int(self.id.rpartition(".")[2])


@dataclass(frozen=True, slots=True)
class Section:
    """The rows of one file, under its heading; ``note`` stands below it and may be empty."""

    heading: str
    note: str
    rows: tuple[Row, ...]

    @property
    def document(self) -> str:
        """Which of the DOCUMENTS its rows belong to."""
        return self.rows[0].document


@dataclass(frozen=True, slots=True, order=True)
class ProvingTest:
    """A test function, or a class whose tests all count: ``file::name`` as pytest spells it."""

    file: str
    name: str

    @property
    def node(self) -> str:
        """What pytest takes on its command line."""
        return f"{self.file}::{self.name}"


def read_sections(root: Path) -> tuple[Section, ...]:
    """Every rows file of the tree at ``root``, in the order of their first rows.

    Raises:
        TableError: a file is malformed, or a row stands twice.
    """
    sections = [_section(path) for path in sorted((root / ROWS).glob("*.toml"))]
    sections.sort(key=lambda section: (section.document, section.rows[0].number))
    seen: set[str] = set()
    for row in itertools.chain.from_iterable(section.rows for section in sections):
        if row.id in seen:
            raise TableError(f"{row.id} stands twice in {ROWS}")
        seen.add(row.id)
    return tuple(sections)


def _section(path: Path) -> Section:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        rows = tuple(_row(table) for table in document.pop("row", []))
        section = Section(document.pop("heading"), document.pop("note", ""), rows)
    except (tomllib.TOMLDecodeError, KeyError, TypeError, TableError) as error:
        raise TableError(f"{path.name}: {error}") from error
    if document:
        raise TableError(f"{path.name}: unknown keys {sorted(document)}")
    if not rows or any(row.document != rows[0].document for row in rows):
        raise TableError(f"{path.name}: a file has rows, all of one document")
    if [row.number for row in rows] != sorted(row.number for row in rows):
        raise TableError(f"{path.name}: rows stand in the order of their numbers")
    return section


def _row(table: Mapping[str, object]) -> Row:
    fields = dict(table)
    breaks = fields.pop("breaks", [])
    if not isinstance(breaks, list):
        raise TypeError(f"breaks is a list of tables, not {breaks!r}")
    made = tuple(Break(**edit) for edit in breaks)
    return Row(breaks=made, **fields)  # type: ignore[arg-type]  # unknown names are a TypeError


def read_markers(root: Path) -> dict[str, tuple[ProvingTest, ...]]:
    """From each row id that a test of the tree names to those tests, sorted.

    Raises:
        TableError: a marker stands where it cannot be read, or its arguments are no literals.
    """
    found: dict[str, set[ProvingTest]] = {}
    for path in sorted((root / TESTS).rglob("test_*.py")):
        name = path.relative_to(root).as_posix()
        for test, row in markers_of(name, path.read_text(encoding="utf-8")):
            found.setdefault(row, set()).add(test)
    return {row: tuple(sorted(tests)) for row, tests in found.items()}


def markers_of(file: str, text: str) -> Iterator[tuple[ProvingTest, str]]:
    """The markers of one test file, as pairs of a test and a row id.

    Read are decorators of test functions, methods and classes, and ``pytestmark`` of a module or a
    class. A marker anywhere else, as within ``pytest.param``, would be counted by pytest and not
    here, so it is refused.
    """
    if _MARKER not in text:
        return
    tree = ast.parse(text, file)
    read: set[ast.AST] = set()
    pairs = list(_in_body(file, tree.body, "", (), read))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _is_marker(node) and node not in read:
            raise TableError(
                f"{file}:{node.lineno}: a `{_MARKER}` marker is read on functions, methods, "
                "classes and in pytestmark; put it on the whole test"
            )
    yield from pairs


def _in_body(
    file: str,
    body: Sequence[ast.stmt],
    prefix: str,
    inherited: tuple[str, ...],
    read: set[ast.AST],
) -> Iterator[tuple[ProvingTest, str]]:
    for statement in body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if any(isinstance(name, ast.Name) and name.id == "pytestmark" for name in targets):
                value = statement.value
                marks = value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
                inherited += _row_ids(file, marks, read)
    for statement in body:
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        name = prefix + statement.name
        if isinstance(statement, ast.ClassDef):
            own = _row_ids(file, statement.decorator_list, read)
            tests = list(_in_body(file, statement.body, name + "::", inherited + own, read))
            # A class that only inherits its tests is run as a whole.
            if own and not any(row in own for _, row in tests):
                tests += [(ProvingTest(file, name), row) for row in own]
            yield from tests
            continue
        own = _row_ids(file, statement.decorator_list, read)
        if not statement.name.startswith("test"):
            if own:
                raise TableError(f"{file}:{statement.lineno}: {statement.name} is no test")
            continue
        for row in dict.fromkeys(inherited + own):
            yield ProvingTest(file, name), row


def _row_ids(file: str, marks: Sequence[ast.expr], read: set[ast.AST]) -> tuple[str, ...]:
    ids: list[str] = []
    for mark in marks:
        if not (isinstance(mark, ast.Call) and _is_marker(mark.func)):
            continue
        read.add(mark.func)
        values = [node.value for node in mark.args if isinstance(node, ast.Constant)]
        literal = len(values) == len(mark.args) and all(isinstance(v, str) for v in values)
        if not literal or not values or mark.keywords:
            raise TableError(f"{file}:{mark.lineno}: `{_MARKER}` takes row ids as plain strings")
        ids += [str(value) for value in values]
    return tuple(ids)


def _is_marker(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == _MARKER
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "mark"
    )


def complaints(root: Path) -> list[str]:
    """What keeps the table of the tree at ``root`` from being full; empty when nothing does.

    Raises:
        TableError: rows or markers that cannot be read at all.
    """
    rows = [row for section in read_sections(root) for row in section.rows]
    proofs = read_markers(root)
    found = [
        f"{proof.node} names the unknown row {unknown}"
        for unknown in sorted(proofs.keys() - {row.id for row in rows})
        for proof in proofs[unknown]
    ]
    for row in rows:
        if row.id not in proofs:
            found.append(f"{row.id} has no test: {row.says}")
        if not row.breaks:
            found.append(f"{row.id} has no break: {row.says}")
        for edit in row.breaks:
            try:
                edit.applied((root / edit.file).read_text(encoding="utf-8"))
            except (OSError, TableError) as error:
                found.append(f"{row.id}: {error}")
    return found
