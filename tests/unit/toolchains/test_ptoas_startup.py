from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pypto_toolchains.ptoas_startup as ptoas_startup
import pytest
from pypto_toolchains.disk import SYSTEM_DISK
from pypto_toolchains.process import ToolNotFound, ToolResult
from pypto_toolchains.ptoas_startup import Place, Startup, StartupUnknown, startup_of
from pypto_toolchains.records import ProbeRecord, ProbeRecords, sealed, unsealed

PYTHON = os.path.realpath(sys.executable)


class Interpreter:
    """How an interpreter answers; counts how often it is asked."""

    def __init__(self, site: Path) -> None:
        self.asked = 0
        self.before = ""
        self.answer: Any = {
            "abi": "cpython-399 .so",
            "library": ["/library"],
            "modules": [["hook", str(site / "hook.py"), []]],
            "places": {"package": [str(site / "package" / "__init__.py"), [str(site / "package")]]},
            "search": ["/scripts", "/library", str(site)],
            "sites": [str(site)],
            "standard": ["typing"],
            "suffixes": [".py", ".so"],
            "user": False,
            "version": "3.99",
        }

    def __call__(self, argv: list[str], **options: object) -> ToolResult:
        self.asked += 1
        return ToolResult(f"{self.before}\npypto-startup {json.dumps(self.answer)}\n", "")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Where packages are, with a module that is loaded at startup."""
    directory = tmp_path / "site"
    (directory / "package").mkdir(parents=True)
    (directory / "hook.py").write_text("")
    return directory


@pytest.fixture
def interpreter(site: Path, monkeypatch: pytest.MonkeyPatch) -> Interpreter:
    """An interpreter in the place of a process."""
    made = Interpreter(site)
    monkeypatch.setattr(ptoas_startup, "run_tool", made)
    return made


def ask(site: Path, **environ: str) -> tuple[Startup, ProbeRecord | None]:
    records = ProbeRecords(str(site.parent / "tools"))
    return startup_of(PYTHON, "/scripts", ("package",), environ, "/", records, SYSTEM_DISK)


def keep(site: Path, record: ProbeRecord | None) -> None:
    assert record is not None
    assert ProbeRecords(str(site.parent / "tools")).save(*record)


def test_says_what_the_interpreter_told(interpreter: Interpreter, site: Path) -> None:
    startup, _ = ask(site)
    assert (startup.version, startup.abi) == ("3.99", "cpython-399 .so")
    assert startup.search == ("/scripts", "/library", str(site))
    assert startup.modules == (("hook", Place(str(site / "hook.py"), ())),)
    assert startup.places["package"] == Place(
        str(site / "package" / "__init__.py"), (str(site / "package"),)
    )


def test_what_hooks_write_is_passed_over(interpreter: Interpreter, site: Path) -> None:
    interpreter.before = "pypto-startup is not me\nnoise without an end"
    assert ask(site)[0].version == "3.99"


def test_a_record_answers_for_it(interpreter: Interpreter, site: Path) -> None:
    first, record = ask(site)
    keep(site, record)
    assert ask(site) == (first, None)
    assert interpreter.asked == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda site: (site / "more.pth").write_text(""),
        lambda site: (site / "hook.py").write_text("more = 1\n"),
        lambda site: (site / "hook.py").unlink(),
        lambda site: (site / "sitecustomize.py").write_text(""),
        lambda site: (site / "package2").mkdir(),
        lambda site: (site / "package").rename(site / "moved"),
    ],
)
def test_it_is_asked_again_when_what_it_rested_on_changes(
    interpreter: Interpreter, site: Path, change: Callable[[Path], object]
) -> None:
    keep(site, ask(site)[1])
    change(site)
    if not (site / "hook.py").exists():
        interpreter.answer["modules"] = []
    assert ask(site)[1] is not None
    assert interpreter.asked == 2


@pytest.mark.parametrize("name", ["PYTHONPATH", "PYTHONHOME", "HOME", "PYTHONHASHSEED"])
def test_it_is_asked_for_every_value_of_a_variable(
    interpreter: Interpreter, site: Path, name: str
) -> None:
    keep(site, ask(site)[1])
    keep(site, ask(site, **{name: "1"})[1])
    assert interpreter.asked == 2
    ask(site, **{name: "1"})
    assert interpreter.asked == 2


@pytest.mark.parametrize("present", ["sitecustomize.py", "package.py", "package", "hook.so"])
def test_directories_of_users_are_looked_at_for_names_that_matter(
    interpreter: Interpreter, site: Path, present: str
) -> None:
    user = site.parent / "user"
    user.mkdir()
    interpreter.answer["search"].insert(0, str(user))
    keep(site, ask(site)[1])
    (user / "notes.txt").write_text("")
    (user / "other.py").write_text("")
    ask(site)
    assert interpreter.asked == 1
    (user / present).write_text("")
    ask(site)
    assert interpreter.asked == 2


def test_a_record_is_found_whatever_the_order_of_names(
    interpreter: Interpreter, site: Path
) -> None:
    user = site.parent / "user"
    for name in ("zeta", "alpha"):
        (user / name).mkdir(parents=True)
        interpreter.answer["places"][name] = None
    interpreter.answer["search"].insert(0, str(user))
    keep(site, ask(site)[1])
    ask(site)
    assert interpreter.asked == 1


def test_an_archive_on_the_path_is_looked_into(interpreter: Interpreter, site: Path) -> None:
    archive = site.parent / "more.zip"
    archive.write_bytes(b"1")
    interpreter.answer["search"].append(str(archive))
    keep(site, ask(site)[1])
    archive.write_bytes(b"2")
    ask(site)
    assert interpreter.asked == 2


@pytest.mark.parametrize(
    "damage",
    [
        lambda body: b"{}",
        lambda body: b"[]",
        lambda body: b"[" * 50_000,
        lambda body: body.replace(b'"schema":1', b'"schema":2'),
        lambda body: body.replace(b'"suffixes"', b'"other"'),
        lambda body: body.replace(b'"3.99"', b"3"),
        lambda body: body.replace(b'"3.99"', b'"a\\u0000b"'),
    ],
)
def test_a_record_of_another_form_is_not_believed(
    interpreter: Interpreter, site: Path, damage: Callable[[bytes], bytes]
) -> None:
    _, record = ask(site)
    assert record is not None
    body = unsealed(record[1])
    assert body is not None
    assert damage(body) != body
    keep(site, (record[0], sealed(damage(body))))
    assert ask(site) == (ask(site)[0], record)
    keep(site, (record[0], record[1][:-1]))  # and one that is cut off
    assert ask(site)[1] == record


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({}, "malformed"),
        ([], "malformed"),
        ({"version": 3}, "malformed"),
    ],
)
def test_an_answer_of_another_form_is_no_answer(
    interpreter: Interpreter, site: Path, answer: Any, told: str
) -> None:
    interpreter.answer = answer
    with pytest.raises(StartupUnknown, match=told):
        ask(site)


def test_an_interpreter_that_cannot_be_asked_is_unknown(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ptoas_startup, "run_tool", lambda *_, **__: ToolResult("hello\n", ""))
    with pytest.raises(StartupUnknown, match="does not run what it is given"):
        ask(site)
    told = lambda *_, **__: ToolResult("pypto-startup {\n", "")  # noqa: E731
    monkeypatch.setattr(ptoas_startup, "run_tool", told)
    with pytest.raises(StartupUnknown, match="answers nonsense"):
        ask(site)

    def missing(argv: list[str], **_: object) -> ToolResult:
        raise ToolNotFound("it is missing", stage="", argv=argv, stderr="")

    monkeypatch.setattr(ptoas_startup, "run_tool", missing)
    with pytest.raises(StartupUnknown, match="it is missing"):
        ask(site)


def test_this_interpreter_tells_where_it_finds_a_package(tmp_path: Path) -> None:
    """Without a double: found, and not imported."""
    package = tmp_path / "scripts" / "package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('it was imported')\n")
    startup, record = startup_of(
        sys.executable,
        str(package.parent),
        ("package", "json", "no_such_package"),
        {"PATH": os.environ.get("PATH", "")},
        "/",
        ProbeRecords(None),
        SYSTEM_DISK,
    )
    assert startup.version == sys.version
    assert startup.search[0] == str(package.parent)
    assert startup.places["package"] == Place(str(package / "__init__.py"), (str(package),))
    assert startup.places["no_such_package"] is None
    assert "json" not in dict(startup.modules)
    assert record is not None
