"""Kept facts are what a parse gives, and are believed by the version that kept them alone."""

from __future__ import annotations

from pathlib import Path

import pypto.language as pl
import pytest
from pypto.jit.parsed import parse
from pypto.jit.remembered import StaleFacts, TextMemory
from pypto.jit.snapshot import SourceSnapshot
from pypto.jit.source import SourceCapture
from pypto.language.parser.dynamic_axes import dynamic_axes
from pypto.language.parser.signature import read_signature

M = pl.dynamic("M")
SIZES = (16, 64)


@pl.jit.inline
def helper(tile, factor: pl.constexpr):
    return pl.mul(tile, factor)


@pl.jit
def plain(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.store(helper(pl.load(x, [0, 0], [16, 64]), 2.0), [0, 0], out)
    return out


@pl.jit
def mixed(
    x: pl.Tensor[[M, SIZES[1]], pl.FP16],
    bare: pl.Tensor,
    both: pl.InOut[pl.Tensor[[4], pl.INT32]],
    factor: pl.Scalar[pl.FP32],
    count: pl.INT64,
    mode: pl.constexpr,
    untold,
    name: pl.constexpr = "a",
):
    bare.bind_dynamic(0, M)
    bare.bind_dynamic(2, M)
    return x


KERNELS = [plain, mixed]
VERSION = "1" * 64


def snapshot_of(kernel: pl.JITFunction, known=None) -> SourceSnapshot:
    return SourceCapture(kernel.declaration).take(known)


def memory(version: str | None = VERSION) -> TextMemory:
    one = TextMemory()
    if version is not None:
        one.confirm(frozenset(), version)
    return one


@pytest.fixture
def root(tmp_path: Path) -> str:
    kept = memory()
    for kernel in KERNELS:
        kept.keep(str(tmp_path), snapshot_of(kernel))
    return str(tmp_path)


def test_facts_under_the_name_of_another_text_are_not_believed(root: str) -> None:
    places = sorted(Path(root, "facts").iterdir())
    contents = [place.read_bytes() for place in places]
    for place, content in zip(places, contents[1:] + contents[:1], strict=True):
        place.write_bytes(content)
    known = memory().below(root)
    assert known is not None
    for kernel in KERNELS:
        moved = snapshot_of(kernel, known)
        assert moved.assumed == frozenset()
        assert moved.digest == snapshot_of(kernel).digest
        assert moved.digest is not None
        assert known.signature(moved.digest, frozenset({VERSION})) is None


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("version", [None, VERSION])
def test_what_is_kept_is_what_a_parse_gives(root: str, kernel, version) -> None:
    fresh = snapshot_of(kernel)
    known = memory(version).below(root)
    assert known is not None
    assumed = snapshot_of(kernel, known)
    assert assumed.assumed == {VERSION}
    assert fresh.assumed == frozenset()
    assert assumed.digest == fresh.digest
    assert assumed.attributes() == fresh.attributes()
    assert assumed.source_map() == fresh.source_map()
    for (_, one), (_, other) in zip(assumed.functions, fresh.functions, strict=True):
        assert (one.facts, one.lines, one.first_line) == (
            other.facts, other.lines, other.first_line
        )  # fmt: skip
        assert one.tree.name == other.tree.name
    assert assumed.digest is not None
    signature = known.signature(assumed.digest, assumed.assumed)
    assert signature is not None
    assert signature.dynamic == dynamic_axes(fresh.entry)
    told = [(p.name, p.direction, p.category, p.type) for p in signature.params]
    params = read_signature(fresh.entry)
    assert told == [(p.name, p.direction, p.category, p.type) for p in params]


def test_another_version_is_not_believed(root: str) -> None:
    other = memory("2" * 64)
    known = other.below(root)
    assert known is not None
    assert snapshot_of(plain, known).assumed == frozenset()


def test_an_assumption_is_confirmed_or_given_up(root: str) -> None:
    one = memory(None)
    assumed = snapshot_of(plain, one.below(root)).assumed
    assert not one.trusts(assumed)
    with pytest.raises(StaleFacts):
        one.confirm(assumed, None)  # nobody knows this version
    assert one.below(root) is not None
    one.confirm(assumed, VERSION)
    assert one.trusts(assumed)
    one.confirm(assumed, None)
    stale = memory(None)
    with pytest.raises(StaleFacts):
        stale.confirm(assumed, "2" * 64)
    assert stale.below(root) is None
    stale.confirm(frozenset(), "2" * 64)


def test_a_signature_of_another_writer_is_not_mixed_in(root: str) -> None:
    digest = snapshot_of(plain).digest
    assert digest is not None
    known = memory(None).below(root)
    assert known is not None
    assert known.signature(digest, frozenset()) is None
    assert known.signature(digest, frozenset({VERSION, "2" * 64})) is None
    assert known.signature(digest, frozenset({VERSION})) is not None


def test_a_text_is_known_by_name_and_every_line(root: str) -> None:
    known = memory().below(root)
    assert known is not None
    parsed = parse(plain.declaration)
    assert known.text("plain", parsed.lines) is not None
    assert known.text("other", parsed.lines) is None
    assert known.text("plain", (*parsed.lines, "")) is None
    assert known.text("plain", parsed.lines[:-1]) is None


def test_nothing_is_kept_without_a_version_or_twice(tmp_path: Path) -> None:
    memory(None).keep(str(tmp_path), snapshot_of(plain))
    assert not list(tmp_path.iterdir())
    one = memory()
    one.keep(str(tmp_path), snapshot_of(plain))
    paths = list((tmp_path / "facts").iterdir())
    assert len(paths) == 3
    for path in paths:
        path.unlink()
    one.keep(str(tmp_path), snapshot_of(plain))
    assert not list((tmp_path / "facts").iterdir())
