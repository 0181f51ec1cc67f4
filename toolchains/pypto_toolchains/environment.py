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


class VariableClass(enum.Enum):
    """What a variable may change; `environment.json` says each meaning in words."""

    SEMANTIC = "semantic"
    TOOL_RESOLUTION = "tool_resolution"
    FRESH_REQUEST = "fresh_request"
    NONSEMANTIC = "nonsemantic"


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
        path = os.path.join(os.path.dirname(__file__), "environment.json")
        with open(path, "rb") as file:
            return cls.parse(json.load(file))

    @classmethod
    def parse(cls, content: Any) -> EnvironmentRegistry:
        """The registry that decoded JSON describes; ValueError names a malformed entry."""
        if not isinstance(content, dict) or content.get("schema") != REGISTRY_SCHEMA:
            raise ValueError(f"environment.json is not of schema {REGISTRY_SCHEMA}")
        classes: dict[str, VariableClass] = {}
        reasons: dict[str, str] = {}
        for name, row in content["variables"].items():
            if set(row) != {"class", "reason"} or not row["reason"]:
                raise ValueError(f"environment.json: {name} needs a class and a reason")
            classes[name] = VariableClass(row["class"])
            reasons[name] = row["reason"]
        semantic = tuple(sorted(n for n, c in classes.items() if c is VariableClass.SEMANTIC))
        return cls(MappingProxyType(classes), MappingProxyType(reasons), semantic)
