"""A Bazel registry on disk, of the rule sets that Debian packages beside Bazel.

Each is offered under every version that any MODULE.bazel of the graph asks for, all from the same
directory. A module that is asked for and not packaged becomes an empty stub: Bazel's own graph
names a few (apple_support, zlib) that this build never loads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Asked for by Bazel's built-in @local_config_platform.
_BUILT_IN = {("platforms", "0.0.7")}


@dataclass(frozen=True, slots=True)
class _Module:
    directory: Path
    text: str
    start: int
    end: int

    @property
    def head(self) -> str:
        """The ``module(...)`` call."""
        return self.text[self.start : self.end]


def write_registry(registry: Path, bazel_share: Path, root_module: Path) -> None:
    """Write ``registry`` for the rule sets below ``bazel_share`` and what ``root_module`` asks."""
    modules: dict[str, _Module] = {}
    for path in sorted(
        [*bazel_share.glob("rules/*/MODULE.bazel"), *bazel_share.glob("tools/*/MODULE.bazel")]
    ):
        text = path.read_text(encoding="utf-8")
        start, end = next(_calls(text, "module"))
        modules[_argument(text[start:end], "name") or path.parent.name] = _Module(
            path.parent, text, start, end
        )

    asked = set(_BUILT_IN)
    asked |= set(
        _dependencies((bazel_share / "embedded_tools" / "MODULE.bazel").read_text(encoding="utf-8"))
    )
    asked |= set(_dependencies(root_module.read_text(encoding="utf-8")))
    for name, module in modules.items():
        asked |= set(_dependencies(module.text))
        asked.add((name, _argument(module.head, "version") or ""))

    _write(registry / "bazel_registry.json", "{}\n")
    for name, version in sorted(asked):
        if version:
            _write_module(registry, name, version, modules.get(name))


def _write_module(registry: Path, name: str, version: str, module: _Module | None) -> None:
    if module is None:
        directory = registry / "stubs" / name
        text = f'module(name = "{name}", version = "{version}")\n'
        _write(directory / "BUILD.bazel", "")
        _write(directory / "MODULE.bazel", text)
    else:
        directory = module.directory
        level = _argument(module.head, "compatibility_level") or "0"
        head = f'module(name = "{name}", version = "{version}", compatibility_level = {level})'
        text = module.text[: module.start] + head + module.text[module.end :]
    place = registry / "modules" / name / version
    _write(place / "MODULE.bazel", text)
    _write(place / "source.json", json.dumps({"type": "local_path", "path": str(directory)}) + "\n")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _call_end(text: str, start: int) -> int:
    """The offset behind the call whose ``(`` is the first after ``start``, strings minded."""
    depth = 0
    offset = text.index("(", start)
    while True:
        character = text[offset]
        if character == "#":
            offset = text.index("\n", offset)
        elif character in "\"'":
            offset = text.index(character, offset + 1)
        elif character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
            if not depth:
                return offset + 1
        offset += 1


def _calls(text: str, name: str) -> Iterator[tuple[int, int]]:
    for match in re.finditer(rf"^{name}\(", text, re.MULTILINE):
        yield match.start(), _call_end(text, match.start())


def _argument(call: str, name: str) -> str | None:
    found = re.search(rf'\b{name}\s*=\s*"?([^",)\n]+)', call)
    return found[1] if found else None


def _dependencies(text: str) -> Iterator[tuple[str, str]]:
    for start, end in _calls(text, "bazel_dep"):
        call = text[start:end]
        name = _argument(call, "name")
        if name and _argument(call, "dev_dependency") != "True":
            yield name, _argument(call, "version") or ""
