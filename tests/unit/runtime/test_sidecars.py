from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pypto.backend import BackendType, ExecutionMode, RuntimeKind
from pypto.ir.dtypes import BF16, FP32, INT32
from pypto.ir.nodes import Direction
from pypto.ir.param_info import DYNAMIC, ParamInfo
from pypto.runtime.compiled_meta import CompiledMeta
from pypto.runtime.kernel_config import KernelConfig, KernelEntry, OrchestrationEntry

META = CompiledMeta(
    params=(
        ParamInfo("x", Direction.In, (DYNAMIC, 4), FP32, ("N", None)),
        ParamInfo("n", Direction.In, None, INT32),
        ParamInfo("out", Direction.Out, (8,), BF16),
    ),
    num_return_types=1,
    platform="a2a3sim",
    backend_type=BackendType.Ascend910B,
)

CONFIG = KernelConfig(
    platform="a5sim",
    runtime=RuntimeKind.TENSORMAP_AND_RINGBUFFER,
    aicpu_thread_num=0,
    orchestration=OrchestrationEntry(
        "orchestration/softmax.cpp", "aicpu_orchestration_entry", (Direction.In, Direction.Out)
    ),
    kernels=(
        KernelEntry(0, "a", "kernels/aiv/a.cpp", "aiv", (Direction.In,)),
        KernelEntry(1, "b", "kernels/aic/b.cpp", "aic", (), True, ("include",)),
    ),
)


def test_metadata_survives_its_file(tmp_path: Path) -> None:
    META.write(tmp_path)
    assert CompiledMeta.load(tmp_path) == META
    assert [path.name for path in tmp_path.iterdir()] == ["compiled_meta.json"]


def test_modes_may_be_absent() -> None:
    document = json.loads(META.to_json())
    del document["supported_execution_modes"]
    meta = CompiledMeta.parse(json.dumps(document).encode())
    assert set(meta.supported_execution_modes) == set(ExecutionMode)


def test_a_configuration_survives_its_file() -> None:
    assert KernelConfig.parse(CONFIG.to_json()) == CONFIG
    assert CONFIG.orchestration.name == "softmax"


def test_an_absent_sidecar_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"compiled_meta\.json"):
        CompiledMeta.load(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"compiled_meta\.json"):
        CompiledMeta.load(tmp_path / "gone")


_REMOVE = object()


def _changed(document: Any, path: tuple[Any, ...], value: object) -> bytes:
    spot = document
    for key in path[:-1]:
        spot = spot[key]
    if value is _REMOVE:
        del spot[path[-1]]
    else:
        spot[path[-1]] = value
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema",), 2),
        (("schema",), True),
        (("schema",), _REMOVE),
        (("extra",), 1),
        (("platform",), "a4"),
        (("platform",), "a5sim"),
        (("backend_type",), "Ascend310"),
        (("backend_type",), "ascend910b"),
        (("num_return_types",), -1),
        (("num_return_types",), 1.0),
        (("params",), {}),
        (("params", 0, "name"), ""),
        (("params", 0, "name"), "out"),
        (("params", 0, "direction"), "in"),
        (("params", 0, "shape"), "4"),
        (("params", 0, "shape", 1), -2),
        (("params", 0, "shape", 1), True),
        (("params", 0, "dtype"), "float32"),
        (("params", 0, "symbols"), ["N"]),
        (("params", 0, "symbols", 1), "M"),
        (("params", 0, "color"), 1),
        (("params", 1, "direction"), "Out"),
        (("supported_execution_modes",), ["SIM"]),
    ],
)
def test_malformed_metadata_names_the_file_and_the_remedy(
    tmp_path: Path, path: tuple[Any, ...], value: object
) -> None:
    (tmp_path / "compiled_meta.json").write_bytes(_changed(json.loads(META.to_json()), path, value))
    with pytest.raises(ValueError, match=r"compiled_meta\.json: .*recompile via ir\.compile\(\)"):
        CompiledMeta.load(tmp_path)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff", b'{"schema": 1, "schema": 1}'])
def test_bytes_that_are_no_json_object_are_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "compiled_meta.json").write_bytes(data)
    with pytest.raises(ValueError, match=r"compiled_meta\.json"):
        CompiledMeta.load(tmp_path)
    with pytest.raises(ValueError, match=r"kernel_config\.json"):
        KernelConfig.parse(data)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema",), 0),
        (("platform",), "host"),
        (("runtime",), "other"),
        (("aicpu_thread_num",), 1),
        (("aicpu_thread_num",), -1),
        (("orchestration", "source"), "/abs.cpp"),
        (("orchestration", "source"), "../up.cpp"),
        (("orchestration", "signature"), ["in"]),
        (("orchestration", "signature"), "In"),
        (("kernels", 0, "func_id"), 1),
        (("kernels", 0, "core_type"), "cube"),
        (("kernels", 0, "source"), "a//b.cpp"),
        (("kernels", 0, "external"), 1),
        (("kernels", 0, "name"), _REMOVE),
        (("kernels", 1, "extra_include_dirs"), "include"),
    ],
)
def test_a_malformed_configuration_is_refused(path: tuple[Any, ...], value: object) -> None:
    with pytest.raises(ValueError, match=r"kernel_config\.json: "):
        KernelConfig.parse(_changed(json.loads(CONFIG.to_json()), path, value))
