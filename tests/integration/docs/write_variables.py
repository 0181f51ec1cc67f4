"""Writes the table of variables in docs/reference/toolchain-identity.md from the registry.

python tests/integration/docs/write_variables.py
"""

from __future__ import annotations

from pathlib import Path

from pypto_toolchains.environment import EnvironmentRegistry

BEGIN = "<!-- variables: python tests/integration/docs/write_variables.py -->\n"
END = "<!-- end of variables -->\n"


def table() -> str:
    """The table, one row a variable."""
    registry = EnvironmentRegistry.load()
    rows = [
        f"| `{name}` | `{kind.value}` | {registry.reasons[name]} |"
        for name, kind in registry.classes.items()
    ]
    return "\n".join(["| Variable | Class | Why |", "|---|---|---|", *rows]) + "\n"


def page_with_table(page: str) -> str:
    """The page with the table of now in the place of the one that it has."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def main() -> None:
    """Write the page again."""
    page = Path(__file__).resolve().parents[3] / "docs" / "reference" / "toolchain-identity.md"
    page.write_text(page_with_table(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
