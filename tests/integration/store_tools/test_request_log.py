"""The log of real requests in processes of their own."""

from __future__ import annotations

import pytest

NO_COMPILER = {"PATH": "/nonexistent"}


def lines(told):
    return [line for line in told.splitlines() if "pypto" in line]


def test_a_bypass_is_told_once_with_kernel_and_reason(house):
    report, told = house.request(env={**NO_COMPILER, "PYPTO_LOG": "info"})
    assert report["stats"]["bypasses"] == 1
    (line,) = [line for line in lines(told) if "goes without the cache" in line]
    assert " INFO pypto.jit: kernel kernel goes without the cache: " in line
    assert line.endswith(report["stats"]["last_bypass_reason"])
    assert len([line for line in lines(told) if " INFO " in line]) == 1


@pytest.mark.parametrize("env", [{}, {"PYPTO_LOG": "timing"}, {"PYPTO_LOG": "null"}])
def test_without_being_asked_for_it_is_not_told(house, env):
    report, told = house.request(env={**NO_COMPILER, **env})
    assert report["stats"]["bypasses"] == 1
    assert "goes without" not in told


def test_stages_are_timed(house):
    _, told = house.request(warm=True, env={"PYPTO_LOG": "timing"})
    stages = [line.partition("kernel kernel: ")[2].split()[0] for line in lines(told)]
    assert stages == ["generation", "binary"]


def test_a_hit_tells_nothing(house):
    house.request(warm=True)
    report, told = house.request(warm=True, env={"PYPTO_LOG": "debug"})
    assert report["stats"]["ready_hits"] == 1
    assert lines(told) == []


def test_damage_is_a_warning(house):
    house.request(warm=True)
    (slot,) = house.root.glob("artifacts/v1/*/*/ready/*")
    (slot / "more").write_bytes(b"")
    report, told = house.request(warm=True, env={"PYPTO_LOG": "warn"})
    assert report["stats"]["invalid_entries"] == 1
    (line,) = lines(told)
    assert " WARNING " in line and str(slot) in line and "'more'" in line


def test_a_store_that_cannot_be_used_is_a_warning(house):
    house.root.write_bytes(b"no directory")
    report, told = house.request(env={"PYPTO_LOG": "warn"})
    assert report["key"] is None
    assert report["stats"]["storage_errors"] == len(lines(told)) > 0
    assert all(
        "the cache cannot be used" in line and "kernel-cache" in line for line in lines(told)
    )


def test_a_malformed_level_is_an_error_of_the_request(house):
    report, _ = house.request(env={"PYPTO_LOG": "loud"})
    assert "PYPTO_LOG='loud' is none of debug, info" in report["error"]
    assert report["stats"]["requests"] == 1
    assert not house.root.exists()


def test_a_program_that_logs_gets_the_records(house):
    prelude = (
        "import logging, sys\n"
        "logging.basicConfig(level=logging.INFO, format='mine: %(message)s', stream=sys.stderr)\n"
    )
    _, told = house.request(env=NO_COMPILER, prelude=prelude)
    (line,) = [line for line in told.splitlines() if "goes without" in line]
    assert line.startswith("mine: kernel kernel goes without the cache")
    _, told = house.request(env={**NO_COMPILER, "PYPTO_LOG": "info"}, prelude=prelude)
    assert len([line for line in told.splitlines() if "goes without" in line]) == 1
