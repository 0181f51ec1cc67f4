from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import warnings

import pytest
from pypto.backend import PLATFORMS, BackendType, ExecutionMode
from pypto.ir.options import PassDumpLevel
from pypto.runtime.options import CompileOptions, DfxOptions, RunOptions
from pypto.runtime.run_config import FIELD_GROUPS, RunConfig


def _for_platform(token: str) -> RunConfig:
    with pytest.deprecated_call():
        return RunConfig(platform=token)


def _names(cls: type) -> set[str]:
    return {field.name for field in dataclasses.fields(cls)}


@pytest.mark.conforms("entry.26")
def test_the_default_serialises_to_the_simulated_a2a3() -> None:
    config = RunConfig()
    assert config.platform == "a2a3sim"
    assert type(config.platform) is str


@pytest.mark.conforms("entry.25")
@pytest.mark.parametrize("token", sorted(PLATFORMS))
def test_every_token_round_trips_through_the_two_axes(token: str) -> None:
    config = _for_platform(token)
    assert config.platform == token
    again = RunConfig(arch=config.arch, execution_mode=config.execution_mode)
    assert again == config


@pytest.mark.conforms("entry.24", "entry.28")
def test_the_axes_give_the_token() -> None:
    config = RunConfig(arch=BackendType.Ascend950, execution_mode=ExecutionMode.ONBOARD)
    assert config.platform == "a5"
    assert config.backend_type is BackendType.Ascend950


@pytest.mark.conforms("entry.28", "entry.29")
def test_backend_type_is_the_architecture_and_cannot_be_assigned() -> None:
    config = RunConfig(backend_type=BackendType.Ascend950)
    assert config == RunConfig(arch=BackendType.Ascend950)
    assert "backend_type" not in _names(RunConfig)
    assert "platform" not in _names(RunConfig)
    with pytest.raises(AttributeError):
        config.backend_type = BackendType.Ascend910B  # type: ignore[misc]


@pytest.mark.conforms("cache.114")
def test_only_the_platform_spelling_is_deprecated() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RunConfig(backend_type=BackendType.Ascend950, execution_mode=ExecutionMode.SIM)
        RunConfig(arch=BackendType.Ascend950)
    with pytest.warns(DeprecationWarning, match="arch=") as caught:
        RunConfig(platform="a5")
    assert caught[0].filename == __file__


def test_platform_wins_over_the_axes() -> None:
    with pytest.deprecated_call():
        config = RunConfig(
            platform="a5", arch=BackendType.Ascend910B, execution_mode=ExecutionMode.SIM
        )
    assert config.platform == "a5"


@pytest.mark.conforms("entry.27")
def test_two_names_of_the_architecture_may_not_disagree() -> None:
    with pytest.raises(ValueError, match="disagree"):
        RunConfig(arch=BackendType.Ascend910B, backend_type=BackendType.Ascend950)


@pytest.mark.conforms("entry.27")
@pytest.mark.parametrize("token", ["a3", "A2A3", "", " a5", "sim"])
def test_an_unknown_token_is_refused_naming_the_four(token: str) -> None:
    with pytest.deprecated_call(), pytest.raises(ValueError, match="a2a3, a2a3sim, a5, a5sim"):
        RunConfig(platform=token)


@pytest.mark.conforms("entry.23")
def test_replace_keeps_both_axes_and_warns_nothing() -> None:
    config = RunConfig(arch=BackendType.Ascend950, execution_mode=ExecutionMode.ONBOARD)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        changed = dataclasses.replace(config, device_id=1)
        other_arch = dataclasses.replace(config, arch=BackendType.Ascend910B)
        other_mode = dataclasses.replace(config, execution_mode=ExecutionMode.SIM)
    assert (changed.platform, changed.device_id) == ("a5", 1)
    assert other_arch.platform == "a2a3"
    assert other_mode.platform == "a5sim"


def test_replace_takes_a_platform_and_blames_its_caller() -> None:
    with pytest.warns(DeprecationWarning, match="arch=") as caught:
        config = dataclasses.replace(RunConfig(), platform="a2a3", device_id=0)
    assert config.platform == "a2a3"
    assert caught[0].filename == __file__


def test_replace_undoes_no_earlier_platform() -> None:
    config = dataclasses.replace(_for_platform("a5"), arch=BackendType.Ascend910B)
    assert config.platform == "a2a3"


def test_it_is_immutable_hashable_copied_and_pickled_by_value() -> None:
    config = RunConfig(ring_heap=[1024, 2048, 4096, 8192], disabled_diagnostics=["a"])
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.device_id = 3  # type: ignore[misc]
    assert copy.copy(config) == pickle.loads(pickle.dumps(config)) == config
    assert hash(copy.deepcopy(config)) == hash(config)


@pytest.mark.conforms("entry.35")
def test_every_field_belongs_to_exactly_one_group() -> None:
    claimed = [name for group in FIELD_GROUPS.values() for name in group]
    assert len(claimed) == len(set(claimed))
    assert set(claimed) == _names(RunConfig)
    assert set(FIELD_GROUPS["harness"]) == {
        "rtol",
        "atol",
        "golden_data_dir",
        "save_kernels",
        "codegen_only",
    }
    assert FIELD_GROUPS["jit_policy"] == ("cache_config",)


@pytest.mark.conforms("entry.30", "entry.32", "entry.33", "entry.35")
def test_every_group_reaches_its_view() -> None:
    renamed = {"save_kernels_dir": "output_dir", "compile_profiling": "profiling"}
    compile_side = {renamed.get(name, name) for name in FIELD_GROUPS["compile"]}
    assert _names(CompileOptions) == compile_side | {"platform"}
    assert _names(RunOptions) == {*FIELD_GROUPS["run"], "platform", "dfx"}
    assert _names(DfxOptions) == set(FIELD_GROUPS["dfx"])


def test_the_constructor_offers_every_field_and_the_three_other_spellings() -> None:
    parameters = set(inspect.signature(RunConfig).parameters)
    assert parameters - _names(RunConfig) == {"platform", "backend_type", "enable_l2_swimlane"}
    assert parameters >= _names(RunConfig)


@pytest.mark.conforms("entry.30", "entry.31", "entry.32")
def test_the_views_carry_the_values() -> None:
    config = RunConfig(
        arch=BackendType.Ascend950,
        save_kernels_dir="out",
        compile_profiling=True,
        dump_passes=PassDumpLevel.CONCISE,
        device_id=2,
        aicpu_thread_num=4,
        ring_task_window=8,
        enable_pmu=2,
        enable_chip_swimlane=True,
    )
    options = config.compile_options()
    assert (options.output_dir, options.profiling, options.platform) == ("out", True, "a5sim")
    assert options.dump_passes is PassDumpLevel.CONCISE
    assert config.compile_kwargs() == options.as_compile_kwargs()
    assert "backend_type" not in config.compile_kwargs()
    assert "cache_config" not in config.compile_kwargs()
    run = config.run_options()
    assert (run.platform, run.device_id, run.aicpu_thread_num) == ("a5sim", 2, 4)
    assert run.ring_task_window == 8
    assert run.dfx == config.dfx_options() == DfxOptions(enable_pmu=2, enable_chip_swimlane=4)


def test_diagnostics_of_a_dispatch_save_the_kernels() -> None:
    assert not RunConfig().save_kernels
    config = RunConfig(enable_dep_gen=True)
    assert config.save_kernels
    assert config.any_dfx_enabled()
    assert not RunConfig(save_kernels=True).any_dfx_enabled()


def test_the_old_name_of_the_swimlane_is_deprecated() -> None:
    with pytest.deprecated_call():
        assert RunConfig(enable_l2_swimlane=2).enable_chip_swimlane == 2


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ring_task_window", 4),
        ("ring_task_window", (4, 8, 16, 32)),
        ("ring_heap", 1024),
        ("ring_dep_pool", 5),
        ("ring_dep_pool", 2**31 - 1),
        ("ring_heap", None),
    ],
)
def test_ring_sizes_that_follow_the_rules_are_kept(field: str, value: object) -> None:
    assert getattr(RunConfig(**{field: value}), field) == value


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ring_task_window", 2),
        ("ring_task_window", 6),
        ("ring_task_window", True),
        ("ring_task_window", 8.0),
        ("ring_task_window", "8"),
        ("ring_task_window", [4, 4, 4]),
        ("ring_task_window", [4, 4, 4, 4, 4]),
        ("ring_heap", 512),
        ("ring_heap", 1025),
        ("ring_heap", [1024, 1024, 1024, True]),
        ("ring_dep_pool", 3),
        ("ring_dep_pool", 2**31),
        ("ring_dep_pool", -4),
    ],
)
def test_other_ring_sizes_are_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=field):
        RunConfig(**{field: value})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("device_id", -1),
        ("device_id", True),
        ("device_id", "0"),
        ("rtol", -1.0),
        ("atol", float("nan")),
        ("strategy", "Default"),
        ("arch", "a5"),
        ("execution_mode", "sim"),
        ("dump_passes", 1),
        ("save_kernels_dir", ""),
        ("save_kernels_dir", 3),
        ("codegen_only", 1),
        ("enable_chip_swimlane", 5),
        ("enable_pmu", -1),
        ("enable_dep_gen", 1),
        ("aicpu_thread_num", 1),
        ("aicpu_thread_num", True),
        ("disabled_diagnostics", "name"),
        ("disabled_diagnostics", [1]),
        ("memory_planner", "PYPTO"),
        ("diagnostic_phase", 1),
        ("cache_config", {"enabled": True}),
    ],
)
def test_a_value_that_a_field_cannot_have_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises((ValueError, TypeError), match=field):
        RunConfig(**{field: value})
