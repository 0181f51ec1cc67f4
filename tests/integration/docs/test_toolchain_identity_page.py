"""The reference of toolchain identity names every fact and variable that there is."""

from __future__ import annotations

import os
import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest
from pypto.jit.surroundings import Surroundings
from pypto.jit.toolchain import Toolchain
from pypto_toolchains.environment import EnvironmentRegistry
from pypto_toolchains.identity import COMPONENTS, ToolchainIdentity

ROOT = next(
    parent for parent in Path(__file__).parents if (parent / "docs" / "adr" / "README.md").exists()
)
PAGE = (ROOT / "docs" / "reference" / "toolchain-identity.md").read_text(encoding="utf-8")
WRITER = runpy.run_path(str(Path(__file__).with_name("write_variables.py")))


def _section(policy: str) -> str:
    """What the page says of one policy."""
    return PAGE.partition(f"\n## `{policy}`\n")[2].partition("\n## ")[0]


def _named(text: str) -> set[str]:
    """What the first columns of the tables quote, and the facts after a component's name."""
    rows = re.findall(r"^\| (`[^|]*)\| (`[^|]*\||)", text, re.MULTILINE)
    return {name for row in rows for cell in row for name in re.findall(r"`([^`]+)`", cell)}


def _is_named(fact: str, names: set[str]) -> bool:
    patterns = (".+".join(map(re.escape, name.split("…"))) for name in names)
    return any(re.fullmatch(pattern, fact) for pattern in patterns)


def _facts(identity: ToolchainIdentity) -> Iterator[str]:
    for component in identity.components:
        yield from (name for name, _ in component.facts)


@pytest.mark.parametrize("policy", ["build", "content"])
def test_every_fact_of_an_identity_is_in_the_page(policy: str, tmp_path: Path) -> None:
    if policy == "content":
        pytest.importorskip("elftools")
    environ = {"PATH": os.environ["PATH"], "PYPTO_CACHE_IDENTITY": policy}
    asked = Surroundings(environ, str(tmp_path)).question("a2a3sim", str(tmp_path))
    identity = Toolchain().identity(asked)
    assert isinstance(identity, ToolchainIdentity), identity
    names = _named(_section("build")) | _named(_section(policy))
    assert [fact for fact in _facts(identity) if not _is_named(fact, names)] == []
    semantic = EnvironmentRegistry.load().semantic
    settings = [name for name, _ in identity.settings if name not in semantic]
    assert [name for name in settings if name not in names] == []


def test_every_component_and_policy_has_its_section() -> None:
    for component in COMPONENTS:
        assert f"### `{component}`: " in _section("build")
    for policy in ("build", "content", "hermetic"):
        assert "annot see" in _section(policy), "each says what it does not see"


def test_the_table_of_variables_is_that_of_the_registry() -> None:
    written = WRITER["page_with_table"](PAGE)
    assert written == PAGE, "run python tests/integration/docs/write_variables.py"
    assert "| `PATH` | `tool_resolution` |" in PAGE


def test_a_fact_that_is_not_named_is_noticed() -> None:
    names = _named(_section("build"))
    assert _is_named("driver.path", names)
    assert _is_named("package.pypto_store", names)
    assert not _is_named("driver.colour", names)
    assert not _is_named("package.", names)
