"""Calls that an earlier call has answered: short, counted, and never answered by what was."""

from __future__ import annotations

from typing import Any

KERNELS = """
import pypto.language as pl

OFFSET = 1.0


@pl.jit
def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor], scale: pl.Scalar[pl.FP32]):
    with pl.at(level=pl.Level.CORE_GROUP):
        tile = pl.load(x, [0, 0], [16, 64])
        out = pl.store(pl.add(pl.mul(tile, scale), OFFSET), [0, 0], out)
    return out


SCALE = 1.0
"""

SETUP = """
import torch
x = torch.arange(16 * 64, dtype=torch.float32).reshape(16, 64)
out = torch.zeros(16, 64)
def call(scale, **options):
    out.zero_()
    kernels.kernel(x, out, scale, **options)
    return torch.equal(out, x * scale + kernels.OFFSET)
def counted(name):
    return getattr(pypto.cache_stats(), name)
"""

REPEATED = (
    SETUP
    + """
report["right"] = [call(float(scale)) for scale in range(4)]
"""
)

CHANGES = (
    SETUP
    + """
report["right"] = [call(2.0), call(2.0)]
kernels.OFFSET = 7.0
report["right"].append(call(2.0))
kernels.OFFSET = 1.0
report["right"].append(call(2.0))
before = counted("misses")
os.environ["PYPTO_CACHE_EPOCH"] = "next"
report["right"].append(call(2.0))
report["epoch missed"] = counted("misses") - before
pypto.configure_cache(None)
report["right"].append(call(2.0))
report["disabled"] = counted("disabled_requests")
from pypto.runtime import RunConfig
from pypto.backend import BackendType
report["right"].append(call(2.0, config=RunConfig(arch=BackendType.Ascend950)))
report["right"].append(call(2.0))
"""
)

REFUSED = (
    SETUP
    + """
call(1.0)
refused = []
for arguments in (
    (torch.zeros(64, 16).t(), out, 1.0),
    (x, torch.zeros(64, 16).t(), 1.0),
    (x, out, x),
    (x, 1.0, 1.0),
    (x, out),
    (x.to("meta"), out, 1.0),
):
    try:
        kernels.kernel(*arguments)
    except (TypeError, ValueError) as error:
        refused.append(type(error).__name__)
    except Exception as error:
        refused.append(repr(error))
report["refused"] = refused
report["right"] = call(3.0)
report["keywords"] = kernels.kernel(out=out, x=x, scale=5.0) is None and torch.equal(
    out, x * 5.0 + 1.0
)
"""
)


def test_repeated_calls_are_object_hits(house: Any) -> None:
    house.write(KERNELS)
    report = house.run(REPEATED)
    stats = report["stats"]
    assert report["right"] == [True] * 4
    assert (stats["requests"], stats["object_hits"], stats["misses"]) == (4, 3, 1)
    assert stats["lookup_ns"] > 0


ALTERNATING = (
    SETUP
    + """
import dataclasses
from pypto.runtime import RunConfig
first = RunConfig()
second = dataclasses.replace(first, device_id=1)
report["right"] = [call(2.0, config=config) for config in (first, second) * 3]
short = kernels.kernel._live
report["short"] = [short.find((x, out, 2.0), config) is not None for config in (first, second)]
"""
)


def test_configurations_may_alternate(house: Any) -> None:
    house.write(KERNELS)
    report = house.run(ALTERNATING)
    assert report["right"] == [True] * 6
    assert report["short"] == [True, True]
    assert report["stats"]["generation_builds"] == 1


RELATIVE = (
    SETUP
    + """
import os
from pathlib import Path
import pypto
pypto.configure_cache(pypto.CacheConfig(enabled=True, root=Path("beside")))
short = kernels.kernel._live
def is_short():
    return short.find((x, out, 2.0), None) is not None
report["right"] = [call(2.0), call(2.0)]
report["short"] = [is_short()]
home = os.getcwd()
os.makedirs("elsewhere")
os.chdir("elsewhere")
report["short"].append(is_short())
report["right"].append(call(2.0))
report["short"].append(is_short())
report["roots"] = [os.path.isdir(f"{place}/beside/artifacts") for place in (home, os.getcwd())]
os.makedirs(os.path.join(home, "gone"))
os.chdir(os.path.join(home, "gone"))
os.rmdir(os.path.join(home, "gone"))
report["short"].append(is_short())
os.chdir(home)
"""
)


def test_a_relative_root_costs_live_calls_one_look_at_the_working_directory(house: Any) -> None:
    house.write(KERNELS)
    report = house.run(RELATIVE)
    assert report["right"] == [True] * 3
    assert report["short"] == [True, False, True, False]
    assert report["roots"] == [True, True]


def test_whatever_changes_is_noticed(house: Any) -> None:
    house.write(KERNELS)
    report = house.run(CHANGES)
    assert report["right"] == [True] * 8
    assert report["epoch missed"] == 1
    assert report["disabled"] == 1
    stats = report["stats"]
    assert stats["requests"] == 8
    assert stats["generation_builds"] == 5


def test_what_cannot_be_run_is_refused_as_ever(house: Any) -> None:
    house.write(KERNELS)
    report = house.run(REFUSED)
    assert set(report["refused"]) <= {"TypeError", "ValueError"}
    assert len(report["refused"]) == 6
    assert report["right"]
    assert report["keywords"]
