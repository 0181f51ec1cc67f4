"""A kernel that cannot be compiled: the error names the user's line, and nothing is kept."""

from __future__ import annotations

from typing import Any

import pytest

BROKEN = {
    "an unknown name": ("pl.mul(tile, SCALE)", "pl.mul(tile, SCALEZ)", "SCALEZ"),
    "a wrong shape": ("[0, 0], [16, 64]", "[0, 0], [16, 64, 2]", ""),
    "a wrong dtype": (
        "out: pl.Out[pl.Tensor[[16, 64], pl.FP32]])",
        "out: pl.Out[pl.Tensor[[16, 64], pl.FP16]])",
        "",
    ),
    "an unsupported statement": ("    tile = pl", "    import os\n    tile = pl", ""),
    "too large a tile": ("[16, 64])\n    out", "[1600, 640])\n    out", ""),
}


@pytest.mark.conforms("cache.55", "cache.105")
@pytest.mark.parametrize("name", BROKEN)
def test_the_users_line_is_named_and_nothing_is_stored(house: Any, name: str) -> None:
    old, new, word = BROKEN[name]
    assert old in house.KERNELS
    house.write(house.KERNELS.replace(old, new, 1))
    report = house.run(house.FAIL)
    error = report["error"]
    assert error is not None
    assert f"{house.modules / 'kernels.py'}:" in error["text"], error
    assert word in error["text"]
    assert report["stats"]["misses"] == 1
    assert report["stats"]["generation_builds"] == 0
    assert not house.slots("generated")
    assert not [path for path in house.work.rglob("*") if path.is_file()]


@pytest.mark.conforms("cache.55")
def test_an_error_is_not_remembered(house: Any) -> None:
    step = """
first = second = None
kernels.SCALE = "text"
try:
    kernels.kernel.compile()
except Exception as error:
    first = type(error).__name__
kernels.SCALE = 2.0
report["first"] = first
report["key"] = kernels.kernel.compile().artifact_key
"""
    report = house.run(step)
    assert report["first"] is not None
    assert report["key"] is not None
