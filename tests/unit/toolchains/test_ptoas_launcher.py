from __future__ import annotations

import os

import pytest
from pypto_toolchains.ptoas_launcher import Launcher, UnknownLauncher, parse_launcher

PIP = r"""#!/opt/tools/bin/python3.11
# -*- coding: utf-8 -*-
import re
import sys
from ptoas._cli import main
if __name__ == '__main__':
    sys.argv[0] = re.sub(r'(-script\.pyw|\.exe)?$', '', sys.argv[0])
    sys.exit(main())
"""
LATER_PIP = """#!/opt/tools/bin/python3.11
import sys
from ptoas._cli import main
if __name__ == '__main__':
    sys.argv[0] = sys.argv[0].removesuffix('.exe')
    sys.exit(main())
"""
UV = """#!/opt/tools/bin/python3.11
# -*- coding: utf-8 -*-
import sys
from ptoas._cli import main
if __name__ == "__main__":
    if sys.argv[0].endswith("-script.pyw"):
        sys.argv[0] = sys.argv[0][:-11]
    elif sys.argv[0].endswith(".exe"):
        sys.argv[0] = sys.argv[0][:-4]
    sys.exit(main())
"""
FIRST = "#!/opt/tools/bin/python3.11\n"


def by_shell(quoted: str) -> str:
    """The launcher in the form for long paths and spaces."""
    return PIP.replace(FIRST, f"#!/bin/sh\n'''exec' {quoted} \"$0\" \"$@\"\n' '''\n")


@pytest.mark.parametrize("text", [PIP, LATER_PIP, UV, PIP.rstrip("\n")])
def test_reads_what_installers_write(text: str) -> None:
    assert parse_launcher(text.encode()) == Launcher("/opt/tools/bin/python3.11", "ptoas._cli:main")


@pytest.mark.parametrize(
    ("quoted", "path"),
    [
        ('"/opt/my tools/python"', "/opt/my tools/python"),
        ("'/opt/my $tools/python'", "/opt/my $tools/python"),
        ("/opt/very-long/python3", "/opt/very-long/python3"),
    ],
)
def test_reads_the_form_for_long_paths_and_spaces(quoted: str, path: str) -> None:
    assert parse_launcher(by_shell(quoted).encode()).interpreter == path


def test_reads_a_path_that_is_no_text() -> None:
    odd = b"#!/opt/\xff/python\n" + PIP.removeprefix(FIRST).encode()
    assert os.fsencode(parse_launcher(odd).interpreter) == b"/opt/\xff/python"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (PIP.replace(FIRST, "#!/usr/bin/env python3\n"), "first line"),
        (PIP.replace(FIRST, "#!/opt/tools/bin/python3.11 -I\n"), "first line"),
        (PIP.replace(FIRST, "#! /opt/tools/bin/python3.11\n"), "first line"),
        (PIP.replace(FIRST, "#!/usr/bin/env\n"), "no Python interpreter"),
        (PIP.replace(FIRST, "#!python\n"), "absolute"),
        (
            by_shell('"/opt/$HOME/python"'),
            "by name",
        ),
        (
            by_shell("/opt/a;b/python"),
            "by name",
        ),
        (
            by_shell("/opt/python -E"),
            "by name",
        ),
        (PIP.replace(FIRST, '#!/bin/sh\nexec /opt/python "$0" "$@"\n'), "interpreter"),
        (PIP.replace(FIRST, ""), "first line"),
        (PIP + "import os\n", "text"),
        (PIP.replace("import re\n", "import os\n"), "text"),
        (PIP.replace("    sys.exit", "    import os; sys.argv[0]\n    sys.exit"), "text"),
        (PIP.replace("sys.exit(main())", "sys.exit(main(1))"), "text"),
        (PIP.replace("sys.exit(main())", "sys.exit(other())"), "calls other"),
        (PIP.replace("ptoas._cli", "ptoas._cli; import os"), "text"),
        ("", "first line"),
        ("\x7fELF", "first line"),
    ],
)
def test_takes_nothing_else_for_a_launcher(text: str, told: str) -> None:
    with pytest.raises(UnknownLauncher, match=told):
        parse_launcher(text.encode())


def test_takes_no_binary_text_for_a_launcher() -> None:
    with pytest.raises(UnknownLauncher):
        parse_launcher(PIP.encode() + b"# \xff\n")
