"""The configuration of ``python -m pypto.jit warm``: its grammar, and parsing it as a whole.

Schema 1, a JSON object::

    schema_version  1
    cache           optional; a complete cache configuration, merged with nothing: enabled, root,
                    readonly, extra_source_paths, extra_fingerprint, remote, each optional
      remote        url, and optionally the other fields of a RemoteConfig: headers is an object,
                    tls one with ca, certificate and key
    requests        a list, each with
      kernel        the name of a module-level JIT function
      run_config    optional: platform, strategy, memory_planner, distributed_config, dump_passes,
                    dump_ptoas_passes, save_kernels, save_kernels_dir
      tensors       optional: parameter -> {"shape": [...], "dtype": "FP32"}
      scalars       optional: parameter -> finite number or boolean

Paths are relative to the file. Enumerations are spelled by their Python member names.
"""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pypto.backend import target_of
from pypto.ir.dtypes import DTYPES, DataType
from pypto.ir.options import MemoryPlanner, OptimizationStrategy, PassDumpLevel
from pypto.runtime.run_config import RunConfig
from pypto_store import CacheConfig
from pypto_store.config import is_path

if TYPE_CHECKING:
    from pypto_store import RemoteConfig

SCHEMA_VERSION = 1

_MAX_BYTES = 16 << 20
_MAX_EXTENT = (1 << 63) - 1
_ACCEPTED = ("FP16", "BF16", "FP32", "INT8", "INT16", "INT32", "INT64", "BOOL")
_DTYPES = {dtype.constant_name: dtype for dtype in DTYPES if dtype.constant_name in _ACCEPTED}


class WarmupFileError(ValueError):
    """The configuration is malformed; each of `problems` is a line that says where and how."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


_Item = TypeVar("_Item")


def all_of(checks: Iterable[Callable[[], _Item]]) -> list[_Item]:
    """What each check gives; if some raise WarmupFileError, one with the problems of all."""
    items: list[_Item] = []
    problems: list[str] = []
    for check in checks:
        try:
            items.append(check())
        except WarmupFileError as error:
            problems += error.problems
    if problems:
        raise WarmupFileError(*problems)
    return items


@dataclass(frozen=True, slots=True)
class TensorSample:
    """A tensor that is described and never allocated."""

    shape: tuple[int, ...]
    dtype: DataType


@dataclass(frozen=True, slots=True)
class WarmupRequest:
    """One kernel to make ready."""

    kernel: str
    config: RunConfig
    tensors: Mapping[str, TensorSample]
    scalars: Mapping[str, bool | int | float]


@dataclass(frozen=True, slots=True)
class WarmupFile:
    """A parsed configuration; `cache` is None where process, environment and defaults decide."""

    cache: CacheConfig | None
    requests: tuple[WarmupRequest, ...]


def load(path: Path) -> WarmupFile:
    """The configuration at `path`. Raises WarmupFileError naming what is wrong with it."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise WarmupFileError(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > _MAX_BYTES:
        raise WarmupFileError(f"{path} is larger than {_MAX_BYTES} bytes")
    try:
        document = json.loads(data, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise WarmupFileError(f"{path} is not valid JSON: {error}") from error
    try:
        return _file(document, path.absolute().parent)
    except WarmupFileError as error:
        raise WarmupFileError(*(f"{path}: {problem}" for problem in error.problems)) from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"key {twice!r} is given twice")
    return found


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not a finite number")


def _file(document: object, folder: Path) -> WarmupFile:
    fields = _object(
        "the document", document, required={"schema_version", "requests"}, optional={"cache"}
    )
    version = fields["schema_version"]
    if type(version) is not int or version != SCHEMA_VERSION:
        raise WarmupFileError(f"schema_version is {version!r}, this version reads {SCHEMA_VERSION}")
    requests = fields["requests"]
    if not isinstance(requests, list):
        raise WarmupFileError("requests must be a list")
    problems: list[str] = []
    cache = None
    try:
        if "cache" in fields:
            cache = _cache(fields["cache"], folder)
    except WarmupFileError as error:
        problems += error.problems
    try:
        checked = all_of(
            partial(_request, f"requests[{index}]", item, folder, cache)
            for index, item in enumerate(requests)
        )
    except WarmupFileError as error:
        problems += error.problems
    if problems:
        raise WarmupFileError(*problems)
    return WarmupFile(cache, tuple(checked))


def _cache(value: object, folder: Path) -> CacheConfig:
    names = {"enabled", "root", "readonly", "extra_source_paths", "extra_fingerprint", "remote"}
    fields = _object("cache", value, optional=names)
    root = fields.get("root")
    paths = fields.get("extra_source_paths", [])
    if not isinstance(paths, list):
        raise WarmupFileError("cache.extra_source_paths must be a list of paths")
    fingerprint = fields.get("extra_fingerprint")
    if fingerprint is not None and not isinstance(fingerprint, str):
        raise WarmupFileError("cache.extra_fingerprint must be a string or null")
    return CacheConfig(
        enabled=_boolean("cache.enabled", fields.get("enabled", False)),
        root=None if root is None else _path("cache.root", root, folder),
        readonly=_boolean("cache.readonly", fields.get("readonly", False)),
        extra_source_paths=tuple(
            _path(f"cache.extra_source_paths[{index}]", item, folder)
            for index, item in enumerate(paths)
        ),
        extra_fingerprint=fingerprint,
        remote=_remote(fields["remote"], folder) if "remote" in fields else None,
    )


def _remote(value: object, folder: Path) -> RemoteConfig:
    from pypto_store import RemoteConfig, TlsConfig

    where, files = "cache.remote", ("credential_helper", "signing_key")
    names = {"readonly", "instance", "headers", "tls", "timeout", "upload", "trusted_keys", *files}
    fields = dict(_object(where, value, required={"url"}, optional=names))
    for name in {*files} & set(fields):
        fields[name] = _path(f"{where}.{name}", fields[name], folder)
    headers = fields.pop("headers", {})
    if not isinstance(headers, dict):
        # Not shown: the values of headers may be secrets.
        raise WarmupFileError(f"{where}.headers must be an object")
    parts = {"ca", "certificate", "key"}
    tls = {
        name: _path(f"{where}.tls.{name}", item, folder)
        for name, item in _object(f"{where}.tls", fields.pop("tls", {}), optional=parts).items()
    }
    try:
        encryption = TlsConfig(**tls) if tls else None
        return RemoteConfig(**fields, headers=tuple(headers.items()), tls=encryption)
    except (TypeError, ValueError) as error:
        told = str(error).replace("RemoteConfig.", f"{where}.").replace("TlsConfig", f"{where}.tls")
        raise WarmupFileError(told) from None


def _request(where: str, value: object, folder: Path, cache: CacheConfig | None) -> WarmupRequest:
    fields = _object(
        where, value, required={"kernel"}, optional={"run_config", "tensors", "scalars"}
    )
    kernel = fields["kernel"]
    if not isinstance(kernel, str) or not kernel.isidentifier():
        raise WarmupFileError(f"{where}.kernel must be the name of a function, not {kernel!r}")
    return WarmupRequest(
        kernel,
        _run_config(f"{where}.run_config", fields.get("run_config", {}), folder, cache),
        {
            name: _tensor(f"{where}.tensors.{name}", item)
            for name, item in _mapping(f"{where}.tensors", fields.get("tensors", {})).items()
        },
        {
            name: _scalar(f"{where}.scalars.{name}", item)
            for name, item in _mapping(f"{where}.scalars", fields.get("scalars", {})).items()
        },
    )


def _tensor(where: str, value: object) -> TensorSample:
    fields = _object(where, value, required={"shape", "dtype"})
    shape, dtype = fields["shape"], fields["dtype"]
    if not isinstance(shape, list) or not shape:
        raise WarmupFileError(f"{where}.shape must be a list of extents, not {shape!r}")
    for extent in shape:
        if type(extent) is not int or extent < 1:
            raise WarmupFileError(f"{where}.shape holds {extent!r}, which is no positive integer")
    if math.prod(shape) > _MAX_EXTENT:
        raise WarmupFileError(f"{where}.shape has more elements than can be addressed")
    found = _DTYPES.get(dtype) if isinstance(dtype, str) else None
    if found is None:
        raise WarmupFileError(f"{where}.dtype is {dtype!r}, not one of {', '.join(_ACCEPTED)}")
    return TensorSample(tuple(shape), found)


def _scalar(where: str, value: object) -> bool | int | float:
    if isinstance(value, bool | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise WarmupFileError(f"{where} must be a finite number or a boolean, not {value!r}")


def _run_config(where: str, value: object, folder: Path, cache: CacheConfig | None) -> RunConfig:
    fields = _object(where, value, optional=set(_RUN_CONFIG))
    settings: dict[str, Any] = {"cache_config": cache}
    for name, item in fields.items():
        settings.update(_RUN_CONFIG[name](f"{where}.{name}", item, folder))
    try:
        return RunConfig(**settings)
    except (TypeError, ValueError) as error:
        raise WarmupFileError(f"{where}: {error}") from error


def _platform(where: str, value: object, _: Path) -> dict[str, Any]:
    if not isinstance(value, str):
        raise WarmupFileError(f"{where} must be a string, not {value!r}")
    try:
        target = target_of(value)
    except ValueError as error:
        raise WarmupFileError(f"{where}: {error}") from error
    return {"arch": target.backend_type, "execution_mode": target.mode}


def _strategy(where: str, value: object, _: Path) -> dict[str, Any]:
    return {"strategy": _member(where, value, OptimizationStrategy)}


def _planner(where: str, value: object, _: Path) -> dict[str, Any]:
    return {"memory_planner": None if value is None else _member(where, value, MemoryPlanner)}


def _dump_passes(where: str, value: object, _: Path) -> dict[str, Any]:
    level = _member(where, value, PassDumpLevel) if isinstance(value, str) else None
    return {"dump_passes": _boolean(where, value) if level is None else level}


def _flag(name: str) -> Callable[[str, object, Path], dict[str, Any]]:
    return lambda where, value, _: {name: _boolean(where, value)}


def _directory(where: str, value: object, folder: Path) -> dict[str, Any]:
    return {"save_kernels_dir": None if value is None else _path(where, value, folder)}


def _distributed(where: str, value: object, _: Path) -> dict[str, Any]:
    if value is None:
        return {"distributed_config": None}
    names = {"device_ids", "num_sub_workers", "runtime", "aicpu_thread_num"}
    fields = _object(where, value, optional=names)
    ids = fields.get("device_ids", [])
    if not isinstance(ids, list) or any(type(item) is not int or item < 0 for item in ids):
        raise WarmupFileError(f"{where}.device_ids must be a list of device numbers")
    for name in ("num_sub_workers", "aicpu_thread_num"):
        if name in fields and (type(fields[name]) is not int or fields[name] < 0):
            raise WarmupFileError(f"{where}.{name} must be a count, not {fields[name]!r}")
    if not isinstance(fields.get("runtime", ""), str):
        raise WarmupFileError(f"{where}.runtime must be the name of a runtime")
    raise WarmupFileError(f"{where}: this version compiles programs for a single chip only")


_RUN_CONFIG: Mapping[str, Callable[[str, object, Path], dict[str, Any]]] = {
    "platform": _platform,
    "strategy": _strategy,
    "memory_planner": _planner,
    "distributed_config": _distributed,
    "dump_passes": _dump_passes,
    "dump_ptoas_passes": _flag("dump_ptoas_passes"),
    "save_kernels": _flag("save_kernels"),
    "save_kernels_dir": _directory,
}


def _mapping(where: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise WarmupFileError(f"{where} must be an object, not {value!r}")
    return value


def _object(
    where: str,
    value: object,
    *,
    required: AbstractSet[str] = frozenset(),
    optional: AbstractSet[str] = frozenset(),
) -> dict[str, Any]:
    fields = _mapping(where, value)
    known = ", ".join(sorted(required | optional))
    problems = [f"{where} lacks {name!r}" for name in sorted(required - set(fields))]
    problems += [
        f"{where} has the unknown key {name!r}; known are {known}"
        for name in sorted(set(fields) - required - optional)
    ]
    if problems:
        raise WarmupFileError(*problems)
    return fields


def _boolean(where: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise WarmupFileError(f"{where} must be true or false, not {value!r}")
    return value


def _path(where: str, value: object, folder: Path) -> Path:
    if not isinstance(value, str) or not is_path(value):
        raise WarmupFileError(f"{where} must be a path, not {value!r}")
    return folder / value


_Member = TypeVar("_Member", bound=enum.Enum)


def _member(where: str, value: object, enumeration: type[_Member]) -> _Member:
    if not isinstance(value, str) or value not in enumeration.__members__:
        names = ", ".join(enumeration.__members__)
        raise WarmupFileError(f"{where} is {value!r}, not one of {names}")
    return enumeration[value]
