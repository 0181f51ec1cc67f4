"""The commands on a real terminal: tables that fit, and no JSON."""

from __future__ import annotations

import pytest

COMMANDS = [
    ["ls"],
    ["show", "KEY"],
    ["show", "KEY", "--inputs"],
    ["why", "--kernel", "kernel"],
    ["why", "KEY"],
    ["fsck", "--dry-run"],
    ["gc", "--max-size", "1"],
]


@pytest.mark.parametrize("columns", [80, 100])
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_it_fits(lived_in, words, columns):
    listed = lived_in.command("ls").document["entries"]
    words = [listed[0]["key"] if word == "KEY" else word for word in words]
    done = lived_in.on_terminal(*words, columns=columns)
    assert done.status == 0, done.out
    lines = done.out.splitlines()
    # Paths are left to the terminal to wrap, so that they can be copied whole.
    own = [line for line in lines if not line.startswith(str(lived_in.root))]
    assert own and max(map(len, own)) <= columns
    assert not done.out.lstrip().startswith("{")
    if words[0] != "fsck":
        assert listed[0]["key"][:12] in done.out


def test_json_on_request(lived_in):
    done = lived_in.on_terminal("ls", "--json", columns=80)
    assert len(done.document["entries"]) == 4


def test_an_error_is_one_line(lived_in):
    done = lived_in.on_terminal("show", "0" * 64, columns=80)
    assert done.status == 1
    assert done.out.startswith("error: ") and "Traceback" not in done.out
