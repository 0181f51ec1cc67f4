"""Every command that the pages show runs, and every JSON field they name is there."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import textwrap
from pathlib import Path

import pytest

ROOT = next(
    parent for parent in Path(__file__).parents if (parent / "docs" / "adr" / "README.md").exists()
)
REFERENCE = ROOT / "docs" / "reference" / "store-tools.md"
HOW_TO = ROOT / "docs" / "how-to" / "keep-a-cache-small.md"
MOVE = ROOT / "docs" / "how-to" / "move-a-cache.md"
COMMAND = re.compile(r"^    python -m pypto_store (.+)$", re.MULTILINE)


def commands(page):
    return COMMAND.findall(page.read_text(encoding="utf-8"))


def sections():
    """Heading, commands and JSON object of each part of the reference that has an object."""
    for part in re.split(r"^## ", REFERENCE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        found = re.findall(r"^```json\n(.*?)^```$", part, re.DOTALL | re.MULTILINE)
        if found:
            (shown,) = found
            yield part.partition("\n")[0], COMMAND.findall(part), json.loads(shown)


@pytest.fixture
def house(lived_in, tmp_path):
    """A copy of the house with three versions, whose two first have the keys of the pages."""
    shutil.copytree(lived_in.top, tmp_path / "house", symlinks=True)
    house = type(lived_in)(tmp_path / "house")
    keys = [item["key"] for item in house.command("why", "--kernel", "kernel").document[
        "explanations"]]  # fmt: skip
    house.shown = {"dc35": keys[0], "fba3": keys[1]}
    house.environ["PYPTO_CACHE_REMOTE"] = f"file://{house.top}/remote"
    return house


def run(house, line):
    words = [house.shown.get(word, word) for word in shlex.split(line)]
    return house.command(*words)


@pytest.mark.parametrize("page", [REFERENCE, HOW_TO, MOVE], ids=lambda page: page.stem)
def test_every_command_of_the_page_runs(house, page):
    lines = commands(page)
    assert len(lines) >= 4
    for line in lines:
        done = run(house, line)
        assert (done.status, done.err) == (0, ""), line
        assert done.document["schema_version"] == 1


@pytest.mark.parametrize("name", [name for name, _, _ in sections()])
def test_the_shape_shown_is_the_shape_printed(house, name):
    lines, shown = next((lines, shown) for heading, lines, shown in sections() if heading == name)
    if "fsck" in name:
        (slot,) = house.root.glob("artifacts/v1/*/*/ready/*")
        (slot / "kernel_config.json").unlink()
    if name == "`import`":
        assert house.command("export", "--all", "-o", "kernels.tar.zst").status == 0
    if name == "`pull`":
        assert house.command("push").status == 0
    if name == "`gc`":
        lines = [*lines[:1], "gc --max-size 1 --keep kernel", "gc --max-size 1"]
    printed = [run(house, line).document for line in lines]
    agree(shown, printed, name, {"show": ["entries"]}.get(name.strip("`").split()[0], []))


def agree(shown, printed, where, partial):
    """The printed objects have all that is shown, of the same kind; and nothing that is not."""
    if isinstance(shown, dict):
        objects = [item for item in printed if isinstance(item, dict)]
        assert objects, where
        for item in objects:
            if not set(where.split(".")) & set(partial) and not where.endswith(".inputs"):
                assert item.keys() == shown.keys(), where
            assert item.keys() >= shown.keys(), where
        for key, value in shown.items():
            agree(value, [item[key] for item in objects], f"{where}.{key}", partial)
    elif isinstance(shown, list):
        assert all(isinstance(item, list) for item in printed if item is not None), where
        if shown:
            agree(shown[0], [part for item in printed for part in item or []], where, partial)
    elif shown is not None:
        assert any(type(item) is type(shown) for item in printed), where


def test_the_explanation_shown_is_the_one_printed(house):
    text = REFERENCE.read_text(encoding="utf-8")
    (shown,) = re.findall(r"(?:^    [0-9a-f]{12} of .*\n)(?:^     .*\n)+", text, re.MULTILINE)
    printed = house.on_terminal("why", "--kernel", "kernel", columns=100).out

    def plain(part):
        part = re.sub(r"\b[0-9a-f]{12}\b", "KEY", part)
        part = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME", part)
        return [line.rstrip() for line in part.splitlines()]

    assert plain(printed.split("\n\n")[1]) == plain(textwrap.dedent(shown))


def test_the_exit_status_table_is_that_of_the_code():
    from pypto_store.tools.answer import Status

    text = REFERENCE.read_text(encoding="utf-8")
    shown = [int(number) for number in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)]
    assert shown == [int(status) for status in Status]


def test_every_command_has_a_place_in_the_reference():
    from pypto_store.tools.command_line import COMMANDS

    text = REFERENCE.read_text(encoding="utf-8")
    for name in COMMANDS:
        assert f"`{name}`" in text, name


def test_each_level_of_the_log_is_documented():
    from pypto.jit.log import LEVELS

    text = (ROOT / "docs" / "reference" / "configuration.md").read_text(encoding="utf-8")
    table = text.partition("## The log")[2].partition("##")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)[1:] == list(LEVELS)
