"""Calls that are carried out while the kernel is compiled."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pypto.ir.errors import IrTypeError
from pypto.ir.nodes import Const
from pypto.language import functions as pl
from pypto.language.parser.diagnostics.exceptions import (
    ParserError,
    ParserSyntaxError,
)
from pypto.language.parser.site import CallSite, Handler
from pypto.language.parser.values import Value, holds_runtime, is_number, literal, show_value


def _static_assert(site: CallSite) -> Value:
    condition, message = site.values["condition"], site.values["message"]
    if isinstance(condition, Const):
        condition = condition.value
    if holds_runtime(condition):
        raise site.wrong(
            "condition",
            f"the condition must be known when the kernel is compiled, not {show_value(condition)}",
        )
    if not isinstance(message, str):
        raise site.wrong("message", f"message must be a string, not {show_value(message)}")
    if not condition:
        raise site.frame.error(
            ParserError, site.node, f"static assertion failed{': ' if message else ''}{message}"
        )
    return None


def _static_print(site: CallSite) -> Value:
    values = site.values.get("values", ())
    assert isinstance(values, tuple)
    plain = (bool, int, float, str, tuple, list)
    shown = [
        str(v) if isinstance(v, plain) and not holds_runtime(v) else show_value(v) for v in values
    ]
    site.frame.builder.prints.append(" ".join(shown))
    return None


def _const(site: CallSite) -> Value:
    value, dtype = site.values["value"], site.dtype("dtype")
    if isinstance(value, Const):
        value = value.value
    if not is_number(value):
        raise site.wrong("value", f"value must be a number, not {show_value(value)}")
    try:
        return literal(value, dtype)
    except IrTypeError as error:
        raise site.wrong("value", str(error)) from None


def _misplaced(site: CallSite) -> Value:
    place = _PLACES.get(site.name, _SEQUENCE)
    raise site.frame.error(ParserSyntaxError, site.node, f"{site.name} {place}")


_SEQUENCE = "is the sequence of a for statement: for i in pl.range(n):"
_PLACES: Mapping[str, str] = MappingProxyType(
    {
        "pl.while_": "is the sequence of a for statement: for (x,) in pl.while_(init_values=(0,)):",
        "pl.cond": "is the first statement of a loop over pl.while_",
        "pl.yield_": "ends the body of a loop that has init_values, or a branch of an if",
        "pl.at": "opens a with statement: with pl.at(level=pl.Level.CORE_GROUP):",
    }
)

COMPILE_TIME: Mapping[object, Handler] = MappingProxyType(
    {
        pl.static_assert: _static_assert,
        pl.static_print: _static_print,
        pl.const: _const,
        pl.range: _misplaced,
        pl.parallel: _misplaced,
        pl.pipeline: _misplaced,
        pl.unroll: _misplaced,
        pl.while_: _misplaced,
        pl.cond: _misplaced,
        pl.at: _misplaced,
        pl.yield_: _misplaced,
    }
)
