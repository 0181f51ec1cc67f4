"""What every command has in common, shown on `ls` and `show`."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from pypto_store import EntryRow, State, iterate_entries
from pypto_store.testing import PAYLOAD, READY, sample_key, snapshot
from pypto_store.tools.answer import CommandError
from pypto_store.tools.command_line import COMMANDS, Edge, run
from pypto_store.tools.selection import rows_of_key

KEY = sample_key("one").digest.hex


def shown(text):
    """What is left of a terminal's text without its colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_ls_and_show_print_json_where_no_terminal_is(root, command):
    listed = command("ls", "--root", root)
    assert (listed.status, listed.err) == (0, "")
    assert listed.document["schema_version"] == 1
    assert listed.document["root"] == str(root)
    assert [entry["state"] for entry in listed.document["entries"]].count("ready") == 2
    shown = command("show", "--root", root, KEY[:8]).document
    assert shown["key"] == KEY
    assert {entry["key"] for entry in shown["entries"]} == {KEY}
    assert {file["path"] for file in shown["entries"][0]["files"]} == set(PAYLOAD)
    assert set(shown["entries"][0]["components"]) == {name for name, _ in sample_key().components()}


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("words", [["ls"], ["show", KEY]])
def test_a_terminal_gets_tables_that_fit(root, on_terminal, words, width):
    done = on_terminal(*words, "--root", root, width=width)
    assert (done.status, done.err) == (0, "")
    lines = [line for line in shown(done.out).splitlines() if not line.startswith(str(root))]
    assert max(map(len, lines)) <= width
    assert KEY[:12] in done.out
    assert not done.out.startswith("{")
    if words == ["ls"]:
        assert "4 entries, 0 damaged" in shown(done.out)
    else:
        assert "kernels/aiv/add.cpp" in done.out
        assert READY.digest.hex[:16] in done.out


def test_json_is_for_whoever_asks_on_a_terminal(root, on_terminal):
    done = on_terminal("ls", "--root", root, "--json")
    assert len(done.document["entries"]) == 4


def test_the_root_may_come_from_the_environment(root, command):
    environ = {"PYPTO_CACHE_DIR": str(root)}
    assert len(command("ls", environ=environ).document["entries"]) == 4
    elsewhere = command("ls", "--root", root.parent, environ=environ)
    assert elsewhere.document["entries"] == []


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (["ls"], "give --root DIRECTORY, or set PYPTO_CACHE_DIR"),
        (["export", "--all", "-o", "x"], "give --root DIRECTORY, or set PYPTO_CACHE_DIR"),
        (["pull"], "give --root DIRECTORY, or a --bundle, or set PYPTO_CACHE_DIR"),
    ],
)
def test_without_a_root_it_says_what_names_one(command, words, remedy):
    done = command(*words)
    assert (done.status, done.out) == (2, "")
    assert done.err == f"error: no store is named; {remedy}\n"


@pytest.mark.parametrize("words", [["ls"], ["push", "--remote", "file:///x"]])
def test_a_root_that_is_empty_is_not_the_working_directory(command, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    done = command(*words, "--root", "")
    assert (done.status, done.out) == (2, "") and "--root is empty" in done.err
    assert not list(tmp_path.iterdir())


def test_a_prefix_has_to_name_one_key(root, command):
    assert command("show", "--root", root, KEY[:10]).document["key"] == KEY
    absent = command("show", "--root", root, "0123456789abcdef" * 4)
    assert (absent.status, absent.out) == (1, "")
    assert "0123456789abcdef" in absent.err and "`ls`" in absent.err
    for word in ("", "../etc", KEY.upper(), f"{KEY}0"):
        assert command("show", "--root", root, word).status == 2


def test_the_keys_that_a_prefix_may_mean_are_listed():
    keys = [f"ab{number:062x}" for number in range(12)]
    rows = [EntryRow(f"/r/{key}", "e" * 64, key, State.READY, None, "") for key in keys]
    with pytest.raises(CommandError) as refused:
        rows_of_key(rows, "ab", "/r")
    assert refused.value.status == 1
    listed = [key for key in keys if key in str(refused.value)]
    assert listed == keys[:10] and "and 2 more" in str(refused.value)
    assert [row.key for row in rows_of_key(rows, keys[3], "/r")] == [keys[3]]


def test_a_root_that_is_none_is_said(tmp_path, command):
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "STORE").write_bytes(b"pypto-store 99\n")
    for name, reason in (
        ("absent", "No such file"),
        ("file", "Not a directory"),
        ("other", "pypto-store 99"),
    ):
        done = command("ls", "--root", tmp_path / name)
        assert (done.status, done.out) == (2, "")
        assert name in done.err and reason in done.err, done.err


def test_damage_is_a_row(root, command, on_terminal):
    row = next(iter(iterate_entries(root)))
    with open(f"{row.path}/artifact_manifest.json", "ab") as file:
        file.write(b" ")
    entries = command("ls", "--root", root).document["entries"]
    (damaged,) = [entry for entry in entries if entry["damage"] is not None]
    assert (damaged["path"], damaged["size"], damaged["spec"]) == (row.path, None, None)
    assert "1 damaged" in on_terminal("ls", "--root", root).out
    assert "canonical" in on_terminal("show", "--root", root, row.key).out


def test_looking_writes_nothing(root, command):
    before = snapshot(root)
    for name in ("ls", "show"):
        command(name, "--root", root, *([KEY] if name == "show" else []))
    assert snapshot(root) == before


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_explains_itself(name, capsys):
    with pytest.raises(SystemExit) as stopped:
        run([name, "--help"], Edge({}, sys.stdout, sys.stderr))
    assert stopped.value.code == 0
    told = capsys.readouterr().out
    assert "--json" in told
    assert ("--root" in told) == (name != "keygen")


def test_without_a_terminal_nothing_but_the_standard_library_is_needed(root):
    environ = {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"}
    code = (
        "import sys; sys.modules['rich'] = None;"
        "from pypto_store.__main__ import main; sys.exit(main(['ls', '--root', sys.argv[1]]))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code, str(root)],
        capture_output=True, text=True, env=environ, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_without_rich_a_terminal_says_what_to_do(root, on_terminal, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    done = on_terminal("ls", "--root", root)
    assert (done.status, done.out) == (2, "")
    assert "rich" in done.err and "--json" in done.err


@pytest.mark.parametrize("seconds", [-(2**38), 2**38])
@pytest.mark.parametrize("words", [["ls"], ["why", KEY], ["gc", "--max-size", "0"]])
def test_times_that_no_calendar_has_are_told_as_the_nearest(
    root, command, on_terminal, words, seconds, monkeypatch
):
    monkeypatch.setattr("pypto_store.tools.ls.last_used", lambda _: seconds)
    monkeypatch.setattr("pypto_store.tools.stock.last_used", lambda _: seconds)
    monkeypatch.setattr("pypto_store.tools.comparison._published", lambda _: seconds * 10**9)
    year = "1000-01-02" if seconds < 0 else "9999-12-30"
    for done in (command(*words, "--root", root), on_terminal(*words, "--root", root)):
        assert (done.status, done.err) == (0, "")
        assert year in done.out


@pytest.mark.parametrize("words", [["ls"], ["fsck", "--dry-run"], ["export", "--all", "-o"]])
def test_absolute_paths_need_no_working_directory(root, command, tmp_path, monkeypatch, words):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    named = [tmp_path / "bundle"] if words[0] == "export" else []
    done = command(*words, *named, "--root", root)
    assert (done.status, done.err) == (0, "")
    done = command("export", "--all", "-o", "bundle", "--root", root)
    assert (done.status, done.out) == (2, "")
    assert "No such file or directory" in done.err


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
@pytest.mark.parametrize("words", [["ls"], ["export", "--all", "-o", "-"], ["show", "zz"]])
def test_closed_streams_are_no_traceback(root, closed, words):
    environ = {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"}
    closing = " ".join(f"{number}<&-" for number in closed)
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {closing}', "sh",
         sys.executable, "-m", "pypto_store", *words, "--root", str(root)],
        capture_output=True, env=environ, check=False,
    )  # fmt: skip
    assert done.returncode == (2 if 1 in closed or words[0] == "show" else 0)
    assert b"Traceback" not in done.stderr
    assert bool(done.stdout) == (done.returncode == 0)
    if 2 not in closed and done.returncode:
        assert done.stderr.count(b"error: ") == 1


def test_a_reader_that_has_gone_is_no_traceback(root):
    environ = {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"}
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "pypto_store", "ls", "--root", str(root)],
        stdout=write, stderr=subprocess.PIPE, text=True, env=environ, check=False,
    )  # fmt: skip
    os.close(write)
    assert (done.returncode, done.stderr) == (2, "")
