"""pyproject.toml's [project] table as the METADATA of a distribution."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Project:
    """What the table says. ``table`` is the whole of it."""

    name: str
    version: str
    table: dict[str, Any]

    @classmethod
    def read(cls, pyproject: Path) -> Project:
        """Parse the file; raises KeyError where name or version is missing."""
        table = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
        return cls(table["name"], table["version"], table)

    @property
    def dist_info(self) -> str:
        """The name of the directory with the distribution's metadata."""
        return f"{self.name}-{self.version}.dist-info"

    def entry_points(self) -> str:
        """The text of entry_points.txt: the commands that an installation makes."""
        scripts: dict[str, str] = self.table.get("scripts", {})
        lines = [f"{name} = {target}" for name, target in sorted(scripts.items())]
        return "\n".join(["[console_scripts]", *lines]) + "\n"

    def metadata(self, readme: str) -> str:
        """The text of METADATA (PKG-INFO in an sdist), version 2.4."""
        table = self.table
        lines = [
            "Metadata-Version: 2.4",
            f"Name: {self.name}",
            f"Version: {self.version}",
            f"Summary: {table['description']}",
            f"License-Expression: {table['license']}",
            *(f"License-File: {name}" for name in table.get("license-files", ())),
            f"Requires-Python: {table['requires-python']}",
            *(f"Requires-Dist: {requirement}" for requirement in table.get("dependencies", ())),
        ]
        for extra, requirements in sorted(table.get("optional-dependencies", {}).items()):
            lines.append(f"Provides-Extra: {extra}")
            lines += [f"Requires-Dist: {name}; extra == '{extra}'" for name in requirements]
        lines.append("Description-Content-Type: text/markdown")
        return "\n".join(lines) + "\n\n" + readme
