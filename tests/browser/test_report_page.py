"""The report of a root, looked at in a real browser."""

from __future__ import annotations

import pytest
from page_checks import click, colours, cramped, overflow, unreadable
from pypto_store import ArtifactStore
from pypto_store.evidence import EvidenceRecord, Input
from pypto_store.testing import GENERATED, READY, payload_builder, ready_spec, sample_key
from pypto_store.tools.report_page import render
from pypto_store.tools.selection import rows_of
from pypto_store.tools.survey import survey

NOW = 2_000_000_000.0
HOSTILE = '</script><script>window.harmed=1</script><img src=x onerror="harmed=1">'
LONG = "a_module_with_quite_a_name.submodule:" + "kernel" * 12
ROWS = "[...document.querySelectorAll('#entries tbody tr[data-number]')]"
KERNELS = f"{ROWS}.map((row) => row.cells[0].textContent)"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A page about three kernels, an unknown one and one damaged entry, with names that hurt."""
    directory = tmp_path_factory.mktemp("report")
    store = ArtifactStore(directory / "root")
    names = {"one": "m:small", "two": LONG, "three": HOSTILE}
    for number, key in enumerate(("one", "two", "three", "four")):
        payload = {
            "kernel_config.json": b"{}",
            f"kernels/{HOSTILE.replace('/', '_')}.cpp": b"x" * (10 ** (number + 1)),
        }
        specs = [GENERATED] if key == "four" else [GENERATED, READY, ready_spec("x86-64")]
        for spec in specs:
            store.get_or_build(
                sample_key(key), spec, payload_builder(payload), private_parent=directory / "p"
            )
        if key in names:
            source = sample_key(key).source
            inputs = [Input("f", "text", "value")]
            store.keep_evidence([EvidenceRecord.of("source", source, inputs, names[key])])
    found = store.lookup(sample_key("one"), READY)
    (found.entry.path / "kernel_config.json").unlink()
    root = str(directory / "root")
    path = directory / "report.html"
    found = survey(root, rows_of(root), lambda _: None)
    path.write_text(render(found, NOW), encoding="utf-8")
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 400, 768, 1000, 1280, 1920])
def test_the_page_fits_its_window_and_nothing_complains(report, page, width, scheme):
    tab = page(report, width, media={"prefers-color-scheme": scheme})
    assert overflow(tab) == 0
    for _ in range(3):
        click(tab, "#entries .opener[aria-expanded=false]")
    assert overflow(tab) == 0
    assert cramped(tab) == []
    assert tab.value("document.querySelectorAll('.details').length") == 3
    assert tab.value("document.getElementById('status').textContent") == "10 entries"
    assert tab.complaints() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_shows_something_in_its_colours(report, page, scheme):
    shown = colours(page(report, 800, 500, media={"prefers-color-scheme": scheme}).screenshot())
    background = b"\xf6\xf7\xf9" if scheme == "light" else b"\x13\x16\x1b"
    assert background in shown
    assert len(shown) > 50


def test_text_can_be_read_on_its_background(report, page):
    for scheme in ("light", "dark"):
        tab = page(report, media={"prefers-color-scheme": scheme})
        click(tab, "#entries .opener")
        assert unreadable(tab) == {}, scheme


def test_columns_sort_both_ways(report, page):
    tab = page(report)
    sizes = f"{ROWS}.map((row) => row.cells[5].textContent)"
    assert tab.value(KERNELS)[-1] == "unknown"
    click(tab, "[data-column=size] button")
    down = tab.value(sizes)
    assert down[:3] == ["9.8 KiB", "1002 B", "1002 B"]
    assert tab.value("document.querySelector('[aria-sort]').dataset.column") == "size"
    assert tab.value("document.querySelector('[aria-sort]').ariaSort") == "descending"
    click(tab, "[data-column=size] button")
    assert tab.value(sizes) == down[::-1]
    assert tab.value("document.querySelector('[aria-sort]').ariaSort") == "ascending"


def test_filters_and_the_search_narrow_the_rows(report, page):
    tab = page(report)
    choose = (
        "(() => {{ const c = document.getElementById('{}'); c.value = '{}';"
        " c.dispatchEvent(new Event('{}')); }})()"
    )
    tab.value(choose.format("state", "damaged", "change"))
    assert tab.value("document.getElementById('status').textContent") == "1 of 10 entries"
    assert "No such file" in tab.value(KERNELS)[0]
    tab.value(choose.format("state", "", "change"))
    tab.value(choose.format("search", "submodule GENERATED", "input"))
    tab.value("new Promise((done) => setTimeout(done, 200))")
    assert tab.value(KERNELS) == [LONG]
    tab.value(choose.format("search", "no such thing", "input"))
    tab.value("new Promise((done) => setTimeout(done, 200))")
    assert "No entry fits" in tab.value("document.querySelector('#entries tbody').textContent")


def test_names_are_text_whatever_they_say(report, page):
    tab = page(report)
    for _ in range(10):
        click(tab, "#entries .opener[aria-expanded=false]")
    assert tab.value("document.querySelectorAll('#entries .files').length") == 10
    shown = tab.value("document.querySelector('#entries').textContent")
    assert HOSTILE in shown
    assert HOSTILE.replace("/", "_") in shown
    assert tab.value("window.harmed === undefined")
    assert tab.value("document.querySelectorAll('img').length") == 0
    assert tab.complaints() == []


def test_the_page_reads_without_scripts(report, page):
    tab = page(report, 400, scripts=False)
    # The protocol still looks into a page whose own scripts are off.
    assert len(tab.value("[...document.querySelectorAll('#entries tbody tr')]")) == 10
    assert overflow(tab) == 0
    shown = "getComputedStyle(document.querySelector('{}')).display"
    assert tab.value(shown.format(".controls")) == "none"
    assert tab.value(shown.format(".still-only")) != "none"
    assert LONG in tab.value("document.querySelector('#entries').textContent")
    assert len(colours(tab.screenshot())) > 50


def test_the_page_may_load_nothing(report, page):
    tab = page(report)
    tab.value("document.body.append(Object.assign(new Image(), {src: 'http://127.0.0.1:9/x.png'}))")
    tab.value("new Promise((done) => setTimeout(done, 100))")
    assert "Content Security Policy" in str(tab.complaints())


def test_paper_gets_every_row_and_no_controls(report, page):
    tab = page(report)
    tab.call("Emulation.setEmulatedMedia", media="print")
    assert tab.value("getComputedStyle(document.querySelector('.controls')).display") == "none"
    assert len(tab.call("Page.printToPDF")["data"]) > 10_000


def test_tables_say_what_their_cells_are(report, page):
    tab = page(report, 400)
    nodes = tab.call("Accessibility.getFullAXTree")["nodes"]
    roles = [node["role"]["value"] for node in nodes if "role" in node]
    assert roles.count("table") >= 2
    assert roles.count("rowheader") >= 10
    assert {"heading", "main", "searchbox", "columnheader"} <= set(roles)
    named = {
        node["name"]["value"] for node in nodes if node.get("role", {}).get("value") == "combobox"
    }
    assert named >= {"State", "CPU level", "Environment"}
