"""What a request's policy decides, and until when it may still be changed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

COMMON = """
import contextlib, torch
import pypto.jit.building as building
import pypto.jit.session as session
from pypto.runtime import RunConfig
x = torch.ones(16, 64)
out = torch.zeros(16, 64)
def cached(**fields):
    return RunConfig(cache_config=pypto.CacheConfig(enabled=True, **fields))
def entries(root):
    return len(list(Path(root).glob("artifacts/v1/*/*/generated")))
def counted(name):
    return getattr(pypto.cache_stats(), name)
generate = building.Recipe.generate
@contextlib.contextmanager
def while_building(work):
    def slow(self, directory, **options):
        work()
        return generate(self, directory, **options)
    building.Recipe.generate = slow
    try:
        yield
    finally:
        building.Recipe.generate = generate
"""


@pytest.mark.conforms("cache.9")
def test_a_relative_root_is_that_of_the_directory_when_the_request_was_made(house: Any) -> None:
    report = house.run(
        COMMON
        + """
for name in ("one", "two", "three"):
    os.mkdir(name)
here = Path.cwd()
config = cached(root=Path("cache"))
os.chdir(here / "one")
kernels.kernel.compile(config=config)
os.chdir(here / "two")
with while_building(lambda: os.chdir(here / "three")):
    compiled = kernels.kernel.compile(config=config)
compiled.complete()
report["entries"] = {n: entries(here / n / "cache") for n in ("one", "two", "three")}
report["ready"] = len(list((here / "two/cache").glob("artifacts/v1/*/*/ready/*")))
report["stray"] = sorted(os.listdir(here / "three"))
""",
        cached=False,
    )
    assert report["entries"] == {"one": 1, "two": 1, "three": 0}
    assert report["ready"] == 1
    assert report["stray"] == []


@pytest.mark.conforms("cache.11")
def test_a_request_under_way_keeps_its_policy(house: Any) -> None:
    report = house.run(
        COMMON
        + """
def to(name):
    config = pypto.CacheConfig(enabled=True, root=Path(name).absolute())
    return lambda: pypto.configure_cache(config)
identity = session.RESOLVER._toolchain.identity
def later(*arguments):
    to("second")()
    return identity(*arguments)
session.RESOLVER._toolchain.identity = later
to("first")()
compiled = kernels.kernel.compile()
session.RESOLVER._toolchain.identity = identity
kernels.SCALE = 3.0
to("first")()
with while_building(to("second")):
    other = kernels.kernel.compile()
pypto.configure_cache(None)
compiled.complete()
other.complete()
report["entries"] = [entries("first"), entries("second")]
report["ready"] = len(list(Path("first").glob("artifacts/v1/*/*/ready/*")))
""",
        cached=False,
    )
    assert report["entries"] == [2, 0]
    assert report["ready"] == 2


@pytest.mark.conforms("cache.5", "cache.12")
def test_configuring_changes_what_comes_and_nothing_that_was(house: Any) -> None:
    report = house.run(
        COMMON
        + """
os.environ["PYPTO_CACHE_DIR"] = str(Path("environment").absolute())
kernels.kernel.compile()
stats = pypto.cache_stats()
def tree():
    return sorted((str(p), p.stat().st_mtime_ns) for p in Path(job["root"]).rglob("*"))
before = tree()
pypto.configure_cache(pypto.CacheConfig(enabled=True, root=Path("other").absolute()))
pypto.configure_cache(None)
report["same counters"] = pypto.cache_stats() == stats
report["same files"] = tree() == before
os.environ["PYPTO_CACHE"] = "1"
kernels.kernel.compile()
report["entries"] = [entries(job["root"]), entries("other"), entries("environment")]
report["made"] = Path("other").exists()
"""
    )
    assert report["same counters"]
    assert report["same files"]
    assert report["entries"] == [1, 0, 1]
    assert not report["made"]


@pytest.mark.conforms("cache.14")
def test_where_and_how_artifacts_are_kept_is_not_in_their_key(house: Any) -> None:
    report = house.run(
        COMMON
        + """
inputs = {"extra_fingerprint": "v1", "extra_source_paths": (Path(kernels.__file__),)}
root = Path("one").absolute()
other = Path("two").absolute()
kernels.kernel.warmup(config=cached(root=root, **inputs))
hits = counted("ready_hits")
report["keys"] = [
    kernels.kernel.compile(config=cached(**fields, **inputs)).artifact_key
    for fields in ({"root": root}, {"root": other}, {"root": root, "readonly": True})
]
report["hits"] = counted("ready_hits") - hits
"""
    )
    assert len(set(report["keys"])) == 1
    assert None not in report["keys"]
    assert report["hits"] == 1


@pytest.mark.conforms("cache.15", "cache.17")
def test_listed_files_are_read_at_every_request(house: Any) -> None:
    (house.work / "table.bin").write_bytes(b"1")
    report = house.run(
        COMMON
        + """
table = Path("table.bin")
config = cached(root=Path(job["root"]), extra_source_paths=(table,))
def ask(use):
    before = counted("object_hits")
    use()
    return counted("object_hits") - before
def compile():
    keys.append(kernels.kernel.compile(config=config).artifact_key)
def call():
    kernels.kernel(x, out, config=config)
keys = []
report["hits"] = []
for use in (compile, call):
    ask(use)
    report["hits"].append(ask(use))
    os.utime(table, (1, 1))
    report["hits"].append(ask(use))
    table.write_bytes(table.read_bytes() + b"2")
    report["hits"].append(ask(use))
report["keys"] = keys
"""
    )
    # A live object each time, but for the request after the edit.
    assert report["hits"] == [1, 1, 0, 1, 1, 0]
    assert report["keys"][0] == report["keys"][1] == report["keys"][2]
    assert report["keys"][3] != report["keys"][2]


@pytest.mark.conforms("cache.16")
def test_listed_directories_stand_for_their_python_sources(house: Any) -> None:
    (house.work / "sources" / "below").mkdir(parents=True)
    (house.work / "sources" / "below" / "a.py").write_text("1")
    report = house.run(
        COMMON
        + """
config = cached(root=Path(job["root"]), extra_source_paths=(Path("sources"),))
below = Path("sources/below")
keys = [kernels.kernel.compile(config=config).artifact_key]
for change in (
    lambda: (below / "a.py").write_text("2"),
    lambda: (below / "b.py").write_text(""),
    lambda: (below / "b.py").rename(below / "c.py"),
    lambda: (below / "a.py").unlink(),
):
    change()
    keys.append(kernels.kernel.compile(config=config).artifact_key)
(below / "note.txt").write_text("x")
keys.append(kernels.kernel.compile(config=config).artifact_key)
report["keys"] = keys
"""
    )
    keys = report["keys"]
    assert None not in keys
    assert len(set(keys)) == 5
    assert keys[-1] == keys[-2]


@pytest.mark.conforms("cache.18")
@pytest.mark.parametrize("kind", ["missing", "unreadable"])
def test_a_listed_input_that_cannot_be_read_is_a_bypass(house: Any, kind: str) -> None:
    (house.work / "listed.py").write_text("1")
    lose = "listed.unlink()" if kind == "missing" else "listed.unlink(); os.mkfifo(listed)"
    report = house.run(
        COMMON
        + f"""
listed = Path("listed.py")
config = cached(root=Path(job["root"]), extra_source_paths=(listed,))
live = kernels.kernel.compile(config=config)
{lose}
before = pypto.cache_stats()
made = [kernels.kernel.compile(config=config) for _ in range(2)]
report["keys"] = [item.artifact_key for item in made]
report["fresh"] = len({{id(live), *map(id, made)}}) == 3
report["hits"] = counted("object_hits")
report["bypasses"] = counted("bypasses") - before.bypasses
report["misses"] = counted("misses") - before.misses
report["path"] = str(listed.absolute())
"""
    )
    assert report["fresh"]
    assert report["keys"] == [None, None]
    assert (report["bypasses"], report["misses"], report["hits"]) == (2, 0, 0)
    assert report["path"] in report["stats"]["last_bypass_reason"]


@pytest.mark.conforms("cache.19")
def test_the_fingerprint_is_one_more_input(house: Any) -> None:
    report = house.run(
        COMMON
        + """
def key(fingerprint, name):
    root = Path(name).absolute()
    config = cached(root=root, extra_fingerprint=fingerprint)
    return kernels.kernel.compile(config=config).artifact_key
report["keys"] = [key(*item) for item in ((None, "a"), ("v1", "a"), ("v2", "a"), ("v1", "b"))]
"""
    )
    none, first, second, again = report["keys"]
    assert len({none, first, second}) == 3
    assert again == first


@pytest.mark.conforms("cache.20")
def test_the_fingerprint_replaces_no_evidence(house: Any) -> None:
    report = house.run(
        house.COMPILE,
        cache={"extra_fingerprint": "v1"},
        env={"PYPTO_CACHE_IDENTITY": "content", "CPATH": "/nowhere"},
    )
    assert report["key"] is None
    assert report["stats"]["bypasses"] == 1
    assert not house.slots("generated")


@pytest.mark.conforms("cache.1", "cache.10")
def test_without_persistence_nothing_of_a_cache_is_looked_at(house: Any) -> None:
    """Neither the file system nor a tool: the root that is named is not even asked for."""
    named = house.top / "named"
    report = house.run(
        """
asked = []
def told(event, detail):
    paths = (item for item in detail if isinstance(item, (str, bytes, os.PathLike)))
    asked.extend(os.fsdecode(path) for path in paths)
sys.addaudithook(told)
for name in ("stat", "lstat", "readlink", "access", "statvfs"):
    def spying(*arguments, _real=getattr(os, name), **options):
        told(name, arguments)
        return _real(*arguments, **options)
    setattr(os, name, spying)
compiled = kernels.kernel.compile()
report["asked"] = [
    path
    for path in asked
    if path.startswith((os.environ["PYPTO_CACHE_DIR"], os.path.expanduser("~/.cache")))
]
report["saw"] = len(asked)
report["key"] = compiled.artifact_key
report["disabled"] = pypto.cache_stats().disabled_requests
""",
        cached=False,
        env={"PYPTO_CACHE_DIR": str(named)},
    )
    assert report["saw"] > 0
    assert report["asked"] == []
    assert report["key"] is None
    assert report["disabled"] == 1
    # What is started is the assembler, for the private build that was asked for.
    assert all("ptoas" in Path(program).name for program in report["started"]), report["started"]
    assert not named.exists()
    assert not (house.top / ".cache").exists()
    assert [path.name for path in house.work.iterdir()] == ["build_output"]


@pytest.mark.conforms("cache.3", "cache.4", "cache.7", "cache.8", "cache.10")
def test_the_first_level_that_says_anything_decides_alone(house: Any) -> None:
    environment = {
        "PYPTO_CACHE": "1",
        "PYPTO_CACHE_DIR": str(house.top / "environment"),
        "XDG_CACHE_HOME": str(house.top / "xdg"),
    }
    report = house.run(
        COMMON
        + """
names = ("environment", "process", "request", "xdg", ".cache/pypto/jit")
top = Path(job["modules"]).parent
seen = {name: 0 for name in names}
def grew():
    found = {name: entries(top / name) for name in names}
    grown = [name for name in names if found[name] > seen[name]]
    seen.update(found)
    return grown
def ask(scale, config=None):
    kernels.SCALE = scale
    kernels.kernel.compile(config=config)
    return grew()
report["order"] = []
pypto.configure_cache(None)
report["order"].append(ask(1.0))
pypto.configure_cache(pypto.CacheConfig(enabled=True, root=top / "process"))
report["order"].append(ask(2.0))
report["order"].append(ask(3.0, cached(root=top / "request")))
# A winner without a root means the default root, whatever the losers name.
report["order"].append(ask(4.0, cached()))
report["order"].append(ask(5.0, RunConfig(cache_config=pypto.CacheConfig())))
pypto.configure_cache(pypto.CacheConfig())
report["order"].append(ask(6.0))
# A malformed value is met where the environment decides, and nowhere else.
os.environ["PYPTO_CACHE"] = "yes"
report["order"].append(ask(7.0))
report["order"].append(ask(8.0, cached(root=top / "request")))
pypto.configure_cache(None)
try:
    ask(9.0)
except ValueError as error:
    report["malformed"] = str(error)
del os.environ["PYPTO_CACHE"]
report["order"].append(ask(10.0))
""",
        cached=False,
        env=environment,
    )
    assert report["order"] == [
        ["environment"], ["process"], ["request"], [".cache/pypto/jit"], [], [], [], ["request"],
        [],
    ]  # fmt: skip
    assert "PYPTO_CACHE='yes'" in report["malformed"]


@pytest.mark.conforms("cache.13")
def test_neither_compiler_nor_dispatch_hears_of_the_policy(house: Any) -> None:
    report = house.run(
        COMMON
        + """
import dataclasses
import pypto.compiler.entry as entry
import pypto.runtime.chips as chips
heard = []
def spy(module, name):
    real = getattr(module, name)
    def spying(*arguments, **options):
        heard.append(repr((arguments, options)))
        return real(*arguments, **options)
    setattr(module, name, spying)
spy(entry, "build_installed")
import pypto.runtime.compiled_program as compiled_program
spy(compiled_program, "shared_chip")
config = cached(root=Path("marked-root").absolute(), extra_fingerprint="marked-token")
kernels.kernel(x, out, config=config)
report["heard"] = len(heard)
report["marked"] = [text for text in heard if "marked" in text]
report["options"] = repr((config.compile_options(), config.run_options(), config.compile_kwargs()))
"""
    )
    assert report["heard"] >= 2
    assert not [text for text in report["marked"] if "marked-token" in text]
    assert not [text for text in report["marked"] if "CacheConfig" in text]
    assert "marked" not in report["options"]
    assert "cache" not in report["options"].replace("cacheline", "")


def test_the_root_may_be_spelled_in_many_ways(house: Any) -> None:
    (house.work / "far" / "away").mkdir(parents=True)
    os.symlink(house.work / "far" / "away", house.work / "link")
    report = house.run(
        COMMON
        + """
made = [
    kernels.kernel.compile(config=cached(root=Path(root)))
    for root in ("far/cache", "link/../cache", str(Path("far/cache").absolute()))
]
report["one"] = len(set(map(id, made))) == 1
report["entries"] = [entries("far/cache"), entries("cache")]
""",
        cached=False,
    )
    assert report["one"]
    assert report["entries"] == [1, 0]
