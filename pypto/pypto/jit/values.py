"""The typed encoding of a captured value: equal bytes exactly where a kernel sees no difference.

``True`` is not ``1``, ``0.0`` is not ``-0.0``, a list is not a tuple. A value without an
encoding has no identity, and whoever uses it gets no persistent artifact.
"""

from __future__ import annotations

import dataclasses
import enum
import struct
from collections.abc import Callable, Iterable

Encoder = Callable[[object], "bytes | None"]
"""Encodes the values a caller knows more about; None for any other."""

Reader = Callable[[object, str], object]
"""Reads an attribute; AttributeError where there is none."""

_MAX_DEPTH = 32
_ATOMS = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))
ABSENT = object()
"""What reading an attribute gives where there is none."""


class Unidentifiable(Exception):
    """A value that has no identity across processes; the text says which."""


def is_immutable(value: object) -> bool:
    """Whether `value` cannot change in place: an atom, an enum member, or a tuple
    or frozen dataclass of those."""
    kind = type(value)
    if kind in _ATOMS:
        return True
    if isinstance(value, enum.Enum):
        return is_immutable(value.value)
    if isinstance(value, tuple) and kind is tuple:
        return all(map(is_immutable, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type) and _frozen(kind):
        return all(is_immutable(getattr(value, field.name)) for field in dataclasses.fields(value))
    return False


def encode(value: object, special: Encoder, depth: int = 0, *, read: Reader = getattr) -> bytes:
    """The encoding of `value`; Unidentifiable if it, or something in it, has none.

    What an enum member or a record stores is read with `read`.
    """
    if depth > _MAX_DEPTH:
        raise Unidentifiable("a value is nested too deeply")
    own = special(value)
    if own is not None:
        return _framed(b"o", own)
    kind = type(value)
    if value is None:
        return b"n"
    if value is Ellipsis:
        return b"."
    if kind is bool:
        return b"b1" if value else b"b0"
    if isinstance(value, enum.Enum):
        _refuse_operators(kind, special)
        inside = encode(read(value, "value"), special, depth + 1, read=read)
        return _framed(b"e", _name(kind) + b"." + _utf8(value.name) + b"\0" + inside)
    if isinstance(value, int) and kind is int:
        return _framed(b"i", b"%x" % value)  # hexadecimal: decimal digits are limited
    if isinstance(value, float) and kind is float:
        return b"f" + struct.pack(">d", value)  # math.copysign tells even NaNs apart
    if isinstance(value, complex) and kind is complex:
        return b"c" + struct.pack(">dd", value.real, value.imag)
    if isinstance(value, str) and kind is str:
        return _framed(b"s", _utf8(value))
    if isinstance(value, bytes) and kind is bytes:
        return _framed(b"y", value)
    if isinstance(value, tuple | list) and kind in (tuple, list):
        items = b"".join(encode(item, special, depth + 1, read=read) for item in value)
        return _framed(b"t" if kind is tuple else b"l", items)
    if isinstance(value, dict) and kind is dict:
        items = b"".join(
            encode(key, special, depth + 1, read=read) + encode(item, special, depth + 1, read=read)
            for key, item in value.items()
        )
        return _framed(b"d", items)
    if isinstance(value, set | frozenset) and kind in (set, frozenset):
        encoded = sorted(encode(item, special, depth + 1, read=read) for item in value)
        return _framed(b"S" if kind is set else b"F", b"".join(encoded))
    if is_record(value):
        _refuse_operators(kind, special)
        items = b"".join(
            encode(read(value, field.name), special, depth + 1, read=read)
            for field in dataclasses.fields(value)  # type: ignore[arg-type]
        )
        return _framed(b"D", _name(kind) + b"\0" + items)
    if kind.__module__ == "torch" and kind.__name__ == "dtype":
        return _framed(b"T", _utf8(str(value)))
    raise Unidentifiable(f"a {kind.__module__}.{kind.__qualname__} has no identity")


def is_record(value: object) -> bool:
    """Whether `value` is an instance of a frozen dataclass."""
    return dataclasses.is_dataclass(value) and not isinstance(value, type) and _frozen(type(value))


def has_members(value: object) -> bool:
    """Whether `value` is identified by what it stores and may have attributes beside that."""
    return isinstance(value, enum.Enum) or is_record(value)


def with_members(
    names: tuple[str, ...],
    special: Encoder,
    value: object,
    *,
    read: Reader = getattr,
    within: tuple[object, ...] = (),
) -> bytes | None:
    """`special`, and for an enum member or a record what its attributes `names` come to.

    A property is computed by code and from values that are in no field of its object. Methods
    are left out, because a kernel cannot call them; those that its operators would call are
    refused. `within` are the objects whose encoding this is a part of.
    """
    own = special(value)
    if own is not None or not has_members(value) or special(type(value)) is not None:
        return own
    _refuse_own(type(value), _IMPLICIT.intersection(names), special)

    def inside(item: object) -> bytes | None:
        if item is value or any(item is outer for outer in within):
            return special(item)
        return with_members(names, special, item, read=read, within=(*within, value))

    beside = members_beside(value, names)
    if isinstance(value, enum.Enum) and any(type(outer) is type(value) for outer in within):
        # Members of an enumeration are attributes of each other; the outermost has them all.
        beside.difference_update(type(value).__members__)
    members = []
    for name in beside:
        member = read_member(value, name, read)
        if member is not ABSENT and not callable(member):
            members.append(_framed(b"m", _utf8(name)) + encode(member, inside, read=read))
    members.sort()
    return encode(value, inside, read=read) + b"".join(members) if members else None


def members_beside(value: object, names: Iterable[str]) -> set[str]:
    """Those of `names` that a member or a record does not store, special methods left out."""
    stored = _stored(value)
    return {name for name in names if name not in stored and name not in _IMPLICIT}


def stored_members(value: object) -> tuple[str, ...]:
    """The attributes from which a member or a record is identified."""
    return ("value",) if isinstance(value, enum.Enum) else _stored(value)


def read_member(value: object, name: str, read: Reader = getattr) -> object:
    """An attribute, or `ABSENT`; Unidentifiable if reading it raises anything else."""
    try:
        return read(value, name)
    except AttributeError:
        return ABSENT
    except Exception as error:
        raise Unidentifiable(f"{name} of {value!r} cannot be read: {error!r}") from error


def _stored(value: object) -> tuple[str, ...]:
    """The attributes that are in the encoding of a member or a record by themselves."""
    if isinstance(value, enum.Enum):
        return ("name", "value")
    return tuple(field.name for field in dataclasses.fields(value))  # type: ignore[arg-type]


_OPERATORS = frozenset(
    f"__{name}__"
    for name in (
        *("getattr", "getattribute", "getitem", "len", "iter", "contains", "call", "bool"),
        *("float", "int", "index", "complex", "neg", "pos", "abs", "invert", "round"),
        *("trunc", "floor", "ceil", "divmod", "matmul", "add", "sub", "mul", "truediv"),
        *("floordiv", "mod", "pow", "lshift", "rshift", "and", "or", "xor", "radd", "rsub"),
        *("rmul", "rtruediv", "rfloordiv", "rmod", "rpow", "rand", "ror", "rxor"),
    )
)


# Methods that comparisons and formatted strings call; classes made by the interpreter have them.
_IMPLICIT = frozenset(
    f"__{name}__" for name in ("eq", "ne", "lt", "le", "gt", "ge", "str", "repr", "format")
)


def _refuse_operators(kind: type, special: Encoder) -> None:
    """Unidentifiable for a class whose instances compute by code of the user's own."""
    _refuse_own(kind, _OPERATORS, special)


def _refuse_own(kind: type, names: frozenset[str], special: Encoder) -> None:
    for base in kind.__mro__:
        if base.__module__ in ("builtins", "enum") or special(base) is not None:
            continue
        for name in names.intersection(vars(base)):
            method = vars(base)[name]
            # The enum module copies its own into the classes of flags, and what the dataclass
            # decorator writes is in its file or in none.
            if getattr(method, "__module__", None) in (None, "enum"):
                continue
            code = getattr(method, "__code__", None)
            if code is None or code.co_filename not in ("<string>", dataclasses.__file__):
                raise Unidentifiable(f"{base.__qualname__}.{name} has no identity")


def _frozen(kind: type) -> bool:
    return bool(kind.__dataclass_params__.frozen)  # type: ignore[attr-defined]


def _name(kind: type) -> bytes:
    return _utf8(f"{kind.__module__}:{kind.__qualname__}")


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _framed(tag: bytes, content: bytes) -> bytes:
    return tag + b"%d:" % len(content) + content
