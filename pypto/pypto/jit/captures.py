"""Values of the user's as they were at one moment, and the means to see whether they still are.

A kernel reads its outside at many places while other threads may change it. Every place that a
capture reads is remembered as a step that runs no code of the user's, so that all of them can be
read again within a single step of the interpreter: if each then holds what it held when it was
captured, that is the one moment which the whole capture shows.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import chain
from types import CellType, MemberDescriptorType, ModuleType
from typing import Any, TypeVar

from pypto.jit.declaration import Declared
from pypto.jit.values import (
    ABSENT,
    Encoder,
    Unidentifiable,
    encode,
    is_immutable,
    is_record,
    members_beside,
    read_member,
    stored_members,
    with_members,
)
from pypto.language.source import NO_ATTRIBUTE, CapturedAttributes

# How often a capture is begun again. Another thread that changes values all the time is outrun, and
# on a loaded machine it gets its turn during most captures. Code of the user's that never gives the
# same value twice is not, and is asked less often.
_ATTEMPTS = 4096
_COMPUTED_ATTEMPTS = 64

_EMPTY_CELL = CellType()
_MAX_DEPTH = 32
_ATOMS = frozenset({bool, int, float, complex, str, bytes, type(None), type(Ellipsis)})


@dataclass(frozen=True, slots=True, eq=False)
class Computed:
    """An attribute that code of the user's computes: comparable by value only."""

    owner: object
    name: str
    value: object
    encoding: bytes | None


@dataclass(frozen=True, slots=True, eq=False)
class Guards:
    """What must still be so for a capture to be current.

    Places are read again by calling each of `getters` with the one of `owners` at its position,
    which runs no code of the user's. The first `grouped` results are tuples that come to `values`
    in a row; the other results are to equal `singles`, of which tuples hold a container's items.
    `encoder` knows the values that `computed` may contain.
    """

    getters: tuple[Callable[[Any], object], ...]
    owners: tuple[object, ...]
    grouped: int
    values: tuple[object, ...]
    singles: tuple[object, ...]
    computed: tuple[Computed, ...]
    encoder: Encoder

    def hold(self) -> bool:
        """Whether everything captured is what it was, at one moment. No I/O.

        What the user's own code computes is asked for before that moment.
        """
        try:
            for attribute in self.computed:
                if not self._computes(attribute):
                    return False
            # One step: no other thread gets its turn while the places are read.
            found = tuple(map(operator.call, self.getters, self.owners))
        except Exception:  # noqa: BLE001 - the user's property may raise anything; places may be gone
            return False
        groups: Any = found
        if self.singles:
            if not all(map(_same_single, found[self.grouped :], self.singles)):
                return False
            groups = found[: self.grouped]
        return all(map(operator.is_, chain.from_iterable(groups), self.values)) or all(
            map(_same, chain.from_iterable(groups), self.values)
        )

    def _computes(self, attribute: Computed) -> bool:
        found = getattr(attribute.owner, attribute.name, ABSENT)
        if found is attribute.value:
            return True
        if attribute.encoding is None or found is ABSENT:
            return False
        return encode(found, self.encoder) == attribute.encoding


Taken = TypeVar("Taken")


def at_one_moment(take: Callable[[], tuple[Taken, Guards]]) -> tuple[Taken, bool]:
    """What `take` captures, taken until its guards hold, and whether they came to hold."""
    for attempt in range(1, _ATTEMPTS + 1):
        taken, guards = take()
        if guards.hold():
            return taken, True
        if guards.computed and attempt >= _COMPUTED_ATTEMPTS:
            break
    return taken, False


class Captures:
    """Collects values and their guards.

    `represent` gives what stands for a declared function, `own` identifies what needs no capture,
    `mentioned` are the attributes that may be read of a member or a record.
    """

    def __init__(
        self,
        *,
        represent: Callable[[Declared], object],
        own: Encoder,
        mentioned: tuple[str, ...],
    ) -> None:
        self.met_members = False
        self._represent = represent
        self._own = own
        self._mentioned = mentioned
        # What was read of each owner, whoever asked: names and values, by the owner's id.
        self._items: dict[int, tuple[dict[str, object], dict[str, object]]] = {}
        self._slots: dict[int, tuple[object, dict[str, object]]] = {}
        self._singles: list[tuple[Callable[[Any], object], object, object]] = []
        self._frozen: dict[int, tuple[object, object]] = {}
        self._attributes: dict[tuple[int, str], tuple[object, object]] = {}
        self._computed: dict[tuple[int, str], Computed] = {}
        self.attributes = CapturedAttributes(self._attributes)

    def guards(self, encoder: Encoder) -> Guards:
        """The guards of everything captured so far."""
        groups: list[tuple[Callable[[Any], object], object]] = []
        values: list[object] = []
        singles = list(self._singles)
        for mapping, names in self._items.values():
            present = {name: value for name, value in names.items() if value is not ABSENT}
            if present:
                groups.append((_together(operator.itemgetter, present), mapping))
                values += _in_order(present)
            if len(present) < len(names):
                absent = tuple(name for name in names if name not in present)
                singles.append((mapping.keys().isdisjoint, absent, True))
        for owner, names in self._slots.values():
            groups.append((_together(operator.attrgetter, names), owner))
            values += _in_order(names)
        return Guards(
            (*(getter for getter, _ in groups), *(getter for getter, _, _ in singles)),
            (*(owner for _, owner in groups), *(owner for _, owner, _ in singles)),
            len(groups),
            tuple(values),
            tuple(value for _, _, value in singles),
            tuple(self._computed.values()),
            partial(with_members, self._mentioned, encoder),
        )

    # -- places -----------------------------------------------------------------------------

    def item(self, mapping: dict[str, object], name: str) -> object:
        """The value of a name in a namespace, or ABSENT; read once, whoever asks again."""
        _, names = self._items.setdefault(id(mapping), (mapping, {}))
        if name not in names:
            names[name] = mapping.get(name, ABSENT)
        return names[name]

    def slot(self, owner: object, name: str) -> object:
        """An attribute that is read without code of the user's, or whatever that raises."""
        known = self._slots.get(id(owner))
        if known is not None and name in known[1]:
            return known[1][name]
        value = getattr(owner, name)
        self._slots.setdefault(id(owner), (owner, {}))[1][name] = value
        return value

    def empty(self, cell: CellType) -> None:
        """Remember that a cell has no content."""
        # Cells compare by content, and nothing but an empty one equals an empty one.
        self._singles.append((partial(operator.eq, _EMPTY_CELL), cell, True))

    def attribute(self, owner: object, name: str) -> object:
        """An attribute of one of the user's modules, classes or objects, or ABSENT.

        Raises whatever a property raises.
        """
        match _plain(owner, name):
            case _Way.ITEM:
                return self.item(vars(owner), name)
            case _Way.SLOT:
                return self.slot(owner, name)
        known = self._computed.get((id(owner), name))
        if known is not None:
            return known.value
        found = getattr(owner, name, ABSENT)
        computed = Computed(owner, name, found, self._encoding(found))
        self._computed[(id(owner), name)] = computed
        return found

    def show(self, owner: object, name: str, value: object) -> None:
        """Let the parser see `value` as that attribute, or ABSENT, whatever becomes of it."""
        shown = NO_ATTRIBUTE if value is ABSENT else value
        self._attributes[(id(owner), name)] = (owner, shown)

    def show_unless_shown(self, owner: object, name: str, value: object) -> None:
        """`show`, for what the parser only passes through on its way to an attribute of it."""
        self._attributes.setdefault((id(owner), name), (owner, value))

    def _encoding(self, value: object) -> bytes | None:
        if value is ABSENT:
            return None
        try:
            return encode(value, partial(with_members, self._mentioned, self._own))
        except (Unidentifiable, RecursionError):
            return None

    # -- values -----------------------------------------------------------------------------

    def freeze(self, value: object, depth: int = 0) -> object:
        """`value` as it is now, for good: containers are copied, declared functions represented.

        Raises Unidentifiable for what is nested too deeply or cannot be read.
        """
        kind = type(value)
        if kind in _ATOMS:
            return value
        known = self._frozen.get(id(value))
        if known is not None:
            return known[1]
        if depth > _MAX_DEPTH:
            raise Unidentifiable("a value is nested too deeply")
        frozen = self._freeze(value, kind, depth + 1)
        self._frozen[id(value)] = (value, frozen)
        return frozen

    def _freeze(self, value: object, kind: type, depth: int) -> object:
        if isinstance(value, Declared):
            return self._represent(value)
        if kind is tuple:
            assert isinstance(value, tuple)
            items = tuple(self.freeze(item, depth) for item in value)
            return value if all(map(operator.is_, items, value)) else items
        if kind is list:
            assert isinstance(value, list)
            copy: list[object] = []
            self._frozen[id(value)] = (value, copy)  # aliases stay aliases
            copy += [self.freeze(item, depth) for item in self._contents(value)]
            return copy
        if kind is dict:
            assert isinstance(value, dict)
            pairs = tuple(value.items())
            self._singles.append((tuple, value, tuple(key for key, _ in pairs)))
            self._singles.append((tuple, value.values(), tuple(item for _, item in pairs)))
            return {key: self.freeze(item, depth) for key, item in pairs}
        if kind is set:
            assert isinstance(value, set)
            return set(self._contents(value))
        if isinstance(value, enum.Enum) or is_record(value):
            self._frozen[id(value)] = (value, value)  # it may be an attribute of its own
            self._members(value, depth)
        return value

    def _contents(self, value: list[object] | set[object]) -> tuple[object, ...]:
        items = tuple(value)
        self._singles.append((tuple, value, items))
        return items

    def _members(self, value: object, depth: int) -> None:
        """Capture what a member or a record stores, and what its attributes come to."""
        for name in stored_members(value):
            stored = getattr(value, name)
            frozen = self.freeze(stored, depth)
            if frozen is not stored:
                self.show(value, name, frozen)
        if self._own(type(value)) is not None:
            return
        self.met_members = True
        for name in members_beside(value, self._mentioned):
            found = read_member(value, name, self.attribute_or_error)
            if found is not ABSENT and not callable(found):
                self.show(value, name, self.freeze(found, depth))

    def attribute_or_error(self, owner: object, name: str) -> object:
        """`attribute`, raising AttributeError where there is none."""
        found = self.attribute(owner, name)
        if found is ABSENT:
            raise AttributeError(name)
        return found

    def encode(self, frozen: object, special: Encoder) -> bytes:
        """The encoding of a frozen value; Unidentifiable if it has none."""
        read = self.attributes.read
        return encode(frozen, partial(with_members, self._mentioned, special, read=read), read=read)


def _same(found: object, value: object) -> bool:
    """Whether a value is the same to a kernel; properties and rebindings make a new one."""
    if found is value:
        return True
    if type(found) is not type(value) or not (is_immutable(found) and is_immutable(value)):
        return False
    try:
        return encode(found, _nothing) == encode(value, _nothing)
    except Unidentifiable:
        return False


def _same_single(found: object, value: object) -> bool:
    if not isinstance(found, tuple):
        return found is value
    assert isinstance(value, tuple)
    return len(found) == len(value) and all(map(_same, found, value))


def _together(getter: Callable[..., Callable[[Any], object]], names: dict[str, object]) -> Any:
    """One getter of all `names`, which gives a tuple even of one."""
    return getter(*names, *(names if len(names) == 1 else ()))


def _in_order(names: dict[str, object]) -> tuple[object, ...]:
    return (*names.values(), *(names.values() if len(names) == 1 else ()))


def _nothing(_: object) -> bytes | None:
    return None


class _Way(enum.Enum):
    """How an attribute is read again without running code of the user's."""

    ITEM = enum.auto()
    SLOT = enum.auto()


def _plain(owner: object, name: str) -> _Way | None:
    """The way to read an attribute; None if code of the user's has a say in it."""
    kind = type(owner)
    if isinstance(owner, ModuleType) and kind.__getattribute__ is ModuleType.__getattribute__:
        names = vars(owner)
        if hasattr(kind, name) or (name not in names and "__getattr__" in names):
            return None
        return _Way.ITEM
    if isinstance(owner, type):
        raw = _in_classes(owner, name)
        plain = kind.__getattribute__ is type.__getattribute__ and not hasattr(kind, name)
        return _Way.SLOT if plain and _is_value(raw) else None
    if kind.__getattribute__ is not object.__getattribute__:
        return None
    raw = _in_classes(kind, name)
    own = getattr(owner, "__dict__", None)
    if isinstance(own, dict) and name in own:
        return None if hasattr(type(raw), "__set__") else _Way.SLOT
    filled = type(raw) is MemberDescriptorType and hasattr(owner, name)
    return _Way.SLOT if filled or _is_value(raw) else None


def _is_value(raw: object) -> bool:
    """Whether what a class has under a name is the attribute itself."""
    return raw is not ABSENT and not hasattr(type(raw), "__get__")


def _in_classes(kind: type, name: str) -> object:
    for base in kind.__mro__:
        if name in vars(base):
            return vars(base)[name]
    return ABSENT
