"""The map of the entry points has every public one, and what it says of options is so."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path

import pypto.runtime
import pytest
from pypto import ir
from pypto.backend import PLATFORMS
from pypto.runtime import RunConfig
from pypto.runtime.batch_manifest import load_manifest
from pypto.runtime.run_config import FIELD_GROUPS

PAGE = (Path(__file__).parents[3] / "docs/reference/entry-points.md").read_text(encoding="utf-8")
_PROSE = re.sub(r"^```.*?^```", "", PAGE, flags=re.MULTILINE | re.DOTALL)
CODE = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", _PROSE))))


@pytest.mark.conforms("entry.1")
def test_every_public_entry_point_is_on_the_map() -> None:
    assert not set(pypto.runtime.__all__) - CODE
    artifacts = {"compile", "CompiledProgram", "DistributedCompiledProgram", "DistributedConfig"}
    assert artifacts <= set(ir.__all__) & CODE
    members = {name for name in vars(ir.CompiledProgram) if not name.startswith("_")}
    assert not members - {"dispatcher", "dispatcher_for"} - CODE
    workers = {name for name in vars(pypto.runtime.ChipWorker) if not name.startswith("_")}
    assert not workers - CODE


@pytest.mark.conforms("entry.1")
def test_every_option_and_field_is_on_the_map() -> None:
    options = set(inspect.signature(ir.compile).parameters) - {"program"}
    assert not options - CODE
    assert not {field.name for field in fields(RunConfig)} - CODE
    rows = [line for line in PAGE.splitlines() if line.startswith("|")]
    for group in ("compile", "run", "dfx", "harness"):
        assert any(all(f"`{name}`" in row for name in FIELD_GROUPS[group]) for row in rows), group


@pytest.mark.conforms("entry.1")
def test_the_four_targets_are_rows() -> None:
    for token, target in PLATFORMS.items():
        row = (
            f"| `BackendType.{target.backend_type.name}` | `ExecutionMode.{target.mode.name}` "
            f"| `{token}` |"
        )
        assert row in PAGE


@pytest.mark.conforms("entry.49")
def test_every_command_is_on_the_map() -> None:
    for command in (
        "python -m pypto.runtime.execute_artifact",
        "python -m pypto.runtime.debug.replay",
        "debug/run.py",
        "pypto-ir-trace",
        "python -m pypto.tools.memory_map",
        "python -m pypto.tools.clean_sim_trace",
    ):
        assert command in PAGE


def test_the_manifest_of_the_page_can_be_read(tmp_path: Path) -> None:
    text = PAGE.partition("```json\n")[2].partition("```")[0]
    (tmp_path / "batch.json").write_text(text)
    items = load_manifest(tmp_path / "batch.json")
    assert [item.name for item in items] == ["softmax", "matmul"]
    assert items[1].extents == {"N": 256}
