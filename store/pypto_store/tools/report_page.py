"""A survey as one HTML file that needs nothing beside itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pypto_store.keys import State
from pypto_store.tools.html_page import Page, asset, house_style
from pypto_store.tools.html_page import text as _text
from pypto_store.tools.report_values import (
    age,
    condition,
    embedded,
    level,
    moment,
    told,
)
from pypto_store.tools.survey import Content, Survey, Surveyed
from pypto_store.tools.terminal import size_text

_SHARED_CONTENTS = 20
_DIGITS = 12
_JOINTS = re.compile(r"[:._/](?=.)")
_COLUMNS = (
    ("kernel", "Kernel", ""),
    ("key", "Key", ""),
    ("state", "State", ""),
    ("level", "CPU level", ""),
    ("files", "Files", "number"),
    ("size", "Size", "number"),
    ("shared", "Shared", "number"),
    ("published", "Published", "number"),
    ("used", "Last used", "number"),
)


def render(survey: Survey, now: float) -> str:
    """The page; `now` is seconds since the epoch. ASCII but for what names in the store hold."""
    body = [
        *_header(survey, now),
        "<main>",
        *_figures(survey),
        *_entries(survey, now),
        *_shared(survey),
        *_environments(survey, now),
        "</main>",
    ]
    page = Page(
        title=f"{survey.root} - a pypto store",
        style=house_style(),
        script=asset("pypto_store.tools", "report_assets/report.js"),
        body=body,
        data=embedded(survey, now),
    )
    return page.render()


# -- the parts of the page


def _header(survey: Survey, now: float) -> Iterator[str]:
    yield "<header>"
    yield '<a class="skip" href="#entries">Skip to the entries</a>'
    yield "<h1>What this pypto store holds</h1>"
    yield (
        f'<p class="where"><code><bdi>{_text(survey.root)}</bdi></code>, '
        f"looked at on {moment(now)}</p>"
    )
    yield "</header>"


def _figures(survey: Survey) -> Iterator[str]:
    ready, generated = survey.count(State.READY), survey.count(State.GENERATED)
    keys = len({entry.row.key for entry in survey.entries})
    damaged = survey.damaged
    share = f"{survey.saved / survey.payload_size:.0%}" if survey.payload_size else "nothing"
    yield '<section aria-label="Figures"><dl class="figures">'
    yield _figure("Keys", f"{keys:,}", "requests that were answered")
    yield _figure(
        "Entries", f"{len(survey.entries):,}", f"{ready:,} ready, {generated:,} generated"
    )
    yield _figure("Payload", size_text(survey.payload_size), "as if nothing were shared")
    yield _figure("On disk", size_text(survey.disk_size), f"{share} saved by sharing")
    yield _figure(
        "Damaged",
        f"{damaged:,}",
        "seen from outside; fsck reads all",
        "bad" if damaged else "",
    )
    yield _figure("Hits", "not counted", "a lookup writes nothing down")
    yield "</dl>"
    yield from _space(survey)
    yield "</section>"


def _figure(name: str, value: str, note: str, look: str = "") -> str:
    values = f'<dd class="value">{value}</dd><dd class="note">{note}</dd>'
    return f"<div{_class(look)}><dt>{name}</dt>{values}</div>"


def _space(survey: Survey) -> Iterator[str]:
    """One bar: what became of the payload."""
    if not survey.payload_size:
        return
    parts = [
        ("ready", "binaries (READY) on disk", survey.disk_sizes[State.READY]),
        ("generated", "sources (GENERATED) on disk", survey.disk_sizes[State.GENERATED]),
        ("saved", "saved by sharing", max(0, survey.saved)),
    ]
    total = sum(size for _, _, size in parts) or 1
    widths = [(name, f"{said}, {size_text(size)}", size / total) for name, said, size in parts]
    yield '<div class="space"><h3>What became of the payload</h3>'
    yield (
        '<svg viewBox="0 0 1000 14" preserveAspectRatio="none" role="img" '
        f'aria-label="{_text("; ".join(said for _, said, _ in widths))}">'
    )
    left = 0.0
    for name, _, width in widths:
        yield f'<rect class="fill-{name}" x="{left:.1f}" width="{1000 * width:.1f}" height="14"/>'
        left += 1000 * width
    yield '</svg><ul class="legend">'
    for name, said, _ in widths:
        swatch = f'<rect class="fill-{name}" width="1" height="1"/>'
        yield f'<li><svg viewBox="0 0 1 1" aria-hidden="true">{swatch}</svg>{_text(said)}</li>'
    yield "</ul></div>"


def _entries(survey: Survey, now: float) -> Iterator[str]:
    conditions = sorted({condition(entry) for entry in survey.entries})
    environments = sorted({entry.row.environment for entry in survey.entries})
    levels = sorted({level(entry) for entry in survey.entries} - {""})
    yield '<section aria-labelledby="entries-head"><div class="head">'
    yield '<h2 id="entries-head">Entries</h2>'
    yield (
        "<p>Kernels are named where the store keeps evidence of them; the last use is what the "
        "file system tells, to the day. "
        '<span class="live-only">A key opens its files and components.</span>'
        '<span class="still-only">With scripts this table can be sorted and searched; '
        "<code>python -m pypto_store show KEY</code> tells the rest.</span></p></div>"
    )
    yield '<div class="controls live-only">'
    yield (
        '<div class="wide"><label for="search">Search kernels, keys, files and digests</label>'
        '<input type="search" id="search" autocomplete="off" spellcheck="false"></div>'
    )
    for name, title, values in (
        ("state", "State", [(value, value) for value in conditions]),
        ("level", "CPU level", [(value, value) for value in levels]),
        ("environment", "Environment", [(value, value[:_DIGITS]) for value in environments]),
    ):
        yield _choice(name, title, [("", "all"), *values])
    yield _choice("sort", "Sort by", [(name, title) for name, title, _ in _COLUMNS], "narrow-only")
    yield "</div>"
    yield '<table id="entries" class="cards">'
    yield '<caption class="unseen">Every entry of the store</caption><thead><tr>'
    for column, title, look in _COLUMNS:
        yield f'<th scope="col" data-column="{column}"{_class(look)}>{title}</th>'
    yield '</tr></thead><tbody class="still">'
    for entry in survey.entries:
        yield _row(entry, now)
    yield "</tbody></table>"
    if not survey.entries:
        yield '<p class="empty still-only">There is no entry.</p>'
    yield '<div class="pages live-only"><span id="status" role="status"></span>'
    yield (
        '<div id="pages" hidden><button type="button">Previous</button>'
        '<button type="button">Next</button></div></div>'
    )
    yield "</section>"


def _choice(name: str, title: str, values: Sequence[tuple[str, str]], of: str = "") -> str:
    options = "".join(
        f'<option value="{_text(value)}">{_text(shown)}</option>' for value, shown in values
    )
    return (
        f'<div{_class(of)}><label for="{name}">{title}</label>'
        f'<select id="{name}">{options}</select></div>'
    )


def _class(names: str) -> str:
    return f' class="{names}"' if names else ""


def _row(entry: Surveyed, now: float) -> str:
    row = entry.row
    state = condition(entry)
    shown = told(entry, now)
    return "".join(
        (
            "<tr>",
            _title(entry.kernel, entry.damage or ""),
            _cell("Key", _digest(row.key)),
            _cell("State", f'<span class="state {state}">{state}</span>'),
            _cell("CPU level", _text(level(entry))),
            _cell("Files", "" if row.files is None else str(row.files), "number"),
            _cell("Size", shown["size"], "number"),
            _cell("Shared", shown["shared"], "number"),
            _cell("Published", shown["age"], "number", shown["published"]),
            _cell("Last used", shown["use"], "number", shown["used"]),
            "</tr>",
        )
    )


def _title(text: str, damage: str = "") -> str:
    """The first cell of a row, which names it and says what is wrong with it."""
    shown = '<span class="quiet">unknown</span>'
    if text:
        # Names are long words: they break behind what joins their parts.
        shown = f"<bdi>{_JOINTS.sub(lambda joint: f'{joint[0]}<wbr>', _text(text))}</bdi>"
    if damage:
        shown += f'<span class="damage"><bdi>{_text(damage)}</bdi></span>'
    return f'<th scope="row" class="title">{shown}</th>'


def _cell(label: str, markup: str, of: str = "", title: str = "") -> str:
    """Any other cell; where rows are cards, it shows its label."""
    more = f' title="{title}"' if title else ""
    return f'<td data-label="{label}"{_class(of)}{more}>{markup}</td>'


def _digest(digest: str) -> str:
    return f'<code title="{digest}">{digest[:_DIGITS]}</code>'


def _table(caption: str, *columns: str) -> str:
    """The beginning of a table of cards; a column whose name ends in "#" holds numbers."""
    heads = "".join(
        f'<th scope="col"{_class("number" if name.endswith("#") else "")}>{name.rstrip("#")}</th>'
        for name in columns
    )
    return (
        f'<table class="cards"><caption class="unseen">{caption}</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>"
    )


def _shared(survey: Survey) -> Iterator[str]:
    shared = [content for content in survey.contents if content.saved][:_SHARED_CONTENTS]
    if not shared:
        return
    saving = sum(content.saved > 0 for content in survey.contents)
    names = _names(survey, shared)
    yield '<section aria-labelledby="shared-head"><div class="head">'
    yield '<h2 id="shared-head">Shared content</h2>'
    yield (
        f"<p>{saving:,} of {len(survey.contents):,} distinct file contents are stored once for "
        f"several entries. What saves most comes first{_only(len(shared), saving)}.</p></div>"
    )
    yield _table(
        "Contents that entries share",
        *("A file with it", "SHA-256", "Size#", "Entries#", "Copies#", "Saved#"),
    )
    for content in shared:
        yield "".join(
            (
                "<tr>",
                _title(names[content.sha256]),
                _cell("SHA-256", _digest(content.sha256)),
                _cell("Size", size_text(content.size), "number"),
                _cell("Entries", f"{content.entries:,}", "number"),
                _cell("Copies", f"{content.copies:,}", "number"),
                _cell("Saved", size_text(content.saved), "number"),
                "</tr>",
            )
        )
    yield "</tbody></table></section>"


def _only(shown: int, of: int) -> str:
    return f"; these are the first {shown}" if of > shown else ""


def _names(survey: Survey, contents: Sequence[Content]) -> dict[str, str]:
    """One path of each content."""
    wanted = {content.sha256 for content in contents}
    names: dict[str, str] = {}
    for entry in survey.entries:
        for record in () if entry.row.manifest is None else entry.row.manifest.files:
            if record.sha256 in wanted:
                names.setdefault(record.sha256, record.path)
    return names


def _environments(survey: Survey, now: float) -> Iterator[str]:
    groups: dict[str, list[Surveyed]] = {}
    for entry in survey.entries:
        groups.setdefault(entry.row.environment, []).append(entry)
    if not groups:
        return
    yield '<section aria-labelledby="environments-head"><div class="head">'
    yield '<h2 id="environments-head">Environments</h2>'
    yield (
        "<p>Each set of tools has entries of its own. An environment whose newest entry is old "
        "belongs to tools that are probably gone; <code>gc</code> can drop its entries.</p></div>"
    )
    yield _table("Environments", "Environment", "Keys#", "Entries#", "Payload#", "Newest entry#")
    newest = {name: max((e.published or 0.0) for e in group) for name, group in groups.items()}
    for name in sorted(groups, key=lambda name: (-newest[name], name)):
        group = groups[name]
        yield "".join(
            (
                f'<tr><th scope="row" class="title">{_digest(name)}</th>',
                _cell("Keys", f"{len({e.row.key for e in group}):,}", "number"),
                _cell("Entries", f"{len(group):,}", "number"),
                _cell("Payload", size_text(sum(e.row.size or 0 for e in group)), "number"),
                _cell("Newest entry", age(newest[name] or None, now), "number"),
                "</tr>",
            )
        )
    yield "</tbody></table></section>"
