"""Breaks the product row by row and demands that the row's tests notice.

    python tests/conformance/break_rows.py [cache.41 ...] [--jobs N] [--json FILE]

For each row the tests that carry its number have to pass on an unchanged copy of the tree and to
fail on a copy with each of the row's breaks. A failure counts when a test itself reports it: an
assertion, an exception that was or was not raised, pytest-timeout's limit. Text that no longer
parses, a name that no longer exists, or a run that had to be killed from outside prove nothing
about the test and count as not noticed.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from conformance_table import Break, ProvingTest, Row, TableError, read_markers, read_sections
from write_page import source_root

# What Bazel builds and the inner loop links to; it may be built anew while this runs.
_BUILT = ("pypto/pypto/_native.so", "pypto/pypto/_sdk")
_ROOTS = ("pypto", "store", "toolchains", "build_tools", "build_tools/pep517", "tests/conformance")

# Seconds for one test, kept by pytest-timeout, and for a whole run of them, kept from outside.
_TEST_LIMIT = 300
_RUN_LIMIT = 1800

# A mutation that only makes the program nonsense is not a behaviour that a test has checked.
_NONSENSE = (
    "SyntaxError",
    "IndentationError",
    "NameError",
    "UnboundLocalError",
    "ImportError",
    "ModuleNotFoundError",
)


class Verdict(StrEnum):
    """How the tests of a row met a tree."""

    PASSED = "passed"
    NOTICED = "noticed"
    BROKE_THE_TREE = "nonsense"
    HUNG = "hung"
    NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class Run:
    """One run of pytest: its verdict, the first failure or complaint, and the time of each test."""

    verdict: Verdict
    detail: str = ""
    seconds: Mapping[str, float] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of one row unbroken (``edit`` is None) or of one of its breaks."""

    row: str
    edit: int | None
    verdict: Verdict
    detail: str
    seconds: float

    @property
    def good(self) -> bool:
        """An unbroken row passes, a break is noticed."""
        return self.verdict is (Verdict.PASSED if self.edit is None else Verdict.NOTICED)


class Trees:
    """Copies of the source tree, each lent to one run at a time."""

    def __init__(self, source: Path, scratch: Path, count: int) -> None:
        names = _source_files(source)
        built = scratch / "built"
        for name in _BUILT:
            _copy_built((source / name).resolve(strict=True), built / name)
        self._free: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for number in range(count):
            tree = scratch / f"tree{number}"
            for name in names:
                place = tree / name
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source / name, place, follow_symlinks=False)
            for name in _BUILT:
                (tree / name).symlink_to(built / name)
            self._free.put(tree)

    @contextmanager
    def lent(self, edit: Break | None) -> Iterator[Path]:
        """A tree with ``edit`` made, whole again afterwards."""
        tree = self._free.get()
        try:
            if edit is None:
                yield tree
                return
            path = tree / edit.file
            text = path.read_text(encoding="utf-8")
            broken = edit.applied(text)
            if path.suffix == ".py":
                ast.parse(broken, edit.file)
            try:
                path.write_text(broken, encoding="utf-8")
                yield tree
            finally:
                path.write_text(text, encoding="utf-8")
        finally:
            self._free.put(tree)


def _copy_built(source: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    if source.is_file():
        shutil.copy2(source, place)
        return
    shutil.copytree(source, place)
    # Bazel's directories cannot be written, and so could not be removed again.
    for directory in (place, *(path for path in place.rglob("*") if path.is_dir())):
        directory.chmod(0o755)


def _source_files(root: Path) -> list[str]:
    """What git tracks in the tree or would, as the files are now."""
    listing = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    names = set(listing.split("\0")) - {"", *_BUILT}
    return sorted(name for name in names if (root / name).is_file())


def run_tests(tree: Path, tests: Sequence[ProvingTest], *, first_failure: bool) -> Run:
    """pytest over ``tests`` in ``tree``; ``first_failure`` ends it there."""
    with tempfile.TemporaryDirectory(prefix="home-", dir=tree.parent) as home:
        report = Path(home, "report.xml")
        command = [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *(f"--rootdir={tree}", f"--config-file={tree / 'pyproject.toml'}"),
            *(f"--basetemp={home}/pytest", f"--junitxml={report}"),
            *(f"--timeout={_TEST_LIMIT}", "--timeout-method=signal"),
            *(["-x"] if first_failure else []),
            *(test.node for test in tests),
        ]
        child = subprocess.Popen(
            command,
            cwd=tree,
            env=_environment(tree, home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = child.communicate(timeout=_RUN_LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
            return Run(Verdict.HUNG, f"killed after {_RUN_LIMIT} s")
        if not report.exists():
            return Run(Verdict.NOT_RUN, output.strip()[-300:])
        return _judged(report, child.returncode)


def _environment(tree: Path, home: str) -> dict[str, str]:
    # PYPTO_TEST_... name what bazelw made for tests, and decide nothing of the product.
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PYPTO_") or name.startswith("PYPTO_TEST_")
    }
    return kept | {
        "PYTHONPATH": os.pathsep.join(str(tree / root) for root in _ROOTS),
        # An edit of equal length within a second would otherwise run its old bytecode.
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": home,
        "XDG_CACHE_HOME": home,
        "TMPDIR": home,
    }


def _judged(report: Path, status: int) -> Run:
    cases = list(ElementTree.parse(report).iter("testcase"))
    seconds: dict[str, float] = {}
    for case in cases:
        name = (case.get("name") or "").partition("[")[0]
        seconds[name] = seconds.get(name, 0.0) + float(case.get("time") or 0)
    for case in cases:
        failure = case.find("failure")
        if failure is not None:
            said = failure.get("message") or ""
            whole = said + (failure.text or "")
            detail = f"{case.get('name')}: {said.strip().splitlines()[0] if said.strip() else ''}"
            nonsense = any(f"{name}: " in whole for name in _NONSENSE)
            verdict = Verdict.BROKE_THE_TREE if nonsense else Verdict.NOTICED
            return Run(verdict, detail[:200], seconds)
    for case in cases:
        error = case.find("error")
        if error is not None:
            return Run(
                Verdict.NOT_RUN, f"{case.get('name')}: {error.get('message')}"[:200], seconds
            )
    ran = [case for case in cases if case.find("skipped") is None]
    if status or not ran:
        return Run(Verdict.NOT_RUN, f"pytest ended with {status}, {len(ran)} tests ran", seconds)
    return Run(Verdict.PASSED, f"{len(ran)} tests", seconds)


def examine(row: Row, tests: Sequence[ProvingTest], trees: Trees) -> list[Finding]:
    """The findings of one row; without tests, or with red ones, its breaks are not tried."""
    if not tests:
        return [Finding(row.id, None, Verdict.NOT_RUN, "no test carries this row", 0.0)]
    started = time.monotonic()
    with trees.lent(None) as tree:
        whole = run_tests(tree, tests, first_failure=False)
    findings = [Finding(row.id, None, whole.verdict, whole.detail, time.monotonic() - started)]
    if whole.verdict is not Verdict.PASSED:
        return findings
    if not row.breaks:
        return [*findings, Finding(row.id, 0, Verdict.NOT_RUN, "the row has no break", 0.0)]
    quick_first = sorted(tests, key=lambda test: whole.seconds.get(test.name.split("::")[-1], 0.0))
    for number, edit in enumerate(row.breaks):
        started = time.monotonic()
        try:
            with trees.lent(edit) as tree:
                run = run_tests(tree, quick_first, first_failure=True)
                if run.verdict is Verdict.NOT_RUN:
                    run = _apart(tree, tests) or run
        except (TableError, SyntaxError) as error:
            run = Run(Verdict.BROKE_THE_TREE, str(error))
        findings.append(
            Finding(row.id, number, run.verdict, run.detail, time.monotonic() - started)
        )
    return findings


def _apart(tree: Path, tests: Sequence[ProvingTest]) -> Run | None:
    """The run of the first file whose tests notice, each file in a process of its own.

    A fixture that uses what is broken can fail before any test does, and a test that loads broken
    code can take pytest down; neither says anything about the other tests.
    """
    for file in dict.fromkeys(test.file for test in tests):
        of_file = [test for test in tests if test.file == file]
        run = run_tests(tree, of_file, first_failure=False)
        if run.verdict is Verdict.NOTICED:
            return run
    return None


def _chosen(rows: Sequence[Row], ids: Sequence[str]) -> list[Row]:
    if unknown := set(ids) - {row.id for row in rows}:
        raise TableError(f"unknown rows: {sorted(unknown)}")
    return [row for row in rows if not ids or row.id in ids]


def _line(finding: Finding) -> str:
    what = "unbroken" if finding.edit is None else f"break {finding.edit + 1}"
    good = "ok " if finding.good else "BAD"
    words = finding.detail.replace("\n", " ")
    return f"{finding.row:10} {what:9} {good} {finding.verdict:8} {finding.seconds:6.1f} s  {words}"


def main() -> int:
    """Examine the rows; 0 if every break was noticed, 1 if not, 2 if the table cannot be read."""
    parser = argparse.ArgumentParser(description="Breaks rows and demands that their tests fail.")
    parser.add_argument("ids", nargs="*", help="rows such as cache.41; all if none is given")
    parser.add_argument("--jobs", type=int, default=1, help="rows examined at the same time")
    parser.add_argument("--json", type=Path, help="write the findings to this file as well")
    arguments = parser.parse_args()
    root = source_root()
    try:
        rows = [row for section in read_sections(root) for row in section.rows]
        proofs = read_markers(root)
        chosen = _chosen(rows, arguments.ids)
    except TableError as error:
        print(error, file=sys.stderr)
        return 2
    findings: list[Finding] = []
    with tempfile.TemporaryDirectory(prefix="break-rows-") as scratch:
        # Some tests read a cache as another user, who has to get here.
        os.chmod(scratch, 0o755)
        trees = Trees(root, Path(scratch), arguments.jobs)
        with ThreadPoolExecutor(arguments.jobs) as pool:
            for found in pool.map(lambda row: examine(row, proofs.get(row.id, ()), trees), chosen):
                for finding in found:
                    print(_line(finding), flush=True)
                findings += found
    bad = sum(not finding.good for finding in findings)
    breaks = sum(finding.edit is not None for finding in findings)
    print(f"{len(chosen)} rows, {breaks} breaks, {bad} not as they should be")
    if arguments.json:
        table = [dataclasses.asdict(finding) | {"good": finding.good} for finding in findings]
        arguments.json.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
