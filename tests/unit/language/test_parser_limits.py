"""Where a kernel is too large for what comes after the parser."""

from __future__ import annotations

import linecache
from typing import Any

import pypto.language as pl
import pytest
from pypto.ir.dtypes import INT32, UINT8
from pypto.language.parser import loops
from pypto.language.parser.diagnostics import exceptions as errors
from pypto.language.parser.frame import MAX_NESTING

ENORMOUS = 10**5000


class Contrary:
    """Raises whatever one does with it."""

    def __getattr__(self, name: str) -> object:
        raise KeyError(name)

    def __add__(self, other: object) -> object:
        raise RuntimeError("no sum")

    def __repr__(self) -> str:
        raise OSError("no text")


CONTRARY = Contrary()


def _kernel(text: str) -> Any:
    name = f"<limits {len(text)} {hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace: dict[str, Any] = {"pl": pl}
    exec(compile(text, name, "exec"), namespace)
    return namespace["kernel"]


def _chain(conditions: list[str]) -> str:
    lines = ["def kernel(x: pl.Tensor, y: pl.Out[pl.Tensor], n: pl.INT32):"]
    for index, condition in enumerate(conditions):
        lines += [f"    {'elif' if index else 'if'} {condition}:", f"        m = {index}"]
    lines += ["    else:", "        m = -1"]
    lines += ["    with pl.at(level=pl.Level.CORE_GROUP):", "        y[:] = pl.add(x, m)"]
    return "\n".join(lines) + "\n"


def _parse(lang: Any, conditions: list[str]) -> None:
    types = {"x": lang.tensor(2, 4, dtype=INT32), "y": lang.tensor(2, 4, dtype=INT32), "n": INT32}
    lang.parse(_kernel(_chain(conditions)), **types)


def test_branches_are_nested_up_to_a_limit(lang: Any) -> None:
    conditions = [f"n == {index}" for index in range(MAX_NESTING + 1)]
    _parse(lang, conditions[:-1])
    with pytest.raises(errors.UnsupportedFeatureError, match="nested deeper than 60") as caught:
        _parse(lang, conditions)
    assert caught.value.line == 2 * MAX_NESTING + 2


def test_branches_that_are_decided_do_not_nest(lang: Any) -> None:
    _parse(lang, [f"{index} == 150" for index in range(200)])


@pytest.mark.conforms("language.25")
@pytest.mark.parametrize("rank", [0, 6])
def test_a_tensor_has_one_to_five_dimensions(lang: Any, rank: int) -> None:
    def kernel(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.neg(x)

    for ranks in ((rank, 1), (1, rank)):
        x, y = (lang.tensor(*[1] * r) for r in ranks)
        name = "x" if ranks[0] == rank else "y"
        with pytest.raises(errors.ParserTypeError, match=f"'{name}' must have 1 to 5 dimensions"):
            lang.parse(kernel, x=x, y=y)


def test_only_signed_elements_have_a_sign(lang: Any) -> None:
    def negative(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.neg(x)

    def positive(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.relu(x)

    def absolute(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.abs(x)

    for kernel in (negative, positive, absolute):
        tensor = lang.tensor(4, 8, dtype=UINT8)
        with pytest.raises(errors.InvalidOperationError, match=r"sign, but got a tensor uint8"):
            lang.parse(kernel, x=tensor, y=tensor)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("ENORMOUS", "an integer of 16610 bits cannot be used"),
        ("0 - ENORMOUS", "an integer of 16610 bits cannot be used"),
        ("10 ** 10 ** 9", "more than 1024 bits"),
        ("1 << 10 ** 12", "more than 1024 bits"),
        ("len([0] * 10 ** 12)", "more than 65536 items"),
        ("len(10 ** 12 * (0,))", "more than 65536 items"),
        ("len('ab' * 40000)", "more than 65536 items"),
        ("CONTRARY.value", r"cannot read 'CONTRARY.value': KeyError: 'value'"),
        ("CONTRARY + 1", "cannot evaluate '\\+' on a Python Contrary, 1: no sum"),
        ("len(f'{CONTRARY}')", "cannot evaluate str on a Python Contrary: no text"),
    ],
)
def test_what_is_computed_while_compiling_has_limits(
    lang: Any, expression: str, message: str
) -> None:
    text = f"def kernel(x: pl.Tensor, y: pl.Out[pl.Tensor]):\n    m = {expression}\n"
    function = _kernel(text)
    function.__globals__.update(ENORMOUS=ENORMOUS, CONTRARY=CONTRARY)
    with pytest.raises(errors.InvalidOperationError, match=message) as caught:
        lang.parse(function, x=lang.tensor(2, 4), y=lang.tensor(2, 4))
    assert caught.value.line == 2


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("2 ** 63 - 2 ** 63", 0),
        ("(-2) ** 62 // 2 ** 61", 2),
        ("1 ** 10 ** 12", 1),
        ("-5 << 3", -40),
    ],
)
def test_what_stays_within_them_is_computed(lang: Any, expression: str, value: int) -> None:
    head = "def kernel(x: pl.Tensor, y: pl.Out[pl.Tensor]):\n"
    function = _kernel(head + f"    pl.static_assert(({expression}) == {value})\n")
    lang.parse(function, x=lang.tensor(2, 4), y=lang.tensor(2, 4))


@pytest.mark.parametrize("rebind", ["t = t", "t, u = u, t\n{0}t, u = u, t", "m = m"])
def test_a_body_is_not_parsed_twice_at_every_level(
    lang: Any, rebind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    levels, attempts = 16, []
    attempt = loops._attempt
    monkeypatch.setattr(
        loops, "_attempt", lambda *args: (attempts.append(args[1].var), attempt(*args))
    )
    lines = ["def kernel(x: pl.Tensor, y: pl.Out[pl.Tensor], n: pl.INT32):"]
    lines += [
        "    with pl.at(level=pl.Level.CORE_GROUP):",
        "        t = pl.load(x, [0, 0], [2, 4])",
    ]
    lines += ["        m = n", "        u = pl.neg(t)"]
    indents = ["    " * (level + 2) for level in range(levels + 1)]
    lines += [f"{indents[level]}for i{level} in pl.range(n):" for level in range(levels)]
    lines += [indents[levels] + rebind.format(indents[levels])]
    lines += ["        y = pl.store(pl.add(t, m), [0, 0], y)"]
    tensor = lang.tensor(2, 4, dtype=INT32)
    lang.parse(_kernel("\n".join(lines) + "\n"), x=tensor, y=tensor, n=INT32)
    assert len(attempts) < 4 * levels**2  # and not 2**levels


def test_what_an_outer_loop_changes_is_seen_inside(lang: Any) -> None:
    """`k` turns out to be a float, which makes `m` one too, in both loops."""

    def kernel(x: pl.Tensor, y: pl.Out[pl.Tensor], n: pl.INT32):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [2, 4])
            m = n
            k = 0
            for _ in pl.range(n):
                for _ in pl.range(n):
                    m = m + k
                k = k * 1.5
            y = pl.store(pl.add(t, pl.cast(m, pl.INT32)), [0, 0], y)

    tensor = lang.tensor(2, 4, dtype=INT32)
    shown = lang.parse(kernel, x=tensor, y=tensor, n=INT32).as_python()
    assert "init_values=(0.0, n_2,)" in shown
    assert "m_2: pl.Scalar[pl.FP32] = m_1 + k" in shown


@pytest.mark.parametrize(
    ("statement", "remedy"),
    [
        ("m = (n > 0) < n", "bind a number in both branches of an if statement"),
        ("m: pl.Scalar[pl.BOOL] = n", "compare it, as in x != 0"),
        ("m: pl.Scalar[pl.INT32] = n / 2", r"write pl\.cast\(x, pl\.INT32\)"),
    ],
)
def test_the_remedy_for_another_type_works(lang: Any, statement: str, remedy: str) -> None:
    head = "def kernel(x: pl.Tensor, y: pl.Out[pl.Tensor], n: pl.INT32):\n"
    tensor = lang.tensor(2, 4)
    with pytest.raises(errors.ParserTypeError, match=remedy):
        lang.parse(_kernel(head + f"    {statement}\n"), x=tensor, y=tensor, n=INT32)
