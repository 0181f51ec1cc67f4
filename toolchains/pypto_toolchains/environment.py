"""The registry of every environment variable that is read, and what each may change.

`environment.json` is the registry; a test fails on a read it does not list.
"""

from __future__ import annotations

import enum
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

REGISTRY_SCHEMA = 1

_MAX_BYTES = 1 << 18


class VariableClass(enum.Enum):
    """What a variable may change; `environment.json` says each meaning in words."""

    SEMANTIC = "semantic"
    TOOL_RESOLUTION = "tool_resolution"
    FRESH_REQUEST = "fresh_request"
    NONSEMANTIC = "nonsemantic"


_CLASSES = {kind.value: kind for kind in VariableClass}


@dataclass(frozen=True, slots=True)
class EnvironmentRegistry:
    """Every registered variable with its class and the reason for it."""

    classes: Mapping[str, VariableClass]
    reasons: Mapping[str, str]
    semantic: tuple[str, ...]

    @classmethod
    def load(cls) -> EnvironmentRegistry:
        """The shipped registry.

        Raises ValueError if it is malformed, which a wrong installation alone can cause.
        """
        return cls.parse(_shipped())

    @classmethod
    def parse(cls, content: Any) -> EnvironmentRegistry:
        """The registry that decoded JSON describes; ValueError names a malformed entry."""
        if not isinstance(content, dict) or content.get("schema") != REGISTRY_SCHEMA:
            raise ValueError(f"environment.json is not of schema {REGISTRY_SCHEMA}")
        classes: dict[str, VariableClass] = {}
        reasons: dict[str, str] = {}
        for name, row in content["variables"].items():
            if row.keys() != {"class", "reason"} or not row["reason"]:
                raise ValueError(f"environment.json: {name} needs a class and a reason")
            kind = _CLASSES.get(row["class"])
            if kind is None:
                raise ValueError(f"environment.json: {name} has unknown class {row['class']!r}")
            classes[name] = kind
            reasons[name] = row["reason"]
        semantic = tuple(sorted(n for n, c in classes.items() if c is VariableClass.SEMANTIC))
        return cls(MappingProxyType(classes), MappingProxyType(reasons), semantic)


def variables_of_tools() -> tuple[str, ...]:
    """The registered variables that tools or their discovery read, in the registry's order.

    Looks at nothing else of the registry, for requests that need no more.
    """
    wanted = (VariableClass.SEMANTIC.value, VariableClass.TOOL_RESOLUTION.value)
    rows = _shipped()["variables"].items()
    return tuple([name for name, row in rows if row["class"] in wanted])


def _shipped() -> Any:
    fd = os.open(
        os.path.join(os.path.dirname(__file__), "environment.json"), os.O_RDONLY | os.O_CLOEXEC
    )
    try:
        return json.loads(os.read(fd, _MAX_BYTES))
    finally:
        os.close(fd)
