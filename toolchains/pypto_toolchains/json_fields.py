"""Strict reading of JSON objects whose grammar a module of this package owns.

A document that lacks a field, has another one, or holds a value of another type is refused with
the path of the culprit inside it; nothing is coerced. ``bool`` is no ``int`` here, and a key that
occurs twice is an error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any


class FieldError(ValueError):
    """A document that does not follow its grammar; says where and what was expected."""


def parse_object(data: bytes, limit: int) -> dict[str, Any]:
    """The JSON object in ``data``; FieldError unless it is one, in UTF-8 and ``limit`` bytes."""
    if len(data) > limit:
        raise FieldError(f"is larger than {limit} bytes")
    try:
        value = _DECODER.decode(data.decode("utf-8"))
        if b"\\u" in data:
            # An escape may be half of a character, which no path or text of the system can hold.
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except FieldError:
        raise
    except (ValueError, RecursionError) as error:
        raise FieldError(f"is not valid JSON ({error})") from error
    return as_object(value, "the document")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        raise FieldError(f"names {', '.join(map(repr, twice))} more than once")
    return result


# Made once: making one takes as long as reading a small document.
_DECODER = json.JSONDecoder(object_pairs_hook=_no_duplicates)


def as_object(value: object, where: str) -> dict[str, Any]:
    """``value`` if it is a JSON object."""
    if not isinstance(value, dict):
        raise FieldError(f"{where} must be an object, not {_kind(value)}")
    return value


def check_keys(
    value: Mapping[str, Any],
    where: str,
    required: AbstractSet[str],
    optional: AbstractSet[str] = frozenset(),
) -> None:
    """Refuse an object that lacks a required key or has one that its grammar does not know."""
    missing = required - value.keys()
    if missing:
        raise FieldError(f"{where} lacks {', '.join(map(repr, sorted(missing)))}")
    unknown = value.keys() - required - optional
    if unknown:
        raise FieldError(f"{where} has unknown {', '.join(map(repr, sorted(unknown)))}")


def as_text(value: object, where: str) -> str:
    """``value`` if it is a non-empty string."""
    if not isinstance(value, str) or not value:
        raise FieldError(f"{where} must be a non-empty string, not {_kind(value)}")
    return value


def as_flag(value: object, where: str) -> bool:
    """``value`` if it is true or false."""
    if not isinstance(value, bool):
        raise FieldError(f"{where} must be true or false, not {_kind(value)}")
    return value


def as_int(value: object, where: str) -> int:
    """``value`` if it is an integer."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise FieldError(f"{where} must be an integer, not {_kind(value)}")
    return value


def as_list(value: object, where: str) -> list[Any]:
    """``value`` if it is an array."""
    if not isinstance(value, list):
        raise FieldError(f"{where} must be an array, not {_kind(value)}")
    return value


def as_texts(value: object, where: str) -> tuple[str, ...]:
    """``value`` if it is an array of non-empty strings."""
    items = as_list(value, where)
    for index, item in enumerate(items):
        if not isinstance(item, str) or not item:
            raise FieldError(f"{where}[{index}] must be a non-empty string, not {_kind(item)}")
    return tuple(items)


def as_relative_path(value: object, where: str) -> str:
    """``value`` if it is a normal relative path with forward slashes."""
    text = as_text(value, where)
    parts = text.split("/")
    if "\\" in text or "\0" in text or any(part in ("", ".", "..") for part in parts):
        raise FieldError(f"{where} must be a normal relative path, not {text!r}")
    return text


def _kind(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."
