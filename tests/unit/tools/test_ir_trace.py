"""`pypto-ir-trace`: which passes it finds, what it says of them, how it ends."""

from __future__ import annotations

import json
import re

import pytest
from pypto.tools.ir_trace import PAGE, main
from pypto.tools.passes_dump import Section, read, sections
from pypto_store.tools.answer import CommandError
from pypto_store.tools.terminal import SilentProgress


def test_passes_come_in_order_with_their_functions(build):
    place, passes = read(build, SilentProgress())
    assert place == build
    assert [(one.number, one.name) for one in passes] == [
        (0, "frontend"),
        (1, "split"),
        (10, "place"),
    ]
    assert [section.name for section in passes[1].sections] == ["part", "k"]
    assert passes[1].lines[4] == "def part(x):"
    assert read(build / "passes_dump", SilentProgress()) == (place, passes)


def test_the_place_of_a_line_is_no_part_of_its_text(build):
    dump = build / "passes_dump" / "01_after_split.py"
    dump.write_text('x = 1  # kernel.py:12\ny = "  # no.py:1"\n# a comment:3\nz = 2  # m:f:4\n')
    _, passes = read(build, SilentProgress())
    assert passes[1].lines == ("x = 1", 'y = "  # no.py:1"', "# a comment:3", "z = 2")
    assert passes[1].places == ("kernel.py:12", "", "", "m:f:4")


def test_times_are_those_of_the_pass_that_was_measured(build):
    _, passes = read(build, SilentProgress())
    # The tenth pass is none of the two that the profile has.
    assert [one.seconds for one in passes] == [None, 0.25, None]
    (build / "report" / "pipeline_profile.json").unlink()
    assert {one.seconds for one in read(build, SilentProgress())[1]} == {None}


def test_a_function_begins_with_what_belongs_to_it():
    lines = [
        "import pypto.language as pl",
        "@pl.program",
        "class Whole:",
        "    # incore",
        "    @pl.function",
        "    def one(self):",
        "        pass",
        "",
        "    def two(self):",
        "        # a comment inside",
        "        pass",
    ]
    assert sections(lines) == (Section("one", 3, 8), Section("two", 8, 11))
    assert sections(["x = 1"]) == ()


@pytest.mark.conforms("entry.44")
def test_the_page_and_the_list(build, told):
    status, out, err = told(main, [build])
    assert (status, err) == (0, "")
    page = (build / PAGE).read_text()
    assert page.startswith("<!doctype html>")
    assert "<pass>" not in page, "what a dump holds is text"
    data = json.loads(re.search(r'id="data">(.*?)</script>', page)[1])
    split = data["passes"][1]
    assert [data["lines"][line] for line in split["lines"]][4:6] == ["def part(x):", "    pass"]
    assert split["sections"] == [["part", 3, 8], ["k", 8, 12]]
    assert "250.00" in out, "milliseconds of the one pass that was measured"
    assert max(map(len, out.splitlines()[:-1])) <= 100


def test_the_answer_is_json_if_asked(build, told):
    status, out, _ = told(main, [build, "--json"])
    assert status == 0
    assert not (build / PAGE).exists()
    assert json.loads(out)["passes"][1] == {
        "number": 1, "name": "split", "file": "01_after_split.py", "lines": 12,
        "functions": ["part", "k"], "seconds": 0.25,
    }  # fmt: skip


def test_lines_that_passes_leave_are_there_once(build, told):
    told(main, [build])
    assert (build / PAGE).read_text().count("# pypto program: k") == 2, "in the data, and to read"


@pytest.mark.conforms("entry.44")
@pytest.mark.parametrize(
    ("directory", "text"),
    [("nowhere", "no such directory"), ("file", "is no directory"), ("empty", "no dumped passes")],
)
def test_a_directory_without_dumps_is_one_clear_line(tmp_path, told, directory, text):
    (tmp_path / "file").touch()
    (tmp_path / "empty" / "passes_dump").mkdir(parents=True)
    status, out, err = told(main, [tmp_path / directory])
    assert status == 2
    assert out == ""
    assert err.startswith("error: ")
    assert text in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("profile", "text"),
    [
        ("[", "not valid JSON"),
        ('{"schema": 2, "stages": []}', "schema is 2, but this reads 1"),
        ('{"schema": 1, "stages": [{"pass": "split"}]}', r"stages\[0\] lacks 'seconds'"),
        (
            '{"schema": 1, "stages": [{"pass": "split", "seconds": "1"}]}',
            r"stages\[0\]\.seconds must be",
        ),
    ],
)
def test_a_profile_that_is_none_is_named(build, profile, text):
    path = build / "report" / "pipeline_profile.json"
    path.write_text(profile)
    with pytest.raises(CommandError, match=text) as error:
        read(build, SilentProgress())
    assert str(path) in str(error.value)


def test_a_dump_that_is_no_text_is_named(build):
    (build / "passes_dump" / "01_after_split.py").write_bytes(b"\xff\xfe")
    with pytest.raises(CommandError, match=r"01_after_split\.py: not text in UTF-8"):
        read(build, SilentProgress())
