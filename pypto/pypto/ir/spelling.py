"""How a program says an operation: the text that the language's parser reads as that operation.

Most operations are ``pl.<family>.<name>`` with their operands in order and their attributes as
keywords. :data:`_SPELLINGS` has those that are said otherwise.
"""

from __future__ import annotations

import enum
import keyword
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from pypto.ir.dtypes import BOOL, FP32, INDEX
from pypto.ir.nodes import AttrValue, Const, MemorySpace, Op, TensorType
from pypto.ir.ops import OPS
from pypto.ir.typing_rules import rank_of, type_of

Texts = Sequence[str]
Spelling = Callable[[Op, Texts], str]


def spelled(op: Op, operands: Texts) -> str:
    """The expression that makes ``op``; ``operands`` are the texts of its operands."""
    spelling = _SPELLINGS.get(op.op)
    if spelling is not None:
        return spelling(op, operands)
    if symbol := OPS[op.op].symbol:
        return _infix(symbol, operands)
    return _call(f"pl.{op.op}", [*operands, *_keywords(op)])


def spelled_const(const: Const, *, exact: bool = False) -> str:
    """A literal; ``exact`` says its type where a plain number would do."""
    value, dtype = const.value, const.dtype
    text = spelled_number(value)
    return text if dtype in (INDEX, BOOL, FP32) and not exact else f"pl.const({text}, {dtype!r})"


def spelled_number(value: bool | int | float) -> str:
    """A number as Python reads it back."""
    finite = not isinstance(value, float) or math.isfinite(value)
    return repr(value) if finite else f'float("{value}")'


def spelled_attribute(value: AttrValue | None) -> str:
    """The value of an attribute."""
    if isinstance(value, MemorySpace):
        return f"pl.Mem.{value.name}"
    if isinstance(value, enum.Enum):
        return f"pl.{type(value).__name__}.{value.name}"
    if isinstance(value, tuple):
        return spelled_list([spelled_attribute(item) for item in value])
    return spelled_number(value) if isinstance(value, float) else repr(value)


def spelled_list(items: Texts) -> str:
    """``[a, b]``."""
    return f"[{', '.join(items)}]"


def _call(function: str, arguments: Texts) -> str:
    family, _, name = function.rpartition(".")
    word = f"{name}_" if keyword.iskeyword(name) else name
    return f"{family}.{word}({', '.join(arguments)})"


def _infix(symbol: str, operands: Texts) -> str:
    # A sign in front of a number binds less than some operators do.
    atoms = [f"({text})" if text.startswith("-") else text for text in operands]
    if len(atoms) == 1:
        return f"not {atoms[0]}" if symbol == "not" else f"{symbol}{atoms[0]}"
    return f"{atoms[0]} {symbol} {atoms[1]}"


def _keywords(op: Op, *but: str) -> Iterator[str]:
    """The attributes that no other argument says. An address is said by the type."""
    for name, value in sorted(op.attrs.items()):
        if name not in (*but, "addr"):
            yield f"{name}={spelled_attribute(value)}"


def _renamed(name: str, *order: int) -> Spelling:
    """Another name, and the operands in another order."""

    def spell(op: Op, operands: Texts) -> str:
        chosen = [operands[i] for i in order] if order else list(operands)
        return _call(name, [*chosen, *_keywords(op)])

    return spell


def _load(op: Op, operands: Texts) -> str:
    rank = rank_of(op.operands[0])
    shape = op.attrs["shape"]
    assert isinstance(shape, tuple)
    extents = [str(extent) for extent in (shape[1:] if rank == 1 else shape)]
    arguments = [operands[0], spelled_list(operands[1 : rank + 1]), spelled_list(extents)]
    if op.attrs["has_valid"]:
        arguments.append(f"valid_shape={spelled_list(operands[rank + 1 :])}")
    if op.attrs["space"] is not MemorySpace.Vec:
        arguments.append(f"target_memory={spelled_attribute(op.attrs['space'])}")
    arguments += _keywords(op, "shape", "has_valid", "space")
    return _call("pl.load", arguments)


def _store(op: Op, operands: Texts) -> str:
    arguments = [operands[0], spelled_list(operands[1:-1]), operands[-1], *_keywords(op)]
    return _call("pl.store", arguments)


def _move(op: Op, operands: Texts) -> str:
    space = spelled_attribute(op.attrs["space"])
    return _call("pl.move", [operands[0], space, *_keywords(op, "space")])


def _tile_create(op: Op, operands: Texts) -> str:
    shape, space = (spelled_attribute(op.attrs[name]) for name in ("shape", "space"))
    rest = _keywords(op, "shape", "space")
    return _call("pl.tile.create", [shape, *rest, f"target_memory={space}"])


def _shaped(name: str) -> Spelling:
    """A shape after the operands, and keywords."""

    def spell(op: Op, operands: Texts) -> str:
        shape = spelled_attribute(op.attrs["shape"])
        return _call(name, [*operands, shape, *_keywords(op, "shape")])

    return spell


def _cast(op: Op, operands: Texts) -> str:
    dtype = spelled_attribute(op.attrs["dtype"])
    function = "pl.cast" if op.op == "scalar.cast" else f"pl.{op.op}"
    plain = [] if "mode" in op.attrs else ["mode=None"]
    return _call(function, [operands[0], dtype, *_keywords(op, "dtype"), *plain])


def _transpose(op: Op, operands: Texts) -> str:
    axes = [spelled_attribute(op.attrs[name]) for name in ("axis1", "axis2")]
    return _call(f"pl.{op.op}", [operands[0], *axes, *_keywords(op, "axis1", "axis2")])


def _fillpad_expand(op: Op, operands: Texts) -> str:
    pad, shape = f"pl.PadValue.{op.attrs['pad']}", spelled_attribute(op.attrs["shape"])
    return _call(f"pl.{op.op}", [operands[0], shape, pad, *_keywords(op, "pad", "shape")])


def _matmul_init(op: Op, operands: Texts) -> str:
    acc, condition, *factors = operands
    family = op.op.split(".")[0]
    arguments = [acc, *factors, f"init_cond={condition}", *_keywords(op)]
    return _call(f"pl.{family}.matmul_acc", arguments)


def _fillpad(op: Op, operands: Texts) -> str:
    pad = f"pl.PadValue.{op.attrs['pad']}"
    return _call(f"pl.{op.op}", [operands[0], pad, *_keywords(op, "pad")])


def _slice(op: Op, operands: Texts) -> str:
    rank = rank_of(op.operands[0])
    arguments = [
        operands[0],
        spelled_attribute(op.attrs["shape"]),
        spelled_list(operands[1 : rank + 1]),
    ]
    if op.attrs["has_valid"]:
        arguments.append(f"valid_shape={spelled_list(operands[rank + 1 :])}")
    if op.attrs["drop"]:
        arguments.append(f"drop_dims={spelled_attribute(op.attrs['drop'])}")
    if op.attrs["pad"]:
        arguments.append(f"pad_value=pl.PadValue.{op.attrs['pad']}")
    arguments += _keywords(op, "shape", "has_valid", "drop", "pad")
    return _call("pl.slice", arguments)


def _tile_slice(op: Op, operands: Texts) -> str:
    arguments = [
        operands[0],
        spelled_attribute(op.attrs["shape"]),
        spelled_list(operands[1:3]),
    ]
    if op.attrs["has_valid"]:
        arguments.append(f"valid_shape={spelled_list(operands[3:])}")
    if op.attrs["pad"]:
        arguments.append(f"pad_value=pl.PadValue.{op.attrs['pad']}")
    if op.attrs["clamp"]:
        arguments.append("clamp=True")
    arguments += _keywords(op, "shape", "has_valid", "pad", "clamp")
    return _call("pl.tile.slice", arguments)


def _element(op: Op, operands: Texts) -> str:
    """One element: the container, its indices, and what it takes."""
    value = operands[-1:] if op.op.endswith(".write") else []
    indices = operands[1 : len(operands) - len(value)]
    return _call(f"pl.{op.op}", [operands[0], spelled_list(indices), *value, *_keywords(op)])


def _tile_assemble(op: Op, operands: Texts) -> str:
    arguments = [operands[0], operands[-1], spelled_list(operands[1:-1]), *_keywords(op)]
    return _call("pl.tile.assemble", arguments)


def _view(op: Op, operands: Texts) -> str:
    rank = rank_of(op.operands[0])
    extents = _filled(op.attrs["shape"], operands[rank + 1 :])
    arguments = [operands[0], spelled_list(extents), spelled_list(operands[1 : rank + 1])]
    if op.attrs["drop"]:
        arguments.append(f"drop_dims={spelled_attribute(op.attrs['drop'])}")
    return _call("pl.slice", [*arguments, *_keywords(op, "shape", "symbols", "drop")])


def _filled(shape: AttrValue, values: Texts) -> list[str]:
    """The extents of a shape, the run-time ones among them taken from ``values``."""
    assert isinstance(shape, tuple)
    given = iter(values)
    return [next(given) if extent is None else str(extent) for extent in shape]


def _create(op: Op, operands: Texts) -> str:
    extents = spelled_list(_filled(op.attrs["shape"], operands))
    return _call("pl.create_tensor", [extents, *_keywords(op, "shape", "symbols")])


def _assemble(op: Op, operands: Texts) -> str:
    arguments = [operands[0], operands[-1], spelled_list(operands[1:-1])]
    source, shape = type_of(op.operands[-1]), op.attrs["shape"]
    assert isinstance(source, TensorType) and isinstance(shape, tuple)
    if (1,) * (len(shape) - len(source.shape)) + source.shape != shape:
        arguments.append(f"shape={spelled_attribute(shape)}")
    return _call("pl.assemble", [*arguments, *_keywords(op, "shape")])


def _with_scratch(op: Op, operands: Texts) -> str:
    """A tile operation whose temporary tile the compiler provides unless one is given."""
    arguments = [*operands, *(["None"] if len(operands) == 1 else [])]
    return _call(f"pl.{op.op}", [*arguments, *_keywords(op)])


_FAMILIES = ("tile", "tensor")

_SPELLINGS: Mapping[str, Spelling] = MappingProxyType(
    {
        "tile.load": _load,
        "tile.store": _store,
        "tile.move": _move,
        "tile.create": _tile_create,
        "tile.full": _shaped("pl.tile.full"),
        "tile.reshape": _shaped("pl.tile.reshape"),
        "tensor.reshape": _shaped("pl.tensor.reshape"),
        "tensor.full": _shaped("pl.tensor.full"),
        "tensor.slice": _slice,
        "tensor.view": _view,
        "tensor.create": _create,
        "tensor.assemble": _assemble,
        "tile.slice": _tile_slice,
        "tile.assemble": _tile_assemble,
        "task.none": lambda op, operands: "None",
        "scalar.cast": _cast,
        "scalar.min": _renamed("pl.min"),
        "scalar.max": _renamed("pl.max"),
        **{
            name: _with_scratch
            for name, spec in OPS.items()
            if spec.scratch and spec.reduces is not None
        },
        **{
            f"{family}.{name}": spelling
            for family in _FAMILIES
            for name, spelling in (
                ("cast", _cast),
                ("transpose", _transpose),
                ("fillpad", _fillpad),
                ("read", _element),
                ("write", _element),
                ("fillpad_expand", _fillpad_expand),
                ("matmul_init", _matmul_init),
                ("rsels", _renamed(f"pl.{family}.sel", 0, 2, 1)),
                ("maxs", _renamed(f"pl.{family}.maximums")),
                ("mins", _renamed(f"pl.{family}.minimums")),
                ("rsubs", _renamed(f"pl.{family}.sub", 1, 0)),
                ("rdivs", _renamed(f"pl.{family}.div", 1, 0)),
            )
        },
    }
)
