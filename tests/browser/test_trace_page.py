"""A program pass by pass, looked at in a real browser."""

from __future__ import annotations

import time

import pytest
from page_checks import choose, click, colours, contents, overflow, press, settle, unreadable
from pypto.tools.passes_dump import DumpedPass, sections
from pypto.tools.trace_page import render

HOSTILE = '</script><script>window.harmed=1</script><img src=x onerror="harmed=1">'
FRONT = f"""\
# pypto program: kernel

# orchestration, from m:kernel
def kernel(x: pl.Tensor[[64, 64], pl.FP32]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="rows"):
        a: pl.Tile[[64, 64], pl.FP32, pl.Mem.Vec] = pl.tile.load(x, 0, 0, space=pl.Mem.Vec)
        b: pl.Tile[[64, 64], pl.FP32, pl.Mem.Vec] = pl.tile.exp(a)
    return x

# inline, from m:gone
def gone(x):
    return "{HOSTILE}"
"""
SPLIT = """\
# pypto program: kernel

# incore, from m:kernel
def rows(x: pl.Tensor[[64, 64], pl.FP32]):
    a: pl.Tile[[64, 64], pl.FP32, pl.Mem.Vec] = pl.tile.load(x, 0, 0, space=pl.Mem.Vec)
    b: pl.Tile[[64, 64], pl.FP32, pl.Mem.Vec] = pl.tile.exp(a)

# orchestration, from m:kernel
def kernel(x: pl.Tensor[[64, 64], pl.FP32]):
    rows(x)
    rows(x)
    rows(x)
    rows(x)
    return x
"""
ROWS = "#code .row"


def dumped(number, name, text, seconds=None):
    lines = tuple(text.splitlines())
    told = (f"kernel.py:{30 + at}" if "tile." in line else "" for at, line in enumerate(lines))
    places = tuple(told)
    file = f"{number:02d}_{name}.py"
    return DumpedPass(number, name, file, lines, places, sections(lines), seconds)


def written(directory, passes):
    path = directory / "trace.html"
    path.write_text(render(directory, passes), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """Four dumps: of the parser, of one pass that splits, one idle, one that adds."""
    planned = SPLIT.replace("space=", "addr=0, space=").replace("exp(a)", "exp(a, addr=16384)")
    return written(
        tmp_path_factory.mktemp("trace"),
        (
            dumped(0, "frontend", FRONT),
            dumped(1, "split", SPLIT, 0.002),
            dumped(2, "idle", SPLIT, 0.0001),
            dumped(3, "plan", planned, 0.001),
        ),
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 700, 1000, 1280, 1920])
def test_the_page_fits_its_window_and_nothing_complains(trace, page, width, scheme):
    tab = page(trace, width, media={"prefers-color-scheme": scheme})
    for at in range(4):
        choose(tab, "#pass", str(at))
        for view in ("sides", "one"):
            choose(tab, "#view", view)
            assert overflow(tab) == 0
    assert tab.value("window.harmed === undefined")
    assert tab.value("document.querySelectorAll('img').length") == 0
    assert tab.complaints() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_shows_something_in_its_colours(trace, page, scheme):
    shown = colours(page(trace, 800, 1000, media={"prefers-color-scheme": scheme}).screenshot())
    assert (b"\xe2\xf4\xea" if scheme == "light" else b"\x16\x30\x1f") in shown, "new lines"
    assert len(shown) > 20


def test_a_pass_is_shown_beside_the_one_before(trace, page):
    tab = page(trace)
    settle(tab)
    assert contents(tab, "#pass-head") == ["1 split"]
    assert contents(tab, "#passes .changed") == ["12 lines", "+9 -7", "+0 -0", "+2 -2"]
    # Functions are compared by name, wherever they stand: the first line of the entry stayed.
    assert "def kernel(x: pl.Tensor[[64, 64], pl.FP32]):" in contents(tab, "#code code[class='']")
    click(tab, "#passes li:nth-child(4) button")
    assert "".join(contents(tab, "#code .new .changed")) == "addr=0, , addr=16384"
    assert tab.value("document.querySelectorAll('#code code.gone').length") == 2


def test_lines_say_where_they_come_from(trace, page):
    tab = page(trace)
    click(tab, "#passes li:nth-child(2) button")
    row = "[...document.querySelectorAll('#code code.new')].find((e) => /load/.test(e.innerText))"
    assert tab.value(f"{row}.querySelector('.place').textContent") == "kernel.py:34"
    assert contents(tab, "#code .place").count("kernel.py:35") >= 1


def test_one_column_has_old_lines_above_new_ones(trace, page):
    tab = page(trace)
    click(tab, "#passes li:nth-child(4) button")
    choose(tab, "#view", "one")
    changed = tab.value(
        "[...document.querySelectorAll('#code .row code')].map((code) => code.className)"
        ".filter(Boolean)"
    )
    assert changed == ["gone", "new", "gone", "new"]


def test_any_two_passes_can_be_compared(trace, page):
    tab = page(trace)
    click(tab, "#passes li:nth-child(4) button")
    choose(tab, "#base", "0")
    assert "against 0 frontend" in contents(tab, "#summary")[0]
    assert "gone" in "".join(contents(tab, "#code code.gone"))
    choose(tab, "#base", "-1")
    assert tab.value("document.querySelectorAll('#code .new, #code .gone').length") == 0
    assert tab.value("document.querySelector('#view').disabled")


def test_unchanged_parts_can_be_folded(trace, page):
    tab = page(trace)
    click(tab, "#passes li:nth-child(4) button")
    before = tab.value(f"document.querySelectorAll('{ROWS}').length")
    click(tab, "#folded")
    assert tab.value(f"document.querySelectorAll('{ROWS}').length") < before
    click(tab, "#code .fold")
    assert tab.value(f"document.querySelectorAll('{ROWS}').length") == before
    click(tab, "#passes li:nth-child(3) button")
    assert "changed nothing" in contents(tab, "#code .empty")[0]


def test_a_search_covers_every_pass(trace, page):
    tab = page(trace)
    tab.value("document.body.focus()")
    press(tab, "/")
    assert tab.value("document.activeElement.id") == "search"
    choose(tab, "#search", "EXP(a")
    settle(tab)
    assert contents(tab, "#found button") == [
        "0 frontend: 1", "1 split: 1", "2 idle: 1", "3 plan: 1",
    ]  # fmt: skip
    assert "".join(contents(tab, "mark")) == "exp(a" * 2, "the line on both sides"
    click(tab, "#found button:nth-of-type(4)")
    assert contents(tab, "#pass-head") == ["3 plan"]
    assert "tile.exp(a, addr=16384)" in contents(tab, ".current")[0]
    choose(tab, "#search", "no such thing")
    settle(tab)
    assert contents(tab, "#found .quiet") == ["No pass has it."]


def test_keys_go_from_pass_to_pass_and_from_change_to_change(trace, page):
    tab = page(trace)
    press(tab, "]")
    press(tab, "]")
    assert contents(tab, "#pass-head") == ["3 plan"]
    press(tab, "n")
    assert "load(" in contents(tab, ".current")[0]
    press(tab, "[")
    assert contents(tab, "#pass-head") == ["2 idle"]
    assert tab.value("location.hash") == "#2"


def test_a_function_can_be_gone_to(trace, page):
    tab = page(trace)
    click(tab, "#passes li:nth-child(4) button")
    options = contents(tab, "#function option")
    assert options == ["all", "rows (changed)", "kernel"]
    choose(tab, "#function", tab.value("document.querySelectorAll('#function option')[2].value"))
    assert "orchestration" in contents(tab, ".current")[0]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", ["sides", "one"])
def test_text_can_be_read_on_its_background(trace, page, scheme, view):
    tab = page(trace, media={"prefers-color-scheme": scheme})
    choose(tab, "#view", view)
    choose(tab, "#search", "tile")
    settle(tab)
    assert unreadable(tab) == {}
    click(tab, "#passes li:nth-child(4) button")
    assert unreadable(tab) == {}


def test_a_long_program_is_shown_fast(tmp_path, page):
    """Ten passes of eight thousand lines, each of which changes every line of half of them."""
    passes = []
    for number in range(10):
        text = "".join(
            f"def f{function}(x):\n"
            + "".join(
                f"    v{line}: pl.Tile[[16, 16], pl.FP32] = pl.tile.add(v{line - 1}, x"
                f"{f', step={number}' if function % 2 else ''})\n"
                for line in range(400)
            )
            for function in range(20)
        )
        passes.append(dumped(number, f"pass{number}", text, 0.01))
    path = written(tmp_path, passes)
    assert path.stat().st_size < 8_000_000
    begin = time.monotonic()
    tab = page(path)
    click(tab, "#passes li:nth-child(10) button")
    shown = time.monotonic() - begin
    assert tab.value(f"document.querySelectorAll('{ROWS}').length") < 2000, "what is near alone"
    assert contents(tab, "#summary")[0].endswith("+4000 -4000")
    # Two seconds on an idle machine; a page that draws every row takes a minute.
    assert shown < 20
    press(tab, "p")
    settle(tab)
    assert "v0: " in contents(tab, ".current")[0]
    assert tab.complaints() == []


def test_the_page_reads_without_scripts(trace, page):
    tab = page(trace, 700, scripts=False)
    assert "tile.exp(a, addr=16384)" in contents(tab, "pre")[0]
    assert len(contents(tab, "#passes li")) == 4
    shown = "getComputedStyle(document.querySelector('{}')).display"
    assert tab.value(shown.format(".controls")) == "none"
    assert tab.value(shown.format("pre")) != "none"
    assert overflow(tab) == 0


def test_paper_gets_every_line(trace, page):
    tab = page(trace)
    tab.call("Emulation.setEmulatedMedia", media="print")
    assert tab.value("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert len(tab.call("Page.printToPDF")["data"]) > 10_000
