"""`break_rows` tells a test that noticed from one that did not, or that could not run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import break_rows
import pytest
from break_rows import Trees, Verdict, examine
from conformance_table import Break, ProvingTest, Row

MODULE = "pypto/pypto/one.py"
SOURCE = "def one():\n    return 1\n\n\ndef unused():\n    return 2\n"
TEST = """\
import one
import pytest


@pytest.fixture
def two():
    assert one.unused() == 2
    return 2


def test_two(two):
    assert two == 2


@pytest.mark.timeout(TIMEOUT)
def test_one():
    assert one.one() == 1
"""


@pytest.fixture
def trees(tmp_path: Path) -> Trees:
    source = tmp_path / "source"
    for name, text in (
        (MODULE, SOURCE),
        ("tests/test_one.py", TEST.replace("TIMEOUT", "3")),
        ("tests/test_one_more.py", TEST.replace("TIMEOUT", "3")),
        ("pyproject.toml", '[tool.pytest.ini_options]\npythonpath = ["pypto/pypto"]\n'),
        ("built/native", ""),
    ):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)
    subprocess.run(["git", "init", "-q", source], check=True)
    for name in ("_native.so", "_sdk"):
        (source / "pypto/pypto" / name).symlink_to(source / "built/native")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return Trees(source, scratch, 1)


def _examined(trees: Trees, find: str, replace: str) -> break_rows.Finding:
    row = Row("cache.1", "One is one.", (Break(MODULE, find, replace),))
    whole, broken = examine(row, [ProvingTest("tests/test_one.py", "test_one")], trees)
    assert whole.good, whole.detail
    return broken


@pytest.mark.parametrize(
    ("find", "replace", "verdict"),
    [
        ("return 1", "return 3", Verdict.NOTICED),
        ("return 1", "raise ValueError", Verdict.NOTICED),
        ("return 1", "while True: pass", Verdict.NOTICED),
        ("return 2", "return 3", Verdict.PASSED),
        ("return 1", "return (", Verdict.BROKE_THE_TREE),
        ("return 1", "return nothing", Verdict.BROKE_THE_TREE),
        ("return 4", "return 5", Verdict.BROKE_THE_TREE),
        ("def one", "import nothing\ndef one", Verdict.NOT_RUN),
        ("return 1", "import os; os._exit(1)", Verdict.NOT_RUN),
    ],
)
def test_only_a_failure_that_a_test_reports_is_notice(
    trees: Trees, find: str, replace: str, verdict: Verdict
) -> None:
    broken = _examined(trees, find, replace)
    assert broken.verdict is verdict, broken.detail
    assert broken.good is (verdict is Verdict.NOTICED)


def test_a_run_killed_from_outside_is_no_notice(
    trees: Trees, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(break_rows, "_RUN_LIMIT", 6)
    deaf = "import signal; signal.signal(signal.SIGALRM, signal.SIG_IGN)\n    while True: pass"
    with trees.lent(Break(MODULE, "return 1", deaf)) as tree:
        run = break_rows.run_tests(
            tree, [ProvingTest("tests/test_one.py", "test_one")], first_failure=True
        )
    assert run.verdict is Verdict.HUNG


def test_a_fixture_that_fails_is_no_notice_and_hides_none(trees: Trees) -> None:
    edits = (Break(MODULE, "return 2", "return 3"), Break(MODULE, "return 1", "return 3"))
    both = [ProvingTest("tests/test_one.py", name) for name in ("test_two", "test_one")]
    row = Row(
        "cache.1", "One is one.", (*edits, Break(MODULE, SOURCE, SOURCE.replace("n ", "n 4 + ")))
    )
    whole, fixture, test, either = examine(row, both, trees)
    assert whole.good
    assert fixture.verdict is Verdict.NOT_RUN
    assert test.verdict is Verdict.NOTICED
    assert either.verdict is Verdict.NOTICED


def test_a_crash_in_one_file_does_not_hide_what_another_notices(trees: Trees) -> None:
    crash = "import os; os._exit(1) if 'one_more' in os.environ['PYTEST_CURRENT_TEST'] else 0"
    row = Row("cache.1", "One is one.", (Break(MODULE, "return 1", f"{crash}; return 3"),))
    both = [ProvingTest(f"tests/test_{name}.py", "test_one") for name in ("one", "one_more")]
    _, broken = examine(row, both, trees)
    assert broken.verdict is Verdict.NOTICED, broken.detail


def test_the_tree_is_whole_again_after_a_break(trees: Trees) -> None:
    edit = Break(MODULE, "return 1", "return 3")
    with trees.lent(edit) as tree:
        assert "return 3" in (tree / MODULE).read_text()
    with trees.lent(None) as tree:
        assert (tree / MODULE).read_text() == SOURCE


def test_breaks_of_a_row_with_a_red_test_are_not_tried(trees: Trees) -> None:
    row = Row("cache.1", "One is two.", (Break(MODULE, "return 2", "return 3"),))
    (only,) = examine(row, [ProvingTest("tests/test_one.py", "test_three")], trees)
    assert only.edit is None and not only.good


def test_a_row_without_a_test_or_a_break_is_a_finding(trees: Trees) -> None:
    row = Row("cache.1", "One is one.", ())
    assert not examine(row, [], trees)[-1].good
    assert not examine(row, [ProvingTest("tests/test_one.py", "test_one")], trees)[-1].good
