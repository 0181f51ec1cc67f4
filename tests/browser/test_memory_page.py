"""The map of on-chip memory, looked at in a real browser."""

from __future__ import annotations

import pytest
from page_checks import (
    choose,
    click,
    colours,
    contents,
    cramped,
    overflow,
    press,
    unreadable,
)
from pypto.compiler.memory_record import (
    FunctionMemory,
    MemoryRecord,
    Place,
    RecordedStatement,
    RecordedTile,
)
from pypto.tools.memory_page import render

HOSTILE = '</script><script>window.harmed=1</script><img src=x onerror="harmed=1">'
CHOSEN = "document.querySelector('.tile[aria-pressed=true]')?.getAttribute('aria-label')"
PLACE = Place("m:kernel", 2)


def statement(position, text, depth=0):
    return RecordedStatement(position, depth, text, Place("m:kernel", position + 1))


def product():
    tiles = (
        RecordedTile("left", "Mat", (64, 64), "fp32", 0, 16384, 1, 4, PLACE),
        RecordedTile("right", "Mat", (64, 32), "fp32", 16384, 8192, 2, 4, PLACE),
        RecordedTile("late", "Mat", (64, 64), "fp32", 0, 16384, 5, 6, PLACE),
        RecordedTile("sum", "Acc", (64, 32), "fp32", 0, 8192, 4, 6, PLACE),
    )
    statements = (
        statement(1, "left = tile.load(a)"),
        statement(2, "right = tile.load(b)"),
        statement(3, "for k in range(0, 4, 1)"),
        statement(4, "sum = tile.matmul(left, right)", depth=1),
        statement(6, "out = tile.store(sum)"),
    )
    return FunctionMemory("product", "m:kernel", 6, statements, tiles)


def long_rows():
    """A thousand tiles, with names that hurt."""
    tiles = tuple(
        RecordedTile(HOSTILE, "Vec", (1, 16), "int32", 64 * (at % 50), 64, at + 1, at + 9, PLACE)
        for at in range(1000)
    )
    statements = tuple(statement(at + 1, HOSTILE) for at in range(1008))
    return FunctionMemory(HOSTILE, "m:rows", 1008, statements, tiles)


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("memory")
    record = MemoryRecord(
        program="kernel",
        arch="a2a3",
        capacity={"Vec": 196608, "Mat": 524288, "Acc": 131072},
        functions=(product(), long_rows()),
        sources={"m:kernel": ("/home/me/" + "deep/" * 20 + "m.py", 10)},
    )
    path = directory / "memory.html"
    path.write_text(render(record, directory), encoding="utf-8")
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 700, 1000, 1280, 1920])
def test_the_page_fits_its_window_and_nothing_complains(memory, page, width, scheme):
    tab = page(memory, width, media={"prefers-color-scheme": scheme})
    for kernel in (0, 1):
        choose(tab, "#kernel", str(kernel))
        assert overflow(tab) == 0
        assert cramped(tab) == []
    assert tab.value("window.harmed === undefined")
    assert tab.complaints() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_shows_something_in_its_colours(memory, page, scheme):
    tab = page(memory, 800, 400, media={"prefers-color-scheme": scheme})
    tab.value("document.getElementById('spaces').scrollIntoView()")
    shown = colours(tab.screenshot())
    assert b"\x73\x88\xe0" in shown, "the first tile"
    assert len(shown) > 20


def test_every_tile_is_a_rectangle_where_it_lies(memory, page):
    tab = page(memory)
    assert contents(tab, ".space-map h3")[0].startswith("Matpeak 24 KiB of 512 KiB, 4.7 %")
    boxes = tab.value(
        "[...document.querySelectorAll('.space-map')].map((map) =>"
        " [...map.querySelectorAll('.tile rect')].map((r) =>"
        " ['x', 'y', 'width', 'height'].map((name) => Number(r.getAttribute(name)))))"
    )
    (left, right, late), (total,) = boxes
    assert left[0] < right[0] < total[0] < late[0], "in order of the statements that write them"
    assert left[0] + left[2] == pytest.approx(right[0] + right[2]), "both are read last by one"
    assert right[1] + right[3] == pytest.approx(left[1]), "one lies on the other"
    assert left[3] == pytest.approx(2 * right[3]), "heights are bytes"
    assert late[1] == pytest.approx(left[1]), "the place of one that is dead"


def test_heights_are_of_the_whole_memory_if_asked(memory, page):
    tab = page(memory)
    height = "document.querySelector('.tile rect').getAttribute('height')"
    before = float(tab.value(height))
    assert tab.value("document.querySelectorAll('.limit').length") == 0
    choose(tab, "#scale", "capacity")
    assert float(tab.value(height)) == pytest.approx(before * 24 / 512, rel=0.01)
    assert tab.value("document.querySelectorAll('.limit').length") == 2


def test_keys_go_from_tile_to_tile(memory, page):
    tab = page(memory)
    tab.value("document.querySelector('.tile[tabindex=\"0\"]').focus()")
    assert tab.value(CHOSEN).startswith("left, fp32 [64,64], 16 KiB of Mat at 0")
    press(tab, "ArrowUp")
    assert tab.value(CHOSEN).startswith("right,")
    press(tab, "ArrowRight")
    assert tab.value(CHOSEN).startswith("late,")
    press(tab, "Home")
    assert tab.value(CHOSEN).startswith("left,")
    told = contents(tab, "#tile .facts dd")
    assert told[1] == "Mat, 16,384 bytes, 0 to 16,384"
    assert told[2] == "statement 1: left = tile.load(a)"
    assert told[4].endswith("m.py:11")
    assert contents(tab, "tr[aria-selected=true] .title") == ["left"]
    press(tab, "Escape")
    assert tab.value(CHOSEN) is None
    assert contents(tab, "#tile .facts dd") == []


def test_the_pointer_tells_the_tile_and_the_statement(memory, page):
    tab = page(memory)
    x, y = tab.value(
        "(() => { document.getElementById('map').scrollIntoView();"
        " const b = document.querySelectorAll('.tile')[1].getBoundingClientRect();"
        " return [b.left + b.width / 2, b.top + b.height / 2]; })()"
    )
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    (tip,) = contents(tab, ".tip")
    assert tip.startswith("right fp32 [64, 32], 8 KiB")
    assert "Mat 16,384 to 24,576, statements 2 to 4" in tip
    (told,) = contents(tab, "#statement")
    assert "Statement 3 of 6: for k in range(0, 4, 1)" in told
    assert "alive: Mat 24 KiB" in told


def test_a_name_in_the_table_shows_its_tile(memory, page):
    tab = page(memory)
    click(tab, "#tiles tbody tr:nth-child(4) .opener")
    assert tab.value(CHOSEN).startswith("sum,")
    assert tab.value("document.activeElement.getAttribute('aria-label')").startswith("sum,")


def test_another_kernel_can_be_chosen_in_both_places(memory, page):
    tab = page(memory)
    click(tab, "#kernels tr[data-number='1'] .opener")
    assert tab.value("document.querySelectorAll('.tile').length") == 1000
    assert tab.value("document.querySelectorAll('#tiles tbody tr').length") == 1000
    assert tab.value("document.querySelector('#kernel').value") == "1"
    assert tab.value("document.querySelectorAll('img').length") == 0
    choose(tab, "#kernel", "0")
    assert tab.value("document.querySelector('tr[aria-current]').dataset.number") == "0"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_on_its_background(memory, page, scheme):
    tab = page(memory, media={"prefers-color-scheme": scheme})
    click(tab, "#tiles tbody tr:nth-child(2) .opener")
    assert unreadable(tab) == {}


def test_the_page_reads_without_scripts(memory, page):
    tab = page(memory, 700, scripts=False)
    assert tab.value("document.querySelectorAll('#tiles tbody tr').length") == 1004
    shown = "getComputedStyle(document.querySelector('{}')).display"
    assert tab.value(shown.format("#map")) == "none"
    assert tab.value(shown.format("#tiles tbody")) != "none"
    assert overflow(tab) == 0


def test_a_program_without_tiles_says_so(tmp_path, page):
    path = tmp_path / "none.html"
    path.write_text(render(MemoryRecord("k", "a5", {}, (), {}), tmp_path), encoding="utf-8")
    tab = page(path)
    assert tab.complaints() == []
    assert "no kernel that holds tiles" in tab.value("document.body.innerText")
