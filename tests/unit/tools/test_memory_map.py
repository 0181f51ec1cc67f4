"""`python -m pypto.tools.memory_map`: what it says, what it writes, how it ends."""

from __future__ import annotations

import json
import re

import pytest
from pypto.compiler.memory_record import FILE_NAME
from pypto.tools.memory_map import PAGE, main, peaks
from pypto.tools.memory_page import render, shown_place, spaces_of


@pytest.mark.conforms("entry.47")
def test_the_peak_is_where_the_highest_tile_ends(record):
    assert peaks(record.functions[0]) == {"Mat": 24576, "Acc": 8192}
    assert spaces_of(record.functions[0]) == ["Mat", "Acc"]


def test_places_are_lines_of_files_where_those_are_known(record):
    left, _, total = record.functions[0].tiles
    assert shown_place(record, left.place) == "/home/me/m.py:13"
    assert shown_place(record, total.place) == "m:helper, line 2"


@pytest.mark.conforms("entry.47")
@pytest.mark.parametrize("within", ["", "passes_dump"])
def test_the_page_goes_beside_the_other_reports(build, within, told):
    status, out, err = told(main, [build / within])
    assert (status, err) == (0, "")
    page = (build / PAGE).read_text()
    assert page.startswith("<!doctype html>")
    data = json.loads(re.search(r'id="data">(.*?)</script>', page)[1])
    assert [tile["offset"] for tile in data["functions"][0]["tiles"]] == [0, 16384, 0]
    assert f"wrote {build / PAGE}" in out
    assert "4.7%" in out, "24 of 512 KiB"
    assert max(map(len, out.splitlines()[:-1])) <= 100


def test_names_are_text(record, build):
    page = render(record, build)
    assert "&lt;b&gt;[red]x" in page
    assert "<b>[red]" not in page
    assert "[red]x" not in page.replace("&lt;b&gt;[red]x", "").replace("\\u003cb\\u003e[red]x", "")


def test_the_answer_is_json_if_asked(build, told, tmp_path):
    status, out, _ = told(main, [build, "--json"])
    document = json.loads(out)
    assert status == 0
    assert document["page"] is None
    assert not (build / PAGE).exists()
    assert document["functions"][0]["peaks"] == {"Mat": 24576, "Acc": 8192}
    assert document["functions"][0]["tiles"][1] == {
        "name": "right", "space": "Mat", "shape": [64, 32], "dtype": "fp32", "offset": 16384,
        "bytes": 8192, "first": 2, "last": 3, "place": ["m:kernel", 4],
    }  # fmt: skip
    status, out, _ = told(main, [build, "--json", "-o", tmp_path / "new" / "map.html"])
    assert json.loads(out)["page"] == str(tmp_path / "new" / "map.html")
    assert (tmp_path / "new" / "map.html").is_file()


@pytest.mark.parametrize(
    ("directory", "text"),
    [
        ("nowhere", "no such directory"),
        ("file", "is no directory"),
        ("empty", "compile with dump_passes=True"),
        ("broken", "is not valid JSON"),
    ],
)
def test_a_directory_of_no_use_is_one_clear_line(tmp_path, told, directory, text):
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken" / FILE_NAME).parent.mkdir(parents=True)
    (tmp_path / "broken" / FILE_NAME).write_text("{")
    status, out, err = told(main, [tmp_path / directory])
    assert status == 2
    assert out == ""
    assert err.startswith("error: ")
    assert text in err
    assert str(tmp_path / directory) in err
    assert err.count("\n") == 1


def test_the_page_is_not_written_over_a_directory(build, told):
    status, _, err = told(main, [build, "-o", build])
    assert status == 2
    assert "is a directory; name a file with -o" in err


def test_there_is_help(told):
    with pytest.raises(SystemExit) as ended:
        told(main, ["--help"])
    assert ended.value.code == 0
