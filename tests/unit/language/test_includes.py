"""The include scanner: names, spellings, lines, and what it will not judge.

That it agrees with a compiler is tested beside one, in tests/integration/extern.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypto.language.includes import Include, scan


def test_names_spellings_and_lines() -> None:
    found = scan(
        b'#include "a.h"\n\n/*\n*/ #include <sub/b.h>\n#inc\\\nlude "c.h"\n#include "d.h"\n'
    )
    assert found.includes == (
        Include("a.h", quoted=True, line=1),
        Include("sub/b.h", quoted=False, line=4),
        Include("c.h", quoted=True, line=5),
        Include("d.h", quoted=True, line=7),
    )
    assert found.obstacle is None
    assert [include.spelling for include in found.includes[:2]] == ['"a.h"', "<sub/b.h>"]


def test_a_question_is_no_inclusion() -> None:
    found = scan(b'#if __has_include("a.h") && !__has_include(<b.h>)\n#include "c.h"\n#endif\n')
    assert found.includes == (
        Include("a.h", quoted=True, line=1, query=True),
        Include("b.h", quoted=False, line=1, query=True),
        Include("c.h", quoted=True, line=2),
    )


@pytest.mark.parametrize(
    "text",
    [
        '// #include "no.h"',
        '/* #include "no.h" */',
        '#if 0\n#include "no.h"\n#endif',
        "#if /* never */ 0 // really\n#include MACRO\n#include_next <no.h>\n#endif",
        "#if 0\n#if __has_include(MACRO)\n#endif\n#endif",
        'auto text = R"(\n#include "no.h"\n)";',
        'auto text = u8R"end(\n)"\n#include "no.h"\n)end";',
        'auto text = "\\\n#include \\"no.h\\"";',
        'int x; #include "no.h"',
    ],
)
def test_what_does_not_count(text: str) -> None:
    found = scan(text.encode())
    assert found.includes == ()
    assert found.obstacle is None


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("int a;\n#include NAME\n", 2, "from a macro"),
        ("#include\n", 1, "from a macro"),
        ("#if 1\n\n#if __has_include(NAME)\n#endif\n#endif\n", 3, "from a macro"),
        ("#define ASK __has_include\n", 1, "from a macro"),
        ("#include_next <a.h>\n", 1, "#include_next"),
        ("#if __has_include_next(<a.h>)\n#endif\n", 1, "__has_include_next"),
        ("#if 1\n#embed <a.bin>\n#endif\n", 2, "#embed"),
        ('int a;\n# 1 "elsewhere.cc" 1\n', 2, "line marker"),
        ('#pragma GCC dependency "a.h"\n', 1, "dependency"),
        ('int a;\nasm(".incbin \\"a.bin\\"");\n', 2, "assembler"),
        ('int a;\nasm(".include \\"a.s\\"");\n', 2, "assembler"),
        ("int a; // what??/\nint b;\n", 1, "trigraph"),
        ("int a;\n??=include <a.h>\n", 2, "trigraph"),
        ("int a;\nint b;\r#include <a.h>\n", 2, "carriage return"),
        ("int a;\n\nint\0 b;\n", 3, "zero byte"),
        ('#include "a\\b.h"\n', 1, "name of a file"),
        ('#include ""\n', 1, "name of a file"),
        ('\n#include "\udce9.h"\n', 2, "not UTF-8"),
        ("#include A\n#include B\n", 1, "from a macro"),
    ],
)
def test_what_cannot_be_told_from_the_text(text: str, line: int, reason: str) -> None:
    found = scan(text.encode("utf-8", "surrogateescape"))
    assert found.obstacle is not None
    assert found.obstacle.line == line
    assert reason in found.obstacle.reason


def test_a_line_end_of_windows_and_a_byte_order_mark_are_read_over() -> None:
    found = scan(b'\xef\xbb\xbf#include "a.h"\r\n#if 0\r\n#include MACRO\r\n#endif\r\n')
    assert found.includes == (Include("a.h", quoted=True, line=1),)
    assert found.obstacle is None


@given(st.binary(max_size=200))
def test_no_bytes_are_too_strange(data: bytes) -> None:
    scan(data)
    scan(b"#include " + data)
    scan(b"#if 0\n" + data + b"\n#endif\n")
