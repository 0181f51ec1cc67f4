"""One HTML file that needs nothing beside itself: the frame that every page of the tools has.

The page has no address of anything outside it and forbids itself to load any: its policy names the
digests of its own style and scripts. What a page is about (names, paths, reasons) is text: escaped,
with characters that would change how other text reads made visible.
"""

from __future__ import annotations

import base64
import hashlib
import html
import importlib.resources
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

_LIVE = 'document.documentElement.classList.add("live");'

# Control characters, lone surrogates, and what changes the direction or hides in a line.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


@dataclass(frozen=True, slots=True)
class Page:
    """A page. `title` is text, `body` is markup; the script finds `data` as JSON in ``#data``.

    With scripts the root element has the class ``live``, before anything is drawn.
    """

    title: str
    style: str
    script: str
    body: Iterable[str]
    data: str

    def render(self) -> str:
        """The file."""
        policy = (
            f"default-src 'none'; style-src {_source(self.style)}; "
            f"script-src {_source(_LIVE)} {_source(self.script)}; "
            "base-uri 'none'; form-action 'none'"
        )
        parts = [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{text(self.title)}</title>",
            f"<style>{self.style}</style>",
            f"<script>{_LIVE}</script>",
            "</head>",
            "<body>",
            *self.body,
            f'<script type="application/json" id="data">{self.data}</script>',
            f"<script>{self.script}</script>",
            "</body>",
            "</html>",
        ]
        return "\n".join(parts) + "\n"


def visible(text: str) -> str:
    """`text` with every character that cannot be seen, or moves others, spelled out."""
    return _UNSEEN.sub(lambda found: f"\\u{{{ord(found[0]):x}}}", text)


def text(text: str) -> str:
    """`text` as markup that shows it."""
    return html.escape(visible(text))


def asset(package: str, name: str) -> str:
    """A text file of a package."""
    return importlib.resources.files(package).joinpath(*name.split("/")).read_text("utf-8")


def house_style() -> str:
    """The look that all pages have: colours of both themes, head, figures, controls, tables."""
    return asset("pypto_store.tools", "report_assets/report.css")


def embedded_json(document: object) -> str:
    """A document as JSON that a script element can hold: no "<" at all."""
    compact = json.dumps(document, separators=(",", ":"))
    # Inside a script element only "</script" and "<!--" mean something, and both begin so.
    return compact.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _source(content: str) -> str:
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
