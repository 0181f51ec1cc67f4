"""Programs as bytes.

    pypto-ir/1 <SHA-256 of the rest, in hex>\\n
    {"root": ..., "schema": "..."}

The rest is one line of JSON in UTF-8: ``schema`` digests what the classes of the representation
and the operations are, ``root`` is the program or function. A value is written as

    null, true, "text"            what it is in JSON; so are integers
    ["f", "0x1.8p+1"]             a float, exactly; ["f", "nan"], ["f", "inf"], ["f", "-inf"]
    ["t", item...]                a tuple
    ["m", [key, value]...]        a mapping, in its order
    ["e", "Direction", "Out"]     a member of an enumeration
    ["d", "fp32"]                 an element type
    ["v", n, "name", type]        a variable where it first occurs, and ["v", n] afterwards
    ["n", "Op", field...]         an object, its fields in the order of its class

Equal programs give equal bytes. There is one way to write a program, and other bytes are refused.

Version 1: the first. A change of the classes or of the table of operations changes the schema and
needs no new version; a change of the grammar does. Bytes of another version or schema are refused:
they are for processes of one release, not for keeping.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import json
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any

from pypto.ir import external, nodes
from pypto.ir.dtypes import BY_NAME, TASK_ID, DataType
from pypto.ir.nodes import Function, Program, Var
from pypto.ir.op_spec import OpSpec
from pypto.ir.ops import OPS

_MAGIC = "pypto-ir"
_VERSION = 1
# More than any kernel needs, and little enough to refuse before memory runs out.
MAX_BYTES = 64 << 20
_MAX_DEPTH = 256

_DTYPES = {**BY_NAME, TASK_ID.name: TASK_ID}


class DamagedProgram(ValueError):
    """Bytes that are no serialized program of this version; ``reason`` says what is wrong."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"cannot read a serialized program: {reason}; serialize it again with this version"
        )


def serialize(program: Program | Function) -> bytes:
    """The program or function as bytes, which `deserialize` reads.

    Raises ValueError for one that is too large or nested too deeply.
    """
    if not isinstance(program, Program | Function):
        raise TypeError(
            f"ir.serialize takes an ir.Program or an ir.Function, not {type(program).__name__}"
        )
    try:
        document = {"root": _Writer().value(program, 0), "schema": _schema()}
    except RecursionError:
        raise ValueError("a program that is nested so deeply cannot be serialized") from None
    body = json.dumps(document, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    data = body.encode("utf-8")
    if len(data) > MAX_BYTES:
        raise ValueError(f"a program of {len(data)} bytes is larger than {MAX_BYTES}")
    return f"{_MAGIC}/{_VERSION} {hashlib.sha256(data).hexdigest()}\n".encode() + data


def deserialize(data: bytes) -> Program | Function:
    """The program or function that `serialize` wrote.

    Nothing in ``data`` is executed. Raises DamagedProgram for any other bytes.
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"ir.deserialize takes bytes, not {type(data).__name__}")
    text = bytes(data)
    try:
        node = _read(text)
        again = serialize(node)
    except RecursionError:
        raise DamagedProgram("it is nested too deeply") from None
    if again != text:
        raise DamagedProgram("it is not written in the one way that programs are")
    return node


def _read(data: bytes) -> Program | Function:
    if len(data) > MAX_BYTES + 128:
        raise DamagedProgram(f"it has {len(data)} bytes, more than {MAX_BYTES}")
    head, separator, body = data.partition(b"\n")
    magic, _, rest = head.partition(b"/")
    version, _, digest = rest.partition(b" ")
    if magic != _MAGIC.encode() or not separator:
        raise DamagedProgram("it does not begin like one")
    if version != str(_VERSION).encode():
        raise DamagedProgram(f"it is of version {version[:16]!r}, not {_VERSION}")
    if digest != hashlib.sha256(body).hexdigest().encode():
        raise DamagedProgram("its digest is another than its content's")
    try:
        document = json.loads(body, parse_float=_no_float, parse_constant=_no_float)
    except (ValueError, RecursionError) as error:
        raise DamagedProgram(f"its content is no JSON: {error}") from error
    if not isinstance(document, dict) or set(document) != {"root", "schema"}:
        raise DamagedProgram("its content is not a root and a schema")
    if document["schema"] != _schema():
        raise DamagedProgram(
            "another version of the compiler wrote it, whose programs or operations are others"
        )
    node = _Reader().value(document["root"], 0)
    if not isinstance(node, Program | Function):
        raise DamagedProgram(f"it holds a {type(node).__name__}, no program or function")
    return node


def _no_float(text: str) -> None:
    raise ValueError(f"the number {text} is no integer")


# --- the classes of the representation -----------------------------------------------------


def _classes() -> Mapping[str, type[Any]]:
    """Every class that is written field by field."""
    found = {
        name: value
        for module in (nodes, external)
        for name, value in vars(module).items()
        if isinstance(value, type)
        and value.__module__ == module.__name__
        and hasattr(value, "__dataclass_fields__")
        and value is not Var
    }
    return MappingProxyType(found)


def _enums() -> Mapping[str, type[enum.Enum]]:
    found = {
        name: value
        for name, value in vars(nodes).items()
        if isinstance(value, type) and issubclass(value, enum.Enum)
    }
    return MappingProxyType(found)


_CLASSES = _classes()
_ENUMS = _enums()


@functools.cache
def _schema() -> str:
    lines = [
        f"{name}({', '.join(f'{f.name}: {f.type}' for f in fields(c))})"
        for name, c in _CLASSES.items()
    ]
    lines += [f"{name}({', '.join(c.__members__)})" for name, c in _ENUMS.items()]
    lines += [_operation(spec) for spec in OPS.values()]
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16]


def _operation(spec: OpSpec) -> str:
    """What a program that uses an operation relies on: how it is written and what it computes."""
    operands = [kind.name for kind in spec.operands]
    elements = spec.elements and [dtype.name for dtype in spec.elements.dtypes]
    return repr(
        (spec.name, operands, spec.attrs, spec.optional, spec.scratch, elements, spec.reference)
    )


@functools.cache
def _hints() -> Mapping[str, Mapping[str, Any]]:
    """The annotations of every class, by its name."""
    names = vars(nodes) | vars(external)
    return {name: typing.get_type_hints(cls, names) for name, cls in _CLASSES.items()}


# --- writing -------------------------------------------------------------------------------


class _Writer:
    def __init__(self) -> None:
        self._vars: dict[Var, int] = {}

    def value(self, value: Any, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise ValueError(f"a program nested deeper than {_MAX_DEPTH} cannot be serialized")
        below = depth + 1
        if isinstance(value, DataType):
            return ["d", value.name]
        if isinstance(value, enum.Enum):
            return ["e", type(value).__name__, value.name]
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return ["f", value.hex() if math.isfinite(value) else str(value)]
        if isinstance(value, tuple):
            return ["t", *(self.value(item, below) for item in value)]
        if isinstance(value, Mapping):
            return ["m", *([key, self.value(item, below)] for key, item in value.items())]
        if isinstance(value, Var):
            return self._variable(value, below)
        cls = Function if isinstance(value, Function) else type(value)
        if _CLASSES.get(cls.__name__) is not cls:
            raise TypeError(f"a {cls.__name__} is no part of a program")
        found = {field.name: getattr(value, field.name) for field in fields(cls)}
        if cls is Program:
            found["sources"] = {}  # where the user's files are here says nothing elsewhere
        return ["n", cls.__name__, *(self.value(item, below) for item in found.values())]

    def _variable(self, var: Var, depth: int) -> list[Any]:
        known = self._vars.get(var)
        if known is not None:
            return ["v", known]
        number = self._vars[var] = len(self._vars)
        return ["v", number, var.name, self.value(var.type, depth)]


# --- reading -------------------------------------------------------------------------------


class _Reader:
    def __init__(self) -> None:
        self._vars: list[Var] = []

    def value(self, value: Any, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise DamagedProgram(f"it is nested deeper than {_MAX_DEPTH}")
        if value is None or isinstance(value, bool | int | str):
            return value
        if not isinstance(value, list) or not value or not isinstance(value[0], str):
            raise DamagedProgram(f"{_shown(value)} is no value")
        kind, *items = value
        reader = getattr(self, f"_read_{kind}", None) if kind in _KINDS else None
        if reader is None:
            raise DamagedProgram(f"there is no kind of value called {kind[:16]!r}")
        return reader(items, depth + 1)

    def _read_t(self, items: list[Any], depth: int) -> tuple[Any, ...]:
        return tuple(self.value(item, depth) for item in items)

    def _read_f(self, items: list[Any], depth: int) -> float:
        try:
            (text,) = items
            return float(text) if text in ("nan", "inf", "-inf") else float.fromhex(text)
        except (ValueError, TypeError, OverflowError):
            raise DamagedProgram(f"{_shown(items)} is no float") from None

    def _read_m(self, items: list[Any], depth: int) -> Mapping[str, Any]:
        found: dict[str, Any] = {}
        for item in items:
            if not isinstance(item, list) or len(item) != 2 or not isinstance(item[0], str):
                raise DamagedProgram(f"{_shown(item)} is no item of a mapping")
            found[item[0]] = self.value(item[1], depth)
        return MappingProxyType(found)

    def _read_e(self, items: list[Any], depth: int) -> enum.Enum:
        match items:
            case [str() as cls, str() as name] if cls in _ENUMS:
                member = _ENUMS[cls].__members__.get(name)
                if member is not None:
                    return member
        raise DamagedProgram(f"{_shown(items)} is no member of an enumeration")

    def _read_d(self, items: list[Any], depth: int) -> DataType:
        match items:
            case [str() as name] if name in _DTYPES:
                return _DTYPES[name]
        raise DamagedProgram(f"{_shown(items)} is no element type")

    def _read_v(self, items: list[Any], depth: int) -> Var:
        match items:
            case [int() as number] if 0 <= number < len(self._vars):
                return self._vars[number]
            case [int() as number, str() as name, type_] if number == len(self._vars):
                read = self.value(type_, depth)
                _check("type", read, nodes.Type)
                self._vars.append(Var(name, read))
                return self._vars[-1]
        raise DamagedProgram(f"{_shown(items)} is no variable")

    def _read_n(self, items: list[Any], depth: int) -> Any:
        name, *given = items or [None]
        cls = _CLASSES.get(name) if isinstance(name, str) else None
        if cls is None:
            raise DamagedProgram(f"there is no class {_shown(name)}")
        names = [field.name for field in fields(cls)]
        if len(given) != len(names):
            raise DamagedProgram(f"a {name} has {len(names)} fields, not {len(given)}")
        values = {field: self.value(item, depth) for field, item in zip(names, given, strict=True)}
        for field, hint in _hints()[cls.__name__].items():
            _check(f"{name}.{field}", values[field], hint)
        return cls(**values)


_KINDS = frozenset("tfmedvn")


def _check(what: str, value: Any, hint: Any) -> None:
    if not _fits(value, hint):
        raise DamagedProgram(f"{what} cannot be {_shown(value)}")


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of an annotated type, all the way down."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, argument) for argument in arguments)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return all(_fits(item, arguments[0]) for item in value)
        return len(value) == len(arguments) and all(map(_fits, value, arguments))
    if origin is not None:  # a mapping
        return isinstance(value, Mapping) and all(
            _fits(item, arguments[1]) for item in value.values()
        )
    return type(value) is hint or (isinstance(value, hint) and hint not in (int, float))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 64 else f"{text[:60]}..."
