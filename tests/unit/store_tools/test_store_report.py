"""The page that `report` writes, as text, and what it is told from."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest
from pypto_store import ArtifactStore, State, iterate_entries
from pypto_store.evidence import EvidenceRecord, Input
from pypto_store.testing import GENERATED, PAYLOAD, payload_builder, sample_key, snapshot
from pypto_store.tools.html_page import visible
from pypto_store.tools.report_page import render
from pypto_store.tools.report_values import age
from pypto_store.tools.survey import survey

NOW = 2_000_000_000.0
HOSTILE = "</script><img src=x onerror=alert(1)>&\"'"
VOID = {"meta", "input", "wbr", "rect"}


class Page(HTMLParser):
    """The tree of a page as events; a tag that is not closed, or closed twice, is an error."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.raw, self.text = [], [], {}, []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("script", "style"):
            self.raw.setdefault(self.open[-1], []).append(data)
        else:
            self.text.append(data)

    @property
    def data(self):
        return json.loads(next(text for text in self.raw["script"] if text.startswith("{")))

    def named(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def looked_at(root):
    return survey(str(root), iterate_entries(root), lambda _: None)


def page_of(root):
    return Page(render(looked_at(root), NOW))


def test_the_page_names_nothing_outside_itself(root):
    text = render(looked_at(root), NOW)
    page = Page(text)
    for tag, attributes in page.tags:
        assert not {"src", "action", "srcset", "data", "poster", "style"} & set(attributes), tag
        assert attributes.get("href", "#").startswith("#")
        assert not [name for name in attributes if name.startswith("on")]
    assert not {"link", "img", "iframe", "object", "base", "form"} & {tag for tag, _ in page.tags}
    assert not re.search(r"url\(|@import|https?://|fetch\(|XMLHttp|innerHTML|eval\(", text)


def test_the_policy_lets_the_pages_own_style_and_scripts_run_and_nothing_else(root):
    page = page_of(root)
    (policy,) = [
        meta["content"]
        for meta in page.named("meta")
        if meta.get("http-equiv") == "Content-Security-Policy"
    ]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"

    def source(text):
        digest = hashlib.sha256(text.encode()).digest()
        return f"'sha256-{base64.b64encode(digest).decode()}'"

    scripts = [text for text in page.raw["script"] if not text.startswith("{")]
    assert rules["style-src"].split() == [source(text) for text in page.raw["style"]]
    assert rules["script-src"].split() == [source(text) for text in scripts]


def test_names_of_the_store_are_text_in_both_forms(tmp_path):
    root = tmp_path / HOSTILE.replace("/", "_")
    name = HOSTILE.replace("/", "_") + "\u202egnp.cpp"
    store = ArtifactStore(root)
    payload = {"kernel_config.json": b"{}", name: b"text"}
    for key in ("one", "two"):
        store.get_or_build(
            sample_key(key), GENERATED, payload_builder(payload), private_parent=tmp_path / "p"
        )
    record = EvidenceRecord.of("source", sample_key("one").source, [Input("f", "n", "v")], HOSTILE)
    store.keep_evidence([record])
    text = render(looked_at(root), NOW)
    assert "<img" not in text
    assert "\u202e" not in text
    page = Page(text)
    assert visible(name) in page.data["paths"]
    kernels = {entry["kernel"] for entry in page.data["entries"]}
    assert kernels == {HOSTILE, ""}
    assert page.data["root"] == str(root)
    shown = "".join(page.text)
    assert HOSTILE in shown
    assert str(root) in shown
    assert visible(name) in shown  # among the shared contents


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain/name_é.cpp", "plain/name_é.cpp"),
        ("a\u202eb", "a\\u{202e}b"),
        ("a\x1b[31m\n", "a\\u{1b}[31m\\u{a}"),
        ("\udcff\ufeff\u200b", "\\u{dcff}\\u{feff}\\u{200b}"),
    ],
)
def test_what_cannot_be_seen_is_spelled_out(text, shown):
    assert visible(text) == shown
    shown.encode("utf-8")


def test_both_forms_say_the_same(root):
    page = page_of(root)
    data = page.data
    cells = [text for text in page.text if text.strip()]
    for entry in data["entries"]:
        assert entry["key"][:12] in cells
        assert entry["told"]["size"] in cells
    rows = [attributes for attributes in page.named("th") if attributes.get("scope") == "row"]
    assert len(rows) >= len(data["entries"]) == 4
    paths = {data["paths"][path] for entry in data["entries"] for path, _, _ in entry["files"]}
    assert paths == set(PAYLOAD)
    digests = {content[0] for content in data["contents"]}
    assert digests == {hashlib.sha256(content).hexdigest() for content in PAYLOAD.values()}


def test_sharing_is_counted_by_what_is_on_disk(root):
    found = looked_at(root)
    sizes = {}
    for path, (mode, inode, data) in snapshot(root).items():
        if path.startswith("artifacts") and mode & 0o100000 and "manifest" not in path:
            sizes[inode] = len(data)
    assert found.disk_size == sum(sizes.values())
    assert found.payload_size == 4 * sum(map(len, PAYLOAD.values()))
    assert found.saved == found.payload_size - found.disk_size > 0
    # The sources of two keys are the same files, and so are their binaries; the states share none.
    shared = {entry.row.state: entry.shared / entry.row.size for entry in found.entries}
    assert shared == {State.GENERATED: 1, State.READY: 1}
    biggest = max(found.contents, key=lambda content: content.size)
    assert biggest == (hashlib.sha256(PAYLOAD["prebuilt/kernel_0.bin"]).hexdigest(), 51200, 4, 2)
    assert biggest.saved == 2 * 51200


def test_damage_that_shows_from_outside_is_told(root):
    rows = list(iterate_entries(root))
    os.unlink(os.path.join(rows[0].path, "kernel_config.json"))
    with open(os.path.join(rows[1].path, "artifact_manifest.json"), "w") as file:
        file.write("{")
    place = os.path.join(rows[2].path, "empty")
    os.unlink(place)
    with open(place, "w") as file:
        file.write("full")
    found = looked_at(root)
    assert found.damaged == 3
    assert [entry.damage is None for entry in found.entries].count(True) == 1
    told = " ".join(entry.damage for entry in found.entries if entry.damage)
    assert "'kernel_config.json': No such file" in told
    assert "'empty' is not a file of 0 bytes" in told
    shown = "".join(page_of(root).text)
    assert "'empty' is not a file of 0 bytes" in shown


def test_times_are_those_of_the_manifest(root):
    for number, row in enumerate(iterate_entries(root)):
        os.utime(os.path.join(row.path, "artifact_manifest.json"), (NOW - 50 * number, NOW - 100))
    found = looked_at(root)
    assert [entry.published for entry in found.entries] == [NOW - 100] * 4
    assert [entry.used for entry in found.entries] == [NOW, NOW - 50, None, None]


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (5, "just now"),
        (-5, "just now"),
        (-500, "in the future"),
        (61, "1 min ago"),
        (2 * 3600, "2 h ago"),
        (86400, "1 day ago"),
        (13 * 86400, "13 days ago"),
        (70 * 86400, "2 months ago"),
        (1000 * 86400, "2 years ago"),
    ],
)
def test_ages_have_one_unit(seconds, told):
    assert age(NOW - seconds, NOW) == told


def test_an_empty_store_has_a_page(tmp_path):
    (tmp_path / "root").mkdir()
    page = page_of(tmp_path / "root")
    assert page.data["entries"] == []
    assert "There is no entry." in "".join(page.text)


def test_the_command_tells_what_the_page_says(root, command, on_terminal, tmp_path):
    before = snapshot(root)
    done = command("report", "--root", root, "--html", tmp_path / "r.html")
    assert (done.status, done.err) == (0, "")
    told = done.document
    assert (told["keys"], told["entries"], told["ready"], told["generated"]) == (2, 4, 2, 2)
    assert told["saved_size"] == told["payload_size"] - told["disk_size"]
    assert told["hits"] is None
    assert told["html_size"] == (tmp_path / "r.html").stat().st_size
    shown = on_terminal("report", "--root", root, "--html", tmp_path / "r.html").out
    assert "4 entries, 0 damaged" in shown
    assert snapshot(root) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.html", "root"]


def test_places_that_cannot_be_written_are_told(root, command, tmp_path):
    for place, told in ((root / "r.html", "lies in the store"), (tmp_path / "x/y", "No such file")):
        done = command("report", "--root", root, "--html", place)
        assert (done.status, told in done.err) == (2, True)
    done = command("report", "--root", tmp_path / "none", "--html", tmp_path / "r.html")
    assert done.status == 2
    assert not (tmp_path / "r.html").exists()


def test_the_page_goes_to_standard_output_where_asked(root):
    words = [sys.executable, "-m", "pypto_store", "report", "--root", root, "--html", "-"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert len(Page(done.stdout).data["entries"]) == 4
    assert json.loads(done.stderr)["html"] == "-"


def test_states_are_counted(root):
    found = looked_at(root)
    assert (found.count(State.READY), found.count(State.GENERATED)) == (2, 2)
