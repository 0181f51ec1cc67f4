"""The scripts that installers write for a wheel's command, and what such a script starts.

pip and uv write a few fixed texts: a line that names the interpreter, then a body that imports one
function and calls it. Anything else could do anything, so it is no launcher:

    script  = first body
    first   = "#!" path LF
            / "#!/bin/sh" LF "'''exec' " quoted ' "$0" "$@"' LF "' '''" LF
    body    = [ "# -*- coding: utf-8 -*-" LF ] [ "import re" LF ] "import sys" LF
              "from " module " import " name LF
              "if __name__ == " ( "'__main__'" / '"__main__"' ) ":" LF
              *argv "    sys.exit(" function "())" LF
    argv    = one of a few known lines that shorten ``sys.argv[0]``

The second form is for paths that are long or have spaces; `quoted` is the path bare, or in single
or double quotes.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass


class UnknownLauncher(ValueError):
    """The text is none that an installer writes; the message says where it differs."""


@dataclass(frozen=True, slots=True)
class Launcher:
    """A command's script: the absolute path of the interpreter it runs, and the function it
    calls, as ``module:function``."""

    interpreter: str
    entry: str


_PLAIN = re.compile(rb"#!([^\s]+)\n")
# Within quotes nothing that a shell would replace or end the quotes at.
_BY_SHELL = re.compile(
    rb"#!/bin/sh\n'''exec' "
    rb"(?:\"([^\"$`\\\n]+)\"|'([^'\\\n]+)'|([^\s\"'$`\\|&;<>()*?#~=%\[\]{}!]+))"
    rb' "\$0" "\$@"\n' + rb"' '''\n"
)
_BODY = re.compile(
    r"(?:# -\*- coding: utf-8 -\*-\n)?(?:import re\n)?import sys\n"
    r"from (?P<module>[A-Za-z_][\w.]*) import (?P<name>[A-Za-z_]\w*)\n"
    r"if __name__ == (?:'__main__'|\"__main__\"):\n"
    r"(?P<argv>(?:    .+\n)*?)"
    r"    sys\.exit\((?P<function>[A-Za-z_][\w.]*)\(\)\)\n?",
    re.ASCII,
)
# What the installers do about the names that other systems give to scripts.
_ARGV_LINES = frozenset(
    (
        r"    sys.argv[0] = re.sub(r'(-script\.pyw|\.exe)?$', '', sys.argv[0])",
        r"    sys.argv[0] = re.sub(r'(-script\.pyw?|\.exe)?$', '', sys.argv[0])",
        "    sys.argv[0] = sys.argv[0].removesuffix('.exe')",
        '    sys.argv[0] = sys.argv[0].removesuffix(".exe")',
        "    if sys.argv[0].endswith('.exe'):",
        '    if sys.argv[0].endswith("-script.pyw"):',
        '    elif sys.argv[0].endswith(".exe"):',
        "        sys.argv[0] = sys.argv[0][:-4]",
        "        sys.argv[0] = sys.argv[0][:-11]",
    )
)
_INTERPRETER_NAME = re.compile(r"python[0-9.]*[td]?")


def parse_launcher(content: bytes) -> Launcher:
    """The launcher that `content` is. Raises UnknownLauncher."""
    interpreter, body = _first_line(content)
    if not _INTERPRETER_NAME.fullmatch(os.path.basename(interpreter)):
        raise UnknownLauncher(f"it is run by {interpreter}, which is no Python interpreter by name")
    try:
        found = _BODY.fullmatch(body.decode("utf-8"))
    except UnicodeDecodeError:
        found = None
    if found is None or not _ARGV_LINES.issuperset(found["argv"].splitlines()):
        raise UnknownLauncher("its text is not what pip or uv writes for a wheel's command")
    if found["function"].partition(".")[0] != found["name"]:
        raise UnknownLauncher(f"it imports {found['name']} and calls {found['function']}")
    return Launcher(interpreter, f"{found['module']}:{found['function']}")


def _first_line(content: bytes) -> tuple[str, bytes]:
    """The interpreter's path, and what follows the lines that name it."""
    by_shell = _BY_SHELL.match(content)
    if by_shell:
        path = next(group for group in by_shell.groups() if group is not None)
        rest = content[by_shell.end() :]
    else:
        plain = _PLAIN.match(content)
        if plain is None:
            raise UnknownLauncher("its first line names no interpreter in the way of pip or uv")
        path, rest = plain[1], content[plain.end() :]
    if not path.startswith(b"/") or b"\0" in path:
        raise UnknownLauncher("the interpreter it names is no absolute path")
    return os.fsdecode(path), rest
