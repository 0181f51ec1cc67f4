"""The include scanner against g++: what the compiler opens is on the list, or there is no list."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pypto.language.includes import scan

HEADERS = [*(f"h{number}.h" for number in range(6)), "a'b.h"]

# Texts that a reader of C++ may get wrong. Each is followed by an include of h5.h that counts.
CASES = {
    "plain": '#include "h0.h"\n#include <h1.h>\n',
    "spaced": '  #\t include   "h0.h"   \n\f\v#include<h1.h>\n',
    "commented out": '// #include "h0.h"\n/* #include "h1.h"\n#include "h2.h" */\n',
    "between comments": '/* a */ # /* b */ include /* c */ "h0.h" // d\n/* \n */ #include "h1.h"\n',
    "comment that spans lines after an include": '#include "h0.h" /*\n#include "h1.h"\n*/\n',
    "comment that ends a directive's line": '#define A /*\n*/ #include "h0.h"\n#include "h1.h"\n',
    "in a string": 'const char* a = "\\\n#include \\"h0.h\\"\\\n";\n',
    "string with quotes": 'const char* a = "\\"/*"; \n#include "h0.h"\nconst char* b = "*/";\n',
    "string with a comment": 'const char* a = "//"; const char* b = "/*";\n#include "h0.h"\n',
    "character": "char a = '\"'; char b = '\\''; int c = 1'000'000;\n#include \"h0.h\"\n//'\n",
    "one digit separator": "int a = 1'000; /* '\n#include \"h0.h\"\n*/\n",
    "apostrophe in a name": '#include <a\'b.h> /*\n#include "h0.h"\n*/\n',
    "raw string": 'const char* a = R"(\n#include "h0.h"\n)";\n#include "h1.h"\n',
    "raw string with a name": 'auto a = u8R"x(\n)"\n#include "h0.h"\n)x";\n#include "h1.h"\n',
    "raw string with a splice": 'auto a = R"(\\\n)\\\n"\n#include "h0.h"\n)";\n#include "h1.h"\n',
    "no raw string": 'auto a = xR"(";\n#include "h0.h"\nauto b = ")";\n',
    "raw prefix apart": '#define R\nauto a = R "(";\n#include "h0.h"\nauto b = ")";\n',
    "spliced prefix": 'auto a = R\\\n"(\n#include "h0.h"\n)";\n',
    "raw string in a condition": '#if 0\nR"(\n#endif\n)"\n#endif\n#include "h0.h"\n',
    "spliced words": '#inc\\\nlude \\\n  "h0.h"\n#include "h\\\n1.h"\n',
    "spliced comment": (
        '// a \\\n#include "h0.h"\n/\\\n/ #include "h1.h"\n/\\\n* #include "h2.h" *\\\n/\n'
    ),
    "splice with blanks": '#include \\ \t\n "h0.h"\n',
    "splice before a hash": '\\\n#include "h0.h"\nint a; \\\n#include "h1.h"\n',
    "digraph": '%:include "h0.h"\n%:if 0\n%:include "h1.h"\n%:endif\n',
    "spliced digraph": '%\\\n: include "h0.h"\n',
    "no directive": 'int a; #include "h0.h"\n',
    "if 0": '#if 0\n#include "h0.h"\n#endif\n#if 0 // why\n#include "h1.h"\n#endif\n',
    "if 0 with else": '#if 0\n#include "h0.h"\n#else\n#include "h1.h"\n#endif\n',
    "if 0 with elif": '#if 0\n#include "h0.h"\n#elif 1\n#include "h1.h"\n#endif\n',
    "nested in if 0": '#if 0\n#if 1\n#include "h0.h"\n#else\n#include "h1.h"\n#endif\n#endif\n',
    "if 0 nested": '#if 1\n#if 0\n#include "h0.h"\n#endif\n#include "h1.h"\n#endif\n',
    "else of a nested if 0": '#if 0\n#if 0\n#else\n#include "h0.h"\n#endif\n#endif\n',
    "apostrophe in if 0": '#if 0\ndon\'t\n#include "h0.h"\n#endif\n#include "h1.h"\n',
    "quote in if 0": '#if 0\n"\n#endif\n#include "h1.h"\n',
    "if 0 in a comment": '/*\n#if 0\n*/\n#include "h0.h"\n',
    "other conditions": (
        '#if 1\n#include "h0.h"\n#else\n#include "h1.h"\n'
        '#endif\n#ifdef NO\n#include "h2.h"\n#endif\n'
    ),
    "imported": '#import "h0.h"\n',
    "trailing text": '#include "h0.h" and more\n#include <h1.h> "h2.h"\n',
    "quotes in a name": '#include <h0.h> // it\'s "\n#include "h1.h" // \'\n',
    "asked for": '#if __has_include("h0.h") && __has_include(<h1.h>)\n#include "h0.h"\n#endif\n',
    "asked with splices": '#if __has_\\\ninclude /* a */ ( "h0.h" )\n#include "h1.h"\n#endif\n',
    "whether it can be asked": (
        '#ifdef __has_include\n#include "h0.h"\n#endif\n#if defined(__has_include)\n#endif\n'
    ),
    "windows line ends": '#include "h0.h"\r\n#if 0\r\n#include "h1.h"\r\n#endif\r\n',
    "no line end": '#include "h0.h"\n#include "h1.h"',
    "byte order mark": '\ufeff#include "h0.h"\n',
    "numbers": 'int a = 0x1p-3; double b = .5e+3; int c = 0xE+1;\n#include "h0.h"\n',
    "a literal suffix": 'auto a = "x"_R; auto b = 1R;\n#include "h0.h"\n',
    "other letters": 'int größe = 1; auto é = "ü";\n#include "h0.h"\n',
    "in a macro's arguments": '#define A(x)\nA(\n#include "h0.h"\n)\n',
    "macro": '#define H "h0.h"\n#include H\n',
    "macro in brackets": "#define H <h0.h>\n#include H\n",
    "macro by parts": "#define H(x) <h##x.h>\n#include H(0)\n",
    "macro in if 0": "#if 0\n#include H\n#endif\n",
    "macro that is asked for": '#define H "h0.h"\n#if __has_include(H)\n#endif\n',
    "next": '#include_next "h0.h"\n',
    "trigraph": '// what??/\n#include "h0.h"\n',
    "line marker": '# 7 "other.cc"\n#include "h0.h"\n',
    "line directive": '#line 7 "elsewhere/other.cc"\n#include "h0.h"\n',
    "dependency": '#pragma GCC dependency "h0.h"\n',
    "pragmas": (
        '#pragma once\n#pragma GCC poison gets\n_Pragma("GCC diagnostic push")\n#include "h0.h"\n'
    ),
    "null directive": '#\n# // nothing\n#include "h0.h"\n',
    "unknown directive in if 0": '#if 0\n#nonsense "\n#include "h0.h"\n#endif\n',
}


@pytest.fixture(scope="module")
def headers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("g++") is None:
        pytest.fail("g++ is needed; install it (on Debian: apt install g++)")
    directory = tmp_path_factory.mktemp("headers")
    for header in HEADERS:
        # Equal files would be one to `#import`.
        (directory / header).write_text(f"// {header}\n")
    return directory


def opened(directory: Path, text: str) -> set[str] | None:
    """What g++ includes, None if it refuses the text."""
    source = directory / "source.cpp"
    source.write_bytes(text.encode())
    result = subprocess.run(
        ["g++", "-std=c++20", "-w", "-MM", "-I.", source.name],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        return None
    words = result.stdout.replace("\\\n", " ").split()
    return set(words[2:])


@pytest.mark.parametrize("name", CASES)
def test_the_list_has_what_the_compiler_opens(headers: Path, name: str) -> None:
    text = CASES[name] + ('\n#include "h5.h"\n' if not CASES[name].endswith('h1.h"') else "")
    found = scan(text.encode())
    truth = opened(headers, text)
    if found.obstacle is not None:
        assert name in OBSTACLES, found.obstacle
        return
    assert name not in OBSTACLES
    assert truth is not None
    listed = {include.name for include in found.includes}
    assert truth <= listed
    if name not in CONDITIONAL:
        assert listed == truth


# What cannot be told from the text alone.
OBSTACLES = {
    "macro",
    "macro in brackets",
    "macro by parts",
    "macro that is asked for",
    "next",
    "trigraph",
    "line marker",
    "dependency",
}
# What depends on conditions, which are taken to hold either way.
CONDITIONAL = {"other conditions", "asked for", "asked with splices", "whether it can be asked"}

_FRAGMENTS = st.sampled_from(
    [
        *(f'#include "h{number}.h"' for number in range(3)),
        "#include <h3.h>",
        "#if 0",
        "#if 1",
        "#else",
        "#elif 0",
        "#endif",
        "#define R",
        "%:",
        "#",
        "include",
        '"h4.h"',
        "H",
        "R",
        "u8R",
        '"',
        "'",
        "(",
        ")",
        "//",
        "/*",
        "*/",
        "/",
        "*",
        "\\",
        "\\ ",
        "\n",
        "\n",
        "\n",
        "\r\n",
        " ",
        "1",
        "x",
        "__has_include",
        "<h4.h>",
    ]
)


@settings(
    max_examples=400,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(_FRAGMENTS, max_size=24).map("".join))
def test_no_text_hides_an_include(headers: Path, text: str) -> None:
    found = scan(text.encode())
    if found.obstacle is None:
        truth = opened(headers, text)
        if truth is not None:
            assert truth <= {include.name for include in found.includes}
