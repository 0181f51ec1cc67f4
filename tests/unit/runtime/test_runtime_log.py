"""The runtime's log follows the environment that it is given, unless it is configured."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from pypto.runtime.log import LEVELS, LOG_VARIABLE, RUNTIME, RuntimeLog


@pytest.fixture
def environ() -> dict[str, str]:
    return {}


@pytest.fixture
def log(environ: dict[str, str]) -> Iterator[RuntimeLog]:
    made = RuntimeLog(lambda: environ)
    yield made
    environ.clear()
    made.configure(None, sync_pypto=True)


def test_the_environment_is_the_one_that_is_given(
    log: RuntimeLog, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LOG_VARIABLE, "debug")
    assert log.level() is None
    environ[LOG_VARIABLE] = "warn"
    assert log.level() == "warn"
    environ[LOG_VARIABLE] = "loud"
    with pytest.raises(ValueError, match=f"{LOG_VARIABLE} is 'loud', which is none of debug"):
        log.level()
    log.configure("error")
    assert log.level() == "error", "what is configured wins"


def test_two_logs_share_nothing(log: RuntimeLog) -> None:
    other = RuntimeLog(lambda: {LOG_VARIABLE: "info"})
    log.configure("error")
    assert (log.level(), other.level()) == ("error", "info")


@pytest.mark.parametrize("level", LEVELS)
def test_records_are_told_from_the_level_on(
    log: RuntimeLog, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    log.configure(level)
    for said in LEVELS:
        if said != "null":
            log.tell(said, "said at %s", said)
    told = [record.message.rpartition(" ")[2] for record in caplog.records]
    assert told == [name for name in LEVELS if LEVELS[name] >= LEVELS[level] and name != "null"]


def test_the_same_may_hold_for_all_of_pypto(log: RuntimeLog) -> None:
    log.configure("error", sync_pypto=True)
    assert logging.getLogger("pypto").level == logging.ERROR
    log.configure(None, sync_pypto=True)
    assert logging.getLogger("pypto").level == logging.NOTSET
    assert logging.getLogger(RUNTIME).level == logging.NOTSET
