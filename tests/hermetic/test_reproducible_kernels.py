"""The same kernel gives the same bytes, whoever builds it, where, when and with how many hands."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

TARGETS = ("a2a3sim", "a5sim")
SAMPLES = ("vector", "softmax", "matmul", "from_cpp", "mixed")


@pytest.fixture(scope="module")
def both(built: Any, built_elsewhere: Any) -> tuple[Any, Any]:
    """The two builds."""
    return built, built_elsewhere


def test_every_sample_has_sources_and_binaries_for_each_target(built: Any) -> None:
    for sample in SAMPLES:
        for target in TARGETS:
            name = f"{sample}@{target}"
            states = {state for found, state, _ in built.files if found == name}
            assert states == {"generated", "ready"}, name
            paths = [
                path for found, state, path in built.files if (found, state) == (name, "ready")
            ]
            assert "prebuilt/orchestration.bin" in paths
            assert "prebuilt/kernel_0.bin" in paths
    copied = [path for found, _, path in built.files if found.startswith("from_cpp@")]
    assert {path.rsplit("/", 1)[-1] for path in copied} >= {"double.cpp", "factor.h", "count.h"}


def test_every_file_is_the_same_twice(both: tuple[Any, Any]) -> None:
    one, other = both
    assert one.files.keys() == other.files.keys()
    assert [name for name in one.files if one.files[name] != other.files[name]] == []


def test_no_file_names_a_place_a_user_or_a_tool(both: tuple[Any, Any]) -> None:
    for made in both:
        found = [
            (name, text)
            for name, data in made.files.items()
            for text in made.telling
            if text in data
        ]
        assert found == []


def test_no_file_tells_when_it_was_made(both: tuple[Any, Any]) -> None:
    now = time.gmtime()
    dates = {
        time.strftime(form, now).encode()
        for form in ("%Y-%m-%d", "%b %e %Y", "%b %d %Y", "%Y%m%d", "%d.%m.%Y", "%m/%d/%y")
    }
    for made in both:
        for name, data in made.files.items():
            assert not {date for date in dates if date in data}, name
            assert not re.search(rb"\d\d:\d\d:\d\d", data), name


def test_no_absolute_path_at_all_is_in_what_is_generated(built: Any) -> None:
    """Sources are read by people too, on other machines."""
    path = re.compile(rb"(?<![\w.*/<])/(?!/)[\w.+-]+/[\w.+-]+")
    for (sample, state, name), data in built.files.items():
        if state == "generated" and "/extern/" not in name:
            assert not path.search(data), (sample, name, path.search(data))
