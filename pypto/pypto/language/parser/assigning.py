"""``out[:] = value``: all of a tensor takes the values of another one."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import MappingProxyType

from pypto.ir.dtypes import BF16, FP16, FP32, DataType
from pypto.ir.nodes import AttrValue, Var
from pypto.language import functions as pl
from pypto.language.parser.frame import Frame
from pypto.language.parser.site import CallSite, Handler
from pypto.language.parser.values import Value


def assign_whole(frame: Frame, target: Var, source: Var, node: ast.AST, hint: str) -> Var:
    """Emits the assignment; the result names the memory of ``target``."""
    source = narrowed(frame, source, target.type.dtype, node)
    result = frame.emit("tensor.assign", [target, source], node, hint=hint)
    frame.values.record_write(result, target)
    return result


def narrowed(frame: Frame, value: Var, dtype: DataType, node: ast.AST) -> Var:
    """The fp32 of a matrix product is narrowed when it is written, as ``pl.store`` does."""
    if value in frame.values.products and value.type.dtype == FP32 and dtype in (FP16, BF16):
        attrs: dict[str, AttrValue] = {"dtype": dtype, "mode": "rint"}
        return frame.emit("tensor.cast", [value], node, hint=value.name, attrs=attrs)
    return value


def _assign(site: CallSite) -> Value:
    target, source = site.tensor("target"), site.tensor("source")
    return assign_whole(site.frame, target, source, site.node, site.hint)


ASSIGNING: Mapping[object, Handler] = MappingProxyType({pl.assign: _assign})
