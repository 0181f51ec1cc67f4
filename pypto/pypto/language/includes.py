"""Which files a C++ text includes, by its own words alone.

The text is read as the preprocessor reads it up to the point where macros matter: spliced lines,
comments, strings, raw strings, digraphs and ``#if 0`` blocks. No other condition is evaluated, so
an include under one is reported as if it were taken. What cannot be told from the text (a macro
that names a file, a search that starts elsewhere) is an `Obstacle`: whoever relies on the list
must not go on. Nothing here touches a file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

# Stands for a spliced line end. A text that holds it by itself is an obstacle.
_SPLICE = "\0"
_SPLICED_LINE_END = re.compile(r"\\[ \t\v\f\r]*\n")

_TOKEN = re.compile(
    r"""
      (?P<newline>\n)
    | (?P<blank>[ \t\v\f\r\0]+)
    | (?P<line_comment>/\0*/[^\n]*)
    | (?P<block_comment>/\0*\*(?:[^*]|\*(?!\0*/))*(?:\*\0*/|\Z))
    | (?P<word>[A-Za-z_$\x80-\xff][A-Za-z0-9_$\x80-\xff\0]*)
    | (?P<number>\.?[0-9](?:[eEpP]\0*[+-]|'\0*[A-Za-z0-9_]|[A-Za-z0-9_.$\x80-\xff\0])*)
    | (?P<string>"(?:[^"\\\n]|\\\0*[^\n\0]|\\)*(?:"|(?=\n)|\Z))
    | (?P<character>'(?:[^'\\\n]|\\\0*[^\n\0]|\\)*(?:'|(?=\n)|\Z))
    | (?P<hash>\#|%\0*:)
    | (?P<other>[^\n \t\v\f\r\0/A-Za-z_$\x80-\xff0-9."'\#%()<]+|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_RAW_PREFIXES = frozenset({"R", "LR", "uR", "UR", "u8R"})
_RAW_OPENING = re.compile(r'"([^ ()\\\t\v\f\n\0]{0,16})\(')
_HEADER_NAME = re.compile(
    r'(?:[ \t\v\f\r\0]|/\0*\*(?:[^*]|\*(?!\0*/))*\*\0*/)*(?:"([^"\n]*)"|<([^>\n]*)>)'
)
_BLANK = frozenset({"blank", "line_comment", "block_comment"})
_CONDITIONS = frozenset({"if", "ifdef", "ifndef"})
_BRANCHES = frozenset({"elif", "elifdef", "elifndef", "else"})
# Text that makes the assembler open a file, which no include says.
_ASSEMBLER = re.compile(r"""\.(?:incbin\b|include[ \t]*\\?["'])""")


@dataclass(frozen=True, slots=True)
class Include:
    """A file that is named literally. `quoted` is the spelling, ``"name"`` or ``<name>``.

    A `query` (``__has_include``) only asks whether there is such a file. `line` counts from 1.
    """

    name: str
    quoted: bool
    line: int
    query: bool = False

    @property
    def spelling(self) -> str:
        """The name as it is written."""
        return f'"{self.name}"' if self.quoted else f"<{self.name}>"


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why the list of includes may lack one, and the line, from 1, that says so."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class IncludeList:
    """The includes in the order of the text, and the first obstacle if there is one."""

    includes: tuple[Include, ...]
    obstacle: Obstacle | None


def scan(data: bytes) -> IncludeList:
    """The includes of a C++ file with the bytes `data`. Never raises."""
    return _Scanner(data).run()


class _Scanner:
    def __init__(self, data: bytes) -> None:
        text = data.removeprefix(b"\xef\xbb\xbf").decode("latin-1")
        self._strange = _strange(text)
        self._text = _SPLICED_LINE_END.sub(_SPLICE, text)
        self._includes: list[Include] = []
        self._obstacles: list[Obstacle] = []
        # One entry an open condition: whether its current branch is surely left out.
        self._dead: list[bool] = []

    def run(self) -> IncludeList:
        if self._strange is not None:
            return IncludeList((), self._strange)
        embedded = _ASSEMBLER.search(self._text)
        if embedded is not None:
            self._stop(embedded.start(), "the assembler may be told to open a file")
        position, fresh = 0, True
        while position < len(self._text):
            kind, end = self._token(position)
            if kind == "newline":
                fresh = True
            elif kind == "hash" and fresh:
                # The line's end stays, so that the next line is a fresh one.
                end = self._directive(position, end)
            elif kind not in _BLANK:
                fresh = False
            position = end
        first = min(self._obstacles, key=lambda item: item.line, default=None)
        return IncludeList(tuple(self._includes), first)

    def _token(self, position: int) -> tuple[str, int]:
        """The kind of the token at `position` and where it ends."""
        match = _TOKEN.match(self._text, position)
        assert match is not None and match.lastgroup is not None
        if match.lastgroup == "word" and match.group().replace(_SPLICE, "") in _RAW_PREFIXES:
            opening = _RAW_OPENING.match(self._text, match.end())
            if opening is not None:
                closing = self._text.find(f'){opening[1]}"', opening.end())
                end = len(self._text) if closing < 0 else closing + len(opening[1]) + 2
                return "string", end
        return match.lastgroup, match.end()

    def _directive(self, start: int, position: int) -> int:
        """Take in the directive whose ``#`` is at `start`; gives where its line ends."""
        tokens: list[tuple[str, int, int]] = []
        while position < len(self._text):
            kind, end = self._token(position)
            if kind == "newline":
                break
            if kind not in _BLANK:
                tokens.append((kind, position, end))
            position = end
        if not tokens:
            return position
        kind, at, end = tokens[0]
        name = self._plain(at, end)
        if kind == "number" and not any(self._dead):
            self._stop(start, "a line marker may move the search for includes")
        elif name in _CONDITIONS:
            value = [self._plain(a, b) for _, a, b in tokens[1:]]
            self._dead.append(name == "if" and value == ["0"])
        elif name == "endif":
            if self._dead:
                self._dead.pop()
        elif name in _BRANCHES and self._dead:
            self._dead[-1] = False
        if any(self._dead):
            return position
        if name in ("include", "import"):
            return self._include(start, end, position)
        if name in ("include_next", "embed"):
            self._stop(start, f"#{name} does not say which file it means")
        elif name == "pragma":
            if [self._plain(a, b) for _, a, b in tokens[1:3]] == ["GCC", "dependency"]:
                self._stop(start, "#pragma GCC dependency looks at a file")
        else:
            self._queries(name, tokens)
        return position

    def _include(self, start: int, position: int, line_end: int) -> int:
        found = _HEADER_NAME.match(self._text, position)
        if found is None:
            self._stop(start, "the name of an included file comes from a macro")
            return line_end
        quoted = found[1] is not None
        self._add((found[1] if quoted else found[2]), quoted, start, query=False)
        # Quotes of the other kind in the name would have misled the search for the line's end.
        return self._line_end(found.end())

    def _line_end(self, position: int) -> int:
        while position < len(self._text):
            kind, end = self._token(position)
            if kind == "newline":
                return position
            position = end
        return position

    def _queries(self, directive: str, tokens: list[tuple[str, int, int]]) -> None:
        """Note the files that ``__has_include`` asks for."""
        words = [self._plain(a, b) for _, a, b in tokens]
        for index, word in enumerate(words):
            at = tokens[index][1]
            if word in ("__has_include_next", "__has_embed"):
                if directive in _CONDITIONS | _BRANCHES and not self._called(words, index):
                    continue  # whether there is such an operator
                self._stop(at, f"{word} does not say which file it means")
            elif word == "__has_include":
                if directive in _CONDITIONS | _BRANCHES and not self._called(words, index):
                    continue
                name = None
                if self._called(words, index):
                    name = _HEADER_NAME.match(self._text, tokens[index + 1][2])
                if name is None:
                    self._stop(at, "the name of a file that is asked for comes from a macro")
                else:
                    quoted = name[1] is not None
                    self._add((name[1] if quoted else name[2]), quoted, at, query=True)

    def _called(self, words: list[str], index: int) -> bool:
        return words[index + 1 : index + 2] == ["("]

    def _add(self, name: str, quoted: bool, at: int, *, query: bool) -> None:
        name = name.replace(_SPLICE, "")
        try:
            decoded = name.encode("latin-1").decode("utf-8")
        except UnicodeDecodeError:
            self._stop(at, "the name of a file is not UTF-8")
            return
        if not decoded or "\\" in decoded:
            self._stop(at, f"the name of a file is {decoded!r}")
            return
        self._includes.append(Include(decoded, quoted, self._line(at), query))

    def _stop(self, at: int, reason: str) -> None:
        self._obstacles.append(Obstacle(self._line(at), reason))

    def _line(self, at: int) -> int:
        return 1 + self._text.count("\n", 0, at) + self._text.count(_SPLICE, 0, at)

    def _plain(self, start: int, end: int) -> str:
        return self._text[start:end].replace(_SPLICE, "")


# What compilers, or versions of one, read differently: a text that holds it is not judged.
_STRANGE: tuple[tuple[Callable[[str], int], str], ...] = (
    (lambda text: text.find("\0"), "the file holds a zero byte"),
    (lambda text: _first(re.finditer(r"\r(?!\n)", text)), "the file holds a lone carriage return"),
    (lambda text: _first(re.finditer(r"\?\?[=/]", text)), "the file holds a trigraph"),
)


def _first(found: Iterator[re.Match[str]]) -> int:
    return next((match.start() for match in found), -1)


def _strange(text: str) -> Obstacle | None:
    for find, reason in _STRANGE:
        at = find(text)
        if at >= 0:
            return Obstacle(1 + text.count("\n", 0, at), reason)
    return None
