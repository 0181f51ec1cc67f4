"""The conformance table is full, its page is the generator's, and markers are read or refused."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import conformance_table
import pytest
import write_page
from conformance_table import Break, ProvingTest, Row, TableError

ROOT = Path(__file__).parents[2]

NUMBERS = {
    "cache": [*range(1, 115)],
    "entry": [*range(1, 50)],
    "language": [*range(1, 160)],
}


def test_every_row_has_a_test_and_a_break_that_still_applies() -> None:
    found = conformance_table.complaints(ROOT)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("document", conformance_table.DOCUMENTS)
def test_the_page_is_what_the_generator_writes(document: str) -> None:
    written = (ROOT / write_page.PAGES[document]).read_text(encoding="utf-8")
    assert written == write_page.page(ROOT, document), "run ./bazelw run //tests/conformance:write"


@pytest.mark.parametrize("document", conformance_table.DOCUMENTS)
def test_the_rows_are_those_of_the_contract(document: str) -> None:
    sections = [s for s in conformance_table.read_sections(ROOT) if s.document == document]
    assert [row.number for section in sections for row in section.rows] == NUMBERS[document]


def test_every_folder_with_a_marker_is_among_the_data_of_this_suite() -> None:
    """Else Bazel's copy of the tree would not have its tests, and the page would seem to drift."""
    build = (ROOT / "tests/conformance/BUILD.bazel").read_text(encoding="utf-8")
    proofs = conformance_table.read_markers(ROOT).values()
    folders = {Path(test.file).parent.as_posix() for tests in proofs for test in tests}
    assert not {folder for folder in folders if f'"//{folder}"' not in build}


def _markers(text: str) -> list[tuple[str, str]]:
    return [(test.name, row) for test, row in conformance_table.markers_of("test_x.py", text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "@pytest.mark.conforms('cache.1', 'cache.2')\ndef test_a(): ...\ndef test_b(): ...\n",
            [("test_a", "cache.1"), ("test_a", "cache.2")],
        ),
        (
            "@pytest.mark.conforms('cache.1')\n@pytest.mark.parametrize('n', [1, 2])\n"
            "async def test_a(n): ...\n",
            [("test_a", "cache.1")],
        ),
        (
            "pytestmark = [pytest.mark.slow, pytest.mark.conforms('cache.3')]\n"
            "def test_a(): ...\nclass TestB:\n    def test_c(self): ...\n    def made(self): ...\n",
            [("test_a", "cache.3"), ("TestB::test_c", "cache.3")],
        ),
        (
            "@pytest.mark.conforms('cache.4')\nclass TestB:\n"
            "    @pytest.mark.conforms('cache.5')\n    def test_c(self): ...\n",
            [("TestB::test_c", "cache.4"), ("TestB::test_c", "cache.5")],
        ),
        (
            "@pytest.mark.conforms('cache.6')\nclass TestB(Suite):\n    n = 1\n",
            [("TestB", "cache.6")],
        ),
    ],
)
def test_markers_are_read_from_the_text(text: str, expected: list[tuple[str, str]]) -> None:
    assert _markers("import pytest\n" + text) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("@pytest.mark.conforms(ROW)\ndef test_a(): ...\n", "plain strings"),
        ("@pytest.mark.conforms(*ROWS)\ndef test_a(): ...\n", "plain strings"),
        ("@pytest.mark.conforms(row='cache.1')\ndef test_a(): ...\n", "plain strings"),
        ("@pytest.mark.conforms()\ndef test_a(): ...\n", "plain strings"),
        ("@pytest.mark.conforms\ndef test_a(): ...\n", "whole test"),
        ("A = pytest.param(1, marks=pytest.mark.conforms('cache.1'))\n", "whole test"),
        ("def test_a():\n    pytest.mark.conforms('cache.1')\n", "whole test"),
        ("@pytest.mark.conforms('cache.1')\ndef prepared(): ...\n", "no test"),
    ],
)
def test_markers_that_cannot_be_read_are_refused(text: str, said: str) -> None:
    with pytest.raises(TableError, match=said) as refusal:
        _markers("import pytest\n" + text)
    assert "test_x.py:2" in str(refusal.value) or "test_x.py:3" in str(refusal.value)


ROW = """\
[[row]]
id = "cache.1"
says = "One is one."
breaks = [{file = "pypto/pypto/one.py", find = "ONE = 1", replace = "ONE = 2"}]
"""
PROOF = "import pytest\n@pytest.mark.conforms('cache.1')\ndef test_one(): ...\n"


def _tree(root: Path, *, rows: str = ROW, test: str = PROOF, source: str = "ONE = 1\n") -> Path:
    for name, text in (
        ("tests/conformance/rows/a.toml", 'heading = "Numbers"\n' + rows),
        ("tests/unit/test_one.py", test),
        ("pypto/pypto/one.py", source),
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def _says(found: Iterable[str], *parts: str) -> bool:
    return any(all(part in line for part in parts) for line in found)


def test_a_full_table_has_no_complaint(tmp_path: Path) -> None:
    assert conformance_table.complaints(_tree(tmp_path)) == []


@pytest.mark.parametrize(
    ("changed", "parts"),
    [
        ({"test": "def test_one(): ...\n"}, ["cache.1", "no test"]),
        ({"test": PROOF.replace("cache.1", "cache.2")}, ["test_one.py::test_one", "cache.2"]),
        ({"rows": ROW.partition("breaks")[0]}, ["cache.1", "no break"]),
        ({"source": "ONE = 3\n"}, ["cache.1", "found 0 times"]),
        ({"source": "ONE = 1\nONE = 1\n"}, ["cache.1", "found 2 times"]),
        ({"rows": ROW.replace("one.py", "two.py")}, ["cache.1", "two.py"]),
    ],
)
def test_what_a_full_table_lacks_is_said(
    tmp_path: Path, changed: dict[str, str], parts: list[str]
) -> None:
    assert _says(conformance_table.complaints(_tree(tmp_path, **changed)), *parts)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (ROW + ROW, "twice"),
        (ROW.replace("cache.1", "cache.2") + ROW, "order"),
        (ROW.replace("id =", "name ="), "name"),
        (ROW.replace("cache.1", "row 1"), "no row id"),
        (ROW + ROW.replace("cache.1", "entry.2"), "one document"),
        (ROW.replace("is one.", "is one"), "sentences"),
        (ROW.replace("is one.", "is 1 | one."), "bar"),
        (ROW.replace("pypto/pypto/", "tests/unit/"), "edits the product"),
        (ROW.replace("ONE = 2", "ONE = 1"), "by another"),
    ],
)
def test_rows_that_cannot_be_rows_are_refused(tmp_path: Path, rows: str, said: str) -> None:
    with pytest.raises(TableError, match=said):
        conformance_table.read_sections(_tree(tmp_path, rows=rows))


def test_a_break_edits_its_one_place() -> None:
    edit = Break("pypto/pypto/one.py", "b", "d")
    assert edit.applied("abc") == "adc"
    with pytest.raises(TableError, match="found 0 times"):
        edit.applied("ac")


def test_the_page_names_each_row_and_links_its_tests(tmp_path: Path) -> None:
    text = write_page.page(_tree(tmp_path), "cache")
    assert "## Numbers" in text
    assert "| One is one. | [test_one.py](../../tests/unit/test_one.py): one |" in text


def test_a_row_number_is_a_number_and_a_proof_has_a_node() -> None:
    assert Row("cache.41", "It holds.", ()).number == 41
    assert ProvingTest("tests/test_x.py", "TestA::test_b").node == "tests/test_x.py::TestA::test_b"
