from __future__ import annotations

import pytest
from pypto.backend import LIMITS, PLATFORMS, BackendType, ExecutionMode, target_for, target_of


def test_the_four_tokens_are_all_pairs() -> None:
    assert sorted(PLATFORMS) == ["a2a3", "a2a3sim", "a5", "a5sim"]
    pairs = {(target.backend_type, target.mode) for target in PLATFORMS.values()}
    assert pairs == {(backend, mode) for backend in BackendType for mode in ExecutionMode}


@pytest.mark.parametrize("token", sorted(PLATFORMS))
def test_a_token_survives_the_way_there_and_back(token: str) -> None:
    target = target_of(token)
    assert target.token == token
    assert target_for(target.backend_type, target.mode) == target
    assert token.startswith(target.backend_type.arch)


@pytest.mark.parametrize("token", ["a3", "", "A5", "a5 sim", None])
def test_another_token_is_refused_naming_the_four(token: object) -> None:
    with pytest.raises(ValueError, match="a2a3, a2a3sim, a5, a5sim"):
        target_of(token)  # type: ignore[arg-type]


def test_names_are_no_members() -> None:
    with pytest.raises(TypeError, match="arch"):
        target_for("Ascend950", ExecutionMode.SIM)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="execution_mode"):
        target_for(BackendType.Ascend950, "sim")  # type: ignore[arg-type]


def test_every_architecture_has_limits() -> None:
    assert set(LIMITS) == set(BackendType)
    assert LIMITS[BackendType.Ascend910B].vec_bytes == 196608
    assert LIMITS[BackendType.Ascend950].acc_bytes == 262144
