from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pypto.backend import BackendType, ExecutionMode
from pypto.ir.dtypes import FP32
from pypto.ir.options import MemoryPlanner, PassDumpLevel
from pypto.jit.warmup_file import WarmupFile, WarmupFileError, load
from pypto_store import RemoteConfig, TlsConfig


def parse(tmp_path: Path, document: Any) -> WarmupFile:
    path = tmp_path / "warm.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return load(path)


def request(**fields: Any) -> dict[str, Any]:
    return {"schema_version": 1, "requests": [{"kernel": "k", **fields}]}


@pytest.mark.conforms("cache.107", "cache.110")
def test_everything_it_accepts(tmp_path: Path) -> None:
    file = parse(
        tmp_path,
        {
            "schema_version": 1,
            "cache": {
                "enabled": True,
                "root": "cache",
                "readonly": False,
                "extra_source_paths": ["a", "/b"],
                "extra_fingerprint": "v1",
            },
            "requests": [
                {
                    "kernel": "decode",
                    "run_config": {
                        "platform": "a5sim",
                        "strategy": "Default",
                        "memory_planner": "PTOAS",
                        "distributed_config": None,
                        "dump_passes": "CONCISE",
                        "dump_ptoas_passes": False,
                        "save_kernels": True,
                        "save_kernels_dir": "out",
                    },
                    "tensors": {"x": {"shape": [1, 128], "dtype": "FP32"}},
                    "scalars": {"n": 128, "flag": True, "scale": 0.5},
                }
            ],
        },
    )
    assert file.cache is not None
    assert file.cache.root == tmp_path / "cache"
    assert file.cache.extra_source_paths == (tmp_path / "a", Path("/b"))
    (item,) = file.requests
    assert item.config.arch is BackendType.Ascend950
    assert item.config.execution_mode is ExecutionMode.SIM
    assert item.config.memory_planner is MemoryPlanner.PTOAS
    assert item.config.dump_passes is PassDumpLevel.CONCISE
    assert item.config.save_kernels_dir == tmp_path / "out"
    assert item.config.cache_config is file.cache
    assert item.tensors["x"].shape == (1, 128)
    assert item.tensors["x"].dtype is FP32
    assert item.scalars == {"n": 128, "flag": True, "scale": 0.5}


def test_a_remote_is_described_with_the_cache(tmp_path: Path) -> None:
    key = "ed25519:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
    remote = {
        "url": "https://cache.example",
        "readonly": True,
        "headers": {"X-One": "a", "X-Two": "b"},
        "tls": {"ca": "ca.pem", "certificate": "me.pem", "key": "/me.key"},
        "timeout": 5,
        "upload": "sync",
        "credential_helper": "helper",
        "trusted_keys": [key],
        "signing_key": "sign.pem",
    }
    file = parse(tmp_path, {"schema_version": 1, "cache": {"remote": remote}, "requests": []})
    assert file.cache is not None
    assert file.cache.remote == RemoteConfig(
        "https://cache.example",
        readonly=True,
        headers=(("X-One", "a"), ("X-Two", "b")),
        tls=TlsConfig(tmp_path / "ca.pem", tmp_path / "me.pem", Path("/me.key")),
        timeout=5,
        upload="sync",
        credential_helper=tmp_path / "helper",
        trusted_keys=(key,),
        signing_key=tmp_path / "sign.pem",
    )
    remote = {"url": "grpc://cache", "instance": "main"}
    file = parse(tmp_path, {"schema_version": 1, "cache": {"remote": remote}, "requests": []})
    assert file.cache is not None
    assert file.cache.remote == RemoteConfig("grpc://cache", instance="main")


@pytest.mark.parametrize(
    ("remote", "culprit"),
    [
        (None, "cache.remote"),
        ("https://x", "cache.remote"),
        ({}, "'url'"),
        ({"url": 3}, "cache.remote.url"),
        ({"url": "https://name:secret@x?"}, "cache.remote.url"),
        ({"url": "https://x", "more": 1}, "more"),
        ({"url": "https://x", "readonly": "yes"}, "cache.remote.readonly"),
        ({"url": "https://x", "headers": [["A", "secret"]]}, "cache.remote.headers"),
        ({"url": "https://x", "headers": {"A": " secret"}}, "cache.remote.headers"),
        ({"url": "https://x", "tls": {"ca": ""}}, "cache.remote.tls.ca"),
        ({"url": "https://x", "tls": {"key": "k"}}, "cache.remote.tls.key"),
        ({"url": "http://x", "tls": {"ca": "c"}}, "cache.remote.tls"),
        ({"url": "https://x", "timeout": "secret"}, "cache.remote.timeout"),
        ({"url": "https://x", "trusted_keys": ["secret"]}, "cache.remote.trusted_keys"),
        ({"url": "https://x", "signing_key": 1}, "cache.remote.signing_key"),
    ],
)
def test_what_is_wrong_with_a_remote_is_named(tmp_path: Path, remote: Any, culprit: str) -> None:
    with pytest.raises(WarmupFileError) as caught:
        parse(tmp_path, {"schema_version": 1, "cache": {"remote": remote}, "requests": []})
    assert culprit in str(caught.value)
    if culprit != "cache.remote.timeout":
        assert "secret" not in str(caught.value)


def test_without_a_cache_other_levels_decide(tmp_path: Path) -> None:
    file = parse(tmp_path, request())
    assert file.cache is None
    assert file.requests[0].config.cache_config is None


def test_a_cache_is_complete_and_merged_with_nothing(tmp_path: Path) -> None:
    file = parse(tmp_path, {"schema_version": 1, "cache": {}, "requests": []})
    assert file.cache is not None
    assert not file.cache.enabled
    assert file.cache.root is None


@pytest.mark.conforms("cache.108")
@pytest.mark.parametrize(
    "dtype", ["FP16", "BF16", "FP32", "INT8", "INT16", "INT32", "INT64", "BOOL"]
)
def test_every_documented_dtype(tmp_path: Path, dtype: str) -> None:
    file = parse(tmp_path, request(tensors={"x": {"shape": [4], "dtype": dtype}}))
    assert file.requests[0].tensors["x"].dtype.constant_name == dtype


@pytest.mark.conforms("cache.106", "cache.108", "cache.109", "cache.110")
@pytest.mark.parametrize(
    ("document", "culprit"),
    [
        ("{", "JSON"),
        ("[]", "object"),
        ({"requests": []}, "schema_version"),
        ({"schema_version": 2, "requests": []}, "schema_version"),
        ({"schema_version": True, "requests": []}, "schema_version"),
        ({"schema_version": 1}, "requests"),
        ({"schema_version": 1, "requests": {}}, "requests"),
        ({"schema_version": 1, "requests": [], "more": 1}, "more"),
        ('{"schema_version": 1, "requests": [], "requests": []}', "twice"),
        ({"schema_version": 1, "requests": [{}]}, "kernel"),
        (request(kernel="a.b"), "kernel"),
        (request(kernel=3), "kernel"),
        (request(other=1), "other"),
        (request(run_config={"arch": "a5"}), "arch"),
        (request(run_config={"platform": "b7"}), "b7"),
        (request(run_config={"platform": 3}), "platform"),
        (request(run_config={"strategy": "default"}), "strategy"),
        (request(run_config={"memory_planner": "best"}), "memory_planner"),
        (request(run_config={"dump_passes": 1}), "dump_passes"),
        (request(run_config={"dump_passes": "ALL"}), "dump_passes"),
        (request(run_config={"save_kernels": "yes"}), "save_kernels"),
        (request(run_config={"save_kernels_dir": ""}), "save_kernels_dir"),
        (request(run_config={"distributed_config": {"ranks": 2}}), "ranks"),
        (request(run_config={"distributed_config": {"device_ids": [True]}}), "device_ids"),
        (request(tensors={"x": {"shape": [1]}}), "dtype"),
        (request(tensors={"x": {"shape": [1], "dtype": "FP64"}}), "FP64"),
        (request(tensors={"x": {"shape": [1], "dtype": "UINT8"}}), "UINT8"),
        (request(tensors={"x": {"shape": [], "dtype": "FP32"}}), "shape"),
        (request(tensors={"x": {"shape": [0], "dtype": "FP32"}}), "positive"),
        (request(tensors={"x": {"shape": [True], "dtype": "FP32"}}), "positive"),
        (request(tensors={"x": {"shape": [1.0], "dtype": "FP32"}}), "positive"),
        (request(tensors={"x": {"shape": [1 << 40, 1 << 40], "dtype": "FP32"}}), "elements"),
        (request(tensors=[]), "tensors"),
        (request(scalars={"n": float("inf")}), "Infinity"),
        (request(scalars={"n": -float("inf")}), "-Infinity"),
        (request(scalars={"n": "NaN"}), "scalars.n"),
        (request(scalars={"n": "3"}), "scalars.n"),
        (request(scalars={"n": None}), "scalars.n"),
        ('{"schema_version": 1, "requests": [{"kernel": "k", "scalars": {"n": NaN}}]}', "NaN"),
        ('{"schema_version": 1, "requests": [{"kernel": "k", "scalars": {"n": 1e999}}]}', "finite"),
        ({"schema_version": 1, "cache": {"enabled": 1}, "requests": []}, "enabled"),
        ({"schema_version": 1, "cache": {"root": 3}, "requests": []}, "root"),
        ({"schema_version": 1, "cache": {"extra_source_paths": "a"}, "requests": []}, "extra"),
        ({"schema_version": 1, "cache": {"size": 3}, "requests": []}, "size"),
        ({"schema_version": 1, "cache": None, "requests": []}, "cache"),
        # A lone surrogate is text in JSON, and no path of the system.
        ({"schema_version": 1, "cache": {"root": "\ud800"}, "requests": []}, "root"),
        (request(run_config={"save_kernels_dir": "\ud800"}), "save_kernels_dir"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, document: Any, culprit: str) -> None:
    with pytest.raises(WarmupFileError) as caught:
        parse(tmp_path, document)
    assert culprit in str(caught.value)


@pytest.mark.conforms("cache.106")
def test_every_problem_is_a_line_of_its_own(tmp_path: Path) -> None:
    document = {
        "schema_version": 1,
        "cache": {"size": 3, "colour": 4},
        "requests": [{"kernel": 3}, {"kernel": "fine"}, {"run_config": {"platform": "b7"}, "x": 1}],
    }
    with pytest.raises(WarmupFileError) as caught:
        parse(tmp_path, document)
    places = [("cache", "colour"), ("cache", "size"), ("requests[0]", "3")]
    places += [("requests[2]", "kernel"), ("requests[2]", "'x'")]
    assert len(caught.value.problems) == len(places)
    for problem, (where, what) in zip(caught.value.problems, places, strict=True):
        assert where in problem
        assert what in problem
        assert "\n" not in problem


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(WarmupFileError, match="gone"):
        load(tmp_path / "gone.json")


@pytest.mark.conforms("cache.110")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("platform", "a2a3"),
        ("strategy", "Default"),
        ("memory_planner", "PTOAS"),
        ("distributed_config", None),
        ("dump_passes", True),
        ("dump_ptoas_passes", True),
        ("save_kernels", True),
        ("save_kernels_dir", "out"),
    ],
)
def test_each_setting_is_read(tmp_path: Path, name: str, value: object) -> None:
    (item,) = parse(tmp_path, request(run_config={name: value})).requests
    (usual,) = parse(tmp_path, request()).requests
    assert (item.config == usual.config) is (value is None or (name, value) == USUAL)


# What a request has without saying it.
USUAL = ("strategy", "Default")


@pytest.mark.conforms("cache.110")
@pytest.mark.parametrize(
    ("name", "value", "malformed"),
    [
        ("device_ids", [0, 1], [-1]),
        ("num_sub_workers", 2, -1),
        ("runtime", "host_build_graph", 3),
        ("aicpu_thread_num", 4, "4"),
    ],
)
def test_distributed_settings_are_checked_before_they_are_declined(
    tmp_path: Path, name: str, value: object, malformed: object
) -> None:
    """Nothing compiles for several chips yet; a typing error is still told from that."""
    with pytest.raises(WarmupFileError, match="single chip only") as known:
        parse(tmp_path, request(run_config={"distributed_config": {name: value}}))
    assert "unknown key" not in str(known.value)
    with pytest.raises(WarmupFileError, match=name):
        parse(tmp_path, request(run_config={"distributed_config": {name: malformed}}))
    with pytest.raises(WarmupFileError, match=f"unknown key '{name}s'"):
        parse(tmp_path, request(run_config={"distributed_config": {f"{name}s": value}}))
