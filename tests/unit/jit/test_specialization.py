"""What a specialization's digest depends on, and what cannot be specialised for."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest
from pypto.ir.options import DiagnosticPhase, MemoryPlanner
from pypto.jit.binding import Bound
from pypto.jit.specialization import Specialization, forces_fresh_build
from pypto.runtime.options import CompileOptions


def digest(extents: tuple[int | None, ...] = (16, 64), **options: Any) -> str:
    bound = Bound(MappingProxyType({}), (("x", "tensor", extents, "fp32", "nd"),), ())
    return Specialization.of(bound, CompileOptions(**options)).digest.hex


@pytest.mark.conforms("language.157")
@pytest.mark.parametrize(
    "options",
    [
        {"extents": (16, 65)},
        {"extents": (None, 64)},
        {"platform": "a5sim"},
        {"memory_planner": MemoryPlanner.PTOAS},
        {"analyze_auto_scopes_for_deps": True},
    ],
)
def test_each_of_these_is_another_specialization(options: dict[str, Any]) -> None:
    assert digest(**options) != digest()


@pytest.mark.conforms("language.157")
@pytest.mark.parametrize(
    "options",
    [
        {"dump_passes": True},
        {"dump_ptoas_passes": True},
        {"profiling": True},
        {"diagnostic_phase": DiagnosticPhase.POST_PASS},
        {"output_dir": "out"},
    ],
)
def test_what_the_digest_leaves_out_is_never_looked_up(options: dict[str, Any]) -> None:
    assert digest(**options) == digest()
    assert forces_fresh_build(CompileOptions(**options))


def test_disabled_diagnostics_change_nothing() -> None:
    options = {"disabled_diagnostics": frozenset({"perf"})}
    assert digest(**options) == digest()
    assert not forces_fresh_build(CompileOptions(**options))  # type: ignore[arg-type]


def test_distributed_settings_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="distributed_config"):
        digest(distributed_config={"device_ids": [0, 1]})
