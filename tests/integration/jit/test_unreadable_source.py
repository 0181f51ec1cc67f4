"""Kernels whose text is not there, is another one, or is found in an unusual place."""

from __future__ import annotations

import zipfile
from typing import Any

import pytest

# Declares kernels as `made`, asks for each twice, and reports what became of the requests.
ASK = """
def ask(name, make):
    before = pypto.cache_stats()
    try:
        kernel = make()
        key = [kernel.compile().artifact_key for _ in range(2)][-1]
        error = None
    except (OSError, TypeError, pypto.jit.parsed.SourceChanged) as failure:
        key, error = None, f"{type(failure).__name__}: {failure}"
    after = pypto.cache_stats()
    report[name] = {
        "key": key,
        "error": error,
        "bypasses": after.bypasses - before.bypasses,
        "hits": after.object_hits - before.object_hits,
        "reason": after.last_bypass_reason,
    }
import pypto.jit.parsed
import pypto.language as pl
TEXT = Path(kernels.__file__).read_text()
def run(text, filename, **names):
    names.setdefault("__name__", "made")
    exec(compile(text, filename, "exec"), names)
    return names["kernel"]
"""


@pytest.mark.conforms("cache.103")
def test_without_a_text_a_request_is_a_bypass_and_an_error(house: Any) -> None:
    step = (
        ASK
        + """
ask("executed", lambda: run(TEXT, "<string>"))
ask("interactive", lambda: run(TEXT, "<stdin>"))
ask("other text", lambda: run(TEXT, __import__("json").__file__))
def replaced():
    kernel = run(TEXT, kernels.__file__)
    kernel.specialize()
    kernel._func.__code__ = kernels.helper._func.__code__
    return kernel
ask("replaced code", replaced)
"""
    )
    report = house.run(step)
    for name in ("executed", "interactive"):
        assert "is not available" in report[name]["error"]
        assert "kernel" in report[name]["error"]
    assert "SourceChanged" in report["other text"]["error"]
    assert "was replaced" in report["replaced code"]["error"]
    for name in ("executed", "interactive", "other text", "replaced code"):
        assert report[name]["bypasses"] == 1
        assert report[name]["reason"] in report[name]["error"]
    assert report["stats"]["requests"] == report["stats"]["bypasses"] == 4
    assert not house.slots("generated")


@pytest.mark.conforms("cache.102")
def test_without_a_text_no_policy_counts_a_bypass_that_has_none(house: Any) -> None:
    step = (
        ASK
        + """
from pypto.runtime import RunConfig
kernel = run(TEXT, "<string>")
for config in (None, RunConfig(dump_passes=True)):
    try:
        kernel.compile(config=config)
    except OSError:
        pass
"""
    )
    stats = house.run(step, cached=False)["stats"]
    assert stats["requests"] == stats["disabled_requests"] == 2
    assert stats["forced_rebuilds"] == 1
    assert stats["bypasses"] == 0


def test_texts_in_unusual_places_have_an_identity(house: Any) -> None:
    with zipfile.ZipFile(house.modules / "packed.zip", "w") as archive:
        archive.writestr("in_archive.py", house.KERNELS)
    step = (
        ASK
        + """
import functools, importlib, linecache
def archived():
    sys.path.insert(0, job["modules"] + "/packed.zip")
    return importlib.import_module("in_archive").kernel
ask("archive", archived)
def cell():
    linecache.cache["<cell 1>"] = (len(TEXT), None, TEXT.splitlines(True), "<cell 1>")
    return run(TEXT, "<cell 1>")
ask("notebook cell", cell)
def deleted():
    path = Path(job["modules"]) / "short_lived.py"
    path.write_text(TEXT)
    kernel = importlib.import_module("short_lived").kernel
    path.unlink()
    return kernel
ask("deleted since", deleted)
def edited():
    path = Path(job["modules"]) / "edited.py"
    path.write_text(TEXT)
    kernel = importlib.import_module("edited").kernel
    path.write_text(TEXT.replace("2.0", "3.0"))
    return kernel
ask("edited since", edited)
def inherited():
    path = Path(job["modules"]) / "methods.py"
    indented = TEXT[TEXT.index("@pl.jit\\n"):].replace("\\n", "\\n    ")
    path.write_text(
        TEXT[:TEXT.index("@pl.jit\\n")] + "class Base:\\n    " + indented
        + "\\nclass Derived(Base):\\n    pass\\n"
    )
    return importlib.import_module("methods").Derived.kernel
ask("inherited", inherited)
"""
    )
    report = house.run(step)
    for name in ("archive", "notebook cell", "deleted since", "edited since", "inherited"):
        assert report[name]["error"] is None, (name, report[name])
        assert report[name]["key"] is not None, name
        assert report[name]["hits"] == 1, name
    assert report["stats"]["bypasses"] == 0


def test_what_is_decorated_already_is_read_as_what_it_is(house: Any) -> None:
    (house.modules / "wrapping.py").write_text("""
import functools
import pypto.language as pl

def plain(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper

@pl.jit
@plain
def kernel(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    return out
""")
    report = house.run("""
import importlib
try:
    importlib.import_module("wrapping").kernel.compile()
except Exception as error:
    report["error"] = f"{type(error).__name__}: {error}"
try:
    pypto.jit.jit(lambda x: x)
except TypeError as error:
    report["lambda"] = str(error)
""")
    # The wrapper's own text is what was decorated, and kernels have no variable parameters.
    assert "wrapping.py:7" in report["error"]
    assert "*args" in report["error"]
    assert "lambda" in report["lambda"]
    assert not house.slots("generated")


@pytest.mark.parametrize("name", ["x.py", "bound"])
def test_a_relative_output_directory_counts_from_where_the_request_was_made(
    house: Any, name: str
) -> None:
    report = house.run(f"""
import pypto.jit.building as building
from pypto.runtime import RunConfig
generate = building.Recipe.generate
(Path.cwd() / "elsewhere").mkdir()
here = Path.cwd()
def moved(self, directory, **options):
    os.chdir(here / "elsewhere")
    return generate(self, directory, **options)
building.Recipe.generate = moved
made = kernels.kernel.warmup(config=RunConfig(save_kernels_dir={name!r}))
report["there"] = (here / {name!r} / "kernel_config.json").is_file()
report["elsewhere"] = sorted(os.listdir(here / "elsewhere"))
""")
    assert report["there"]
    assert report["elsewhere"] == []
