"""The page of :mod:`pypto.tools.ir_trace`: every pass of a compilation, and what it changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pypto.tools.passes_dump import DumpedPass
from pypto_store.tools.html_page import Page, asset, embedded_json, house_style, text, visible

_PACKAGE = "pypto.tools"


def render(build: Path, passes: Sequence[DumpedPass]) -> str:
    """The page about the passes of the program that was compiled to the directory `build`."""
    page = Page(
        title=f"{build.name} - pass by pass",
        style=house_style() + asset(_PACKAGE, "assets/ir_trace.css"),
        script=asset(_PACKAGE, "assets/ir_diff.js") + asset(_PACKAGE, "assets/ir_trace.js"),
        body=_body(build, passes),
        data=embedded_json(_data(passes)),
    )
    return page.render()


def _data(passes: Sequence[DumpedPass]) -> dict[str, object]:
    """Passes leave most lines as they are: each line is there once, and then by its number."""
    numbers: dict[str, int] = {}
    places: dict[str, int] = {"": 0}
    listed = [
        {
            "number": one.number,
            "name": visible(one.name),
            "seconds": one.seconds,
            "lines": [numbers.setdefault(line, len(numbers)) for line in one.lines],
            "places": [places.setdefault(place, len(places)) for place in one.places],
            "sections": [[visible(s.name), s.first, s.end] for s in one.sections],
        }
        for one in passes
    ]
    return {
        "lines": [visible(line) for line in numbers],
        "places": [visible(place) for place in places],
        "passes": listed,
    }


def _body(build: Path, passes: Sequence[DumpedPass]) -> Iterator[str]:
    yield "<header>"
    yield '<a class="skip" href="#pass-head">Skip to the program</a>'
    yield "<h1>The program, pass by pass</h1>"
    total = sum(one.seconds or 0.0 for one in passes)
    took = f", {_took(total)} together" if total else ""
    yield (
        f'<p class="where"><code><bdi>{text(str(build))}</bdi></code>, '
        f"{len(passes)} dumps{took}</p>"
    )
    yield '</header><main class="trace">'
    yield from _passes(passes)
    yield from _program(passes[-1])
    yield "</main>"


def _took(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.2f} ms"


def _passes(passes: Sequence[DumpedPass]) -> Iterator[str]:
    yield '<nav aria-labelledby="passes-head"><section class="side">'
    yield '<div class="head"><h2 id="passes-head">Passes</h2></div>'
    yield '<ol id="passes">'
    slowest = max((one.seconds or 0.0 for one in passes), default=0.0)
    for at, one in enumerate(passes):
        took, bar = "", ""
        if one.seconds is not None:
            width = 100 * one.seconds / slowest if slowest else 0.0
            took = f'<span class="took">{_took(one.seconds)}</span>'
            bar = (
                '<svg class="bar" viewBox="0 0 100 3" preserveAspectRatio="none" '
                f'aria-hidden="true"><rect width="{width:.1f}" height="3"/></svg>'
            )
        yield (
            f'<li data-at="{at}"><span class="name">{one.number} {text(one.name)}</span>'
            f'<span class="facts-line">{took}<span class="changed">{len(one.lines)} lines</span>'
            f"</span>{bar}</li>"
        )
    yield "</ol>"
    yield (
        '<p class="keys live-only"><kbd>[</kbd> <kbd>]</kbd> pass, <kbd>n</kbd> <kbd>p</kbd> '
        "change, <kbd>/</kbd> search</p></section></nav>"
    )


def _program(last: DumpedPass) -> Iterator[str]:
    yield '<section class="program" aria-labelledby="pass-head">'
    yield f'<div class="head"><h2 id="pass-head" tabindex="-1">{text(last.name)}</h2>'
    yield '<p id="summary" class="live-only" role="status"></p>'
    yield (
        '<p class="still-only">The program after the last pass. With scripts, this page shows '
        "every pass and what it changed.</p></div>"
    )
    yield '<div class="controls live-only">'
    yield '<div class="narrow-pass"><label for="pass">Pass</label><select id="pass"></select></div>'
    yield '<div><label for="base">Compare with</label><select id="base"></select></div>'
    yield (
        '<div><label for="view">View</label><select id="view">'
        '<option value="sides">side by side</option><option value="one">one column</option>'
        "</select></div>"
    )
    yield '<div><label for="function">Function</label><select id="function"></select></div>'
    yield (
        '<div class="wide"><label for="search">Search all passes</label>'
        '<input type="search" id="search" autocomplete="off" spellcheck="false"></div>'
    )
    yield (
        '<label class="check" for="folded"><input type="checkbox" id="folded"> '
        "changed parts only</label></div>"
    )
    yield '<div id="found" class="live-only" hidden></div>'
    yield '<div id="code" class="live-only" aria-label="Program text"></div>'
    lines = "\n".join(text(line) for line in last.lines)
    yield f'<pre class="still-only">{lines}</pre></section>'
