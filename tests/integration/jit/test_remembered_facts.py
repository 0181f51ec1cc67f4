"""What earlier processes found out from texts: used where this very version wrote it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# Refuses to parse a text of a kernel, or to read a signature off its tree.
NO_PARSE = """
import pypto.jit.decorator, pypto.jit.parsed
def refuse(*_):
    raise AssertionError("parsed although the text is known")
pypto.jit.parsed._parse_definition = refuse
pypto.jit.decorator.read_signature = refuse
"""
COUNT = """
import pypto.jit.parsed
parse_definition = pypto.jit.parsed._parse_definition
report["parsed"] = 0
def counted(*arguments):
    report["parsed"] += 1
    return parse_definition(*arguments)
pypto.jit.parsed._parse_definition = counted
"""
RICH = """
import pypto.language as pl

ROWS = 16
M = pl.dynamic("M")


@pl.jit.inline
def scaled(tile, factor: pl.constexpr):
    return pl.mul(tile, factor)


def made(factor):
    @pl.jit
    def kernel(
        x: pl.Tensor[[ROWS, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[ROWS, 64], pl.FP32]],
        *,
        twice: pl.constexpr = False,
    ):
        for row in pl.range(0, ROWS, 16):
            with pl.at(level=pl.Level.CORE_GROUP):
                tile = scaled(pl.load(x, [row, 0], [16, 64]), factor)
                out = pl.store(tile, [row, 0], out)
        return out

    return kernel


SCALE = 3.0
kernel = made(SCALE)
"""


def rewrite(root: Path, change: Callable[[str, Any], tuple[str, Any]]) -> int:
    """Change every kept fact, with a right check; how many there are."""
    paths = sorted((root / "facts").iterdir())
    for path in paths:
        version, name, told = json.loads(path.read_bytes().split(b"\n", 1)[1])
        version, told = change(version, told)
        body = json.dumps([version, name, told], sort_keys=True, separators=(",", ":")).encode()
        path.write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
    return len(paths)


def without_names(told: Any) -> Any:
    """Facts by which a key would lack the values that the kernel uses."""
    if "names" in told:
        return {**told, "names": [], "attributes": []}
    return {**told, "params": told["params"][:1]}


@pytest.mark.parametrize("text", ["plain", "rich"])
def test_a_hit_parses_nothing(house: Any, text: str) -> None:
    if text == "rich":
        house.write(RICH)
    first = house.run(house.WARM)
    report = house.run(NO_PARSE + house.WARM + house.RUN)
    assert report["key"] == first["key"]
    assert report["stats"]["ready_hits"] == 1
    assert report["correct"]


def test_facts_of_another_version_are_not_believed(house: Any) -> None:
    first = house.run(house.WARM)
    assert rewrite(house.root, lambda _, told: ("0" * 64, without_names(told))) == 3
    report = house.run(COUNT + house.WARM + house.RUN)
    assert report["key"] == first["key"]
    assert report["parsed"] >= 2
    assert report["correct"]
    stats = report["stats"]
    assert (stats["requests"], stats["ready_hits"], stats["misses"]) == (2, 1, 0)
    # What was found out instead is kept.
    assert house.run(NO_PARSE + house.WARM)["key"] == first["key"]


def test_facts_of_another_version_are_replaced(house: Any) -> None:
    """As after every update of the package: nothing else is different, so the names are equal."""
    first = house.run(house.WARM)
    rewrite(house.root, lambda _, told: ("0" * 64, told))
    assert house.run(house.WARM)["key"] == first["key"]
    assert house.run(NO_PARSE + house.WARM)["key"] == first["key"]


def test_facts_of_another_version_do_not_reach_the_user(house: Any) -> None:
    """A signature with too few parameters would refuse the arguments before any key is made."""
    house.run(house.WARM)
    rewrite(house.root, lambda _, told: ("0" * 64, without_names(told)))
    report = house.run(house.RUN)
    assert report["correct"]
    assert report["stats"]["ready_hits"] == 1


THREADS = """
import threading
together = threading.Barrier(4)
report["raised"], report["keys"] = [], []
def compile():
    together.wait()
    try:
        report["keys"].append(kernels.kernel.compile().artifact_key)
    except Exception as error:
        report["raised"].append(repr(error))
threads = [threading.Thread(target=compile) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_facts_of_another_version_do_not_reach_any_thread(house: Any) -> None:
    """The first to find them stale takes the kernel anew, which helps the others nothing."""
    first = house.run(house.WARM)
    rewrite(house.root, lambda _, told: ("0" * 64, told))
    report = house.run(THREADS)
    assert report["raised"] == []
    assert report["keys"] == [first["key"]] * 4
    stats = report["stats"]
    assert (stats["requests"], stats["misses"], stats["bypasses"]) == (4, 0, 0)


INTERRUPTED = """
import pypto.jit.resolve
resolver = pypto.jit.resolve.Resolver
enabled = resolver._enabled
def interrupted(*_):
    raise KeyboardInterrupt
resolver._enabled = interrupted
try:
    kernels.kernel.compile()
except KeyboardInterrupt:
    pass
resolver._enabled = enabled
pypto.configure_cache(None)
kernels.kernel.compile()
"""


def test_a_request_that_assumed_in_vain_is_counted_once(house: Any) -> None:
    """Nobody confirms what an interrupted request assumed; the next one looks at no cache."""
    house.run(house.WARM)
    stats = house.run(INTERRUPTED)["stats"]
    assert (stats["requests"], stats["disabled_requests"]) == (2, 1)


def test_a_value_that_the_kernel_uses_still_counts(house: Any) -> None:
    first = house.run(house.WARM)
    house.write(house.KERNELS.replace("SCALE = 2.0", "SCALE = 4.0"))
    report = house.run(COUNT + house.WARM + house.RUN)
    assert report["key"] != first["key"]
    assert report["stats"]["misses"] == 1
    assert report["correct"]


def test_an_edited_text_is_another_text(house: Any) -> None:
    first = house.run(house.WARM)
    house.write(house.KERNELS.replace("[16, 64])", "[16, 64] )"))
    report = house.run(COUNT + house.WARM)
    assert report["key"] != first["key"]
    assert report["parsed"] == 2  # the helper's for the key, the kernel's for the build


@pytest.mark.parametrize("damage", ["flipped", "truncated", "gone"])
def test_damaged_facts_cost_a_parse(house: Any, damage: str) -> None:
    first = house.run(house.WARM)
    for path in (house.root / "facts").iterdir():
        data = path.read_bytes()
        if damage == "gone":
            path.unlink()
        else:
            path.write_bytes(data[:-2] if damage == "truncated" else data[:-9] + b"x" + data[-8:])
    report = house.run(COUNT + house.WARM)
    assert report["key"] == first["key"]
    assert report["parsed"] == 2
    assert report["stats"]["ready_hits"] == 1


def test_a_read_only_root_is_used_as_it_is(house: Any) -> None:
    first = house.run(house.WARM)
    before = house.tree(house.root)
    report = house.run(NO_PARSE + house.WARM, cache={"readonly": True})
    assert report["key"] == first["key"]
    assert house.tree(house.root) == before
    for path in (house.root / "facts").iterdir():
        path.unlink()
    assert house.run(house.WARM, cache={"readonly": True})["key"] == first["key"]
    assert not list((house.root / "facts").iterdir())


def test_nothing_is_looked_at_without_persistence(house: Any) -> None:
    house.run(house.WARM)
    report = house.run(COUNT + house.COMPILE + house.RUN, cached=False)
    assert report["parsed"] == 2
    assert report["correct"]


def test_other_uses_of_a_kernel_do_not_assume(house: Any) -> None:
    house.run(house.WARM)
    report = house.run(
        COUNT + house.WARM + "report['ir'] = str(kernels.kernel.specialize())[:7]\n" + house.RUN
    )
    assert report["correct"]
    assert report["stats"]["requests"] == 2
