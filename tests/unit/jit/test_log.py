"""What is logged of requests, and that nothing of `logging` is touched unless asked."""

from __future__ import annotations

import logging
import os
import sys

import pytest
from pypto.jit import log
from pypto.jit.log import LEVELS, LogOutput

TREES = ("pypto", "pypto_store", "pypto_toolchains")


@pytest.fixture(autouse=True)
def untouched(monkeypatch):
    """Logging as in a program that has set up nothing: pytest's own handlers stay away."""
    before = {name: logging.getLogger(name).level for name in TREES}
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(logging.getLogger(), "addHandler", lambda _: None)
    yield
    for name in TREES:
        logging.getLogger(name).handlers = []
        logging.getLogger(name).setLevel(before[name])


def tell_all():
    log.built("k", "binary_builds", 1_500_000_000)
    log.fetched("k", "ready", 1234)
    log.uploaded(99, 1_000_000)
    log.remote_missed(2_000_000)
    log.bypassed("k", "no g++")
    log.storage_failed("k", "/root: No space left on device")
    logging.getLogger("pypto_store.locks").error("a lock")
    logging.getLogger("pypto.jit").debug("a detail")


TOLD = {
    "debug": [
        "a detail", "goes without the cache: no g++", "took 1.500 s", "No space", "lock",
        "k: ready, 1234 bytes, came from the remote", "sent to the remote: 99 bytes, 0.001 s",
        "the remote has no such entry (0.002 s)",
    ],
    "info": [
        "goes without the cache: no g++", "binary took 1.500 s", "No space", "lock",
        "k: ready, 1234 bytes, came from the remote", "sent to the remote: 99 bytes, 0.001 s",
    ],
    "timing": ["binary took 1.500 s", "No space", "lock"],
    "warn": ["No space", "lock"],
    "error": ["lock"],
    "null": [],
}  # fmt: skip


@pytest.mark.parametrize("level", LEVELS)
def test_each_level_has_those_above_it(level, capsys):
    LogOutput().follow(level)
    tell_all()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(TOLD[level])
    for text in TOLD[level]:
        assert any(text in line for line in lines), text
    assert set(TOLD) == set(LEVELS)


def test_without_the_variable_logging_is_as_the_program_left_it(capsys):
    LogOutput().follow(None)
    for name in TREES:
        logger = logging.getLogger(name)
        assert (logger.level, logger.handlers, logger.propagate) == (logging.NOTSET, [], True)
    tell_all()
    told = capsys.readouterr().err
    assert "No space" in told  # what Python itself does with warnings that nobody handles
    assert "goes without" not in told


def test_it_may_change_and_end(capsys):
    output = LogOutput()
    output.follow("info")
    output.follow("error")
    tell_all()
    assert len(capsys.readouterr().err.splitlines()) == 1
    output.follow(None)
    for name in TREES:
        assert logging.getLogger(name).level == logging.NOTSET
        assert logging.getLogger(name).handlers == []


def test_a_program_with_handlers_of_its_own_gets_the_records(capsys):
    records = []

    class Keeping(logging.Handler):
        def emit(self, record):
            records.append(record.getMessage())

    logging.getLogger().handlers.append(Keeping())
    LogOutput().follow("info")
    tell_all()
    assert len(records) == 6
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("value", ["", "INFO", "verbose", "20"])
def test_what_is_no_level_is_an_error_and_changes_nothing(value, capsys):
    output = LogOutput()
    output.follow("error")
    with pytest.raises(ValueError, match=r"PYPTO_LOG=.*debug, info, timing, warn, error, null"):
        output.follow(value)
    with pytest.raises(ValueError, match="PYPTO_LOG"):
        output.follow(value)
    tell_all()
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_following_what_has_not_changed_imports_nothing(monkeypatch):
    output = LogOutput()
    monkeypatch.setitem(sys.modules, "logging", None)  # importing it would fail
    output.follow(None)


def test_a_damaged_entry_and_damaged_contents_are_warnings(capsys):
    log.invalid_entry("k", "/store/slot", "'a' is missing")
    log.damaged_blobs("k", ("aa", "bb"))
    told = capsys.readouterr().err
    assert "/store/slot is damaged ('a' is missing)" in told and "fsck" in told
    assert "aa, bb" in told


def test_a_lost_explanation_says_why(capsys):
    LogOutput().follow("info")
    try:
        os.stat("/absent")
    except OSError:
        log.unexplained("k")
    assert "No such file" in capsys.readouterr().err
