"""What ``import pypto`` may and may not do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

OPTIONAL = {"torch", "numpy", "elftools", "zstandard", "rich", "grpc", "cryptography"}
HEAVY = OPTIONAL | {"subprocess", "multiprocessing"}


def _loaded_after(statement: str) -> set[str]:
    script = f"{statement}\nimport sys\nprint('\\n'.join(sorted(sys.modules)))"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(result.stdout.split())


def test_importing_the_product_loads_nothing_optional() -> None:
    assert not _loaded_after("import pypto") & OPTIONAL


def test_listing_a_store_loads_nothing_optional() -> None:
    statement = "import io, pypto.jit.stat as s; s.stat('.', io.StringIO(), io.StringIO())"
    assert not _loaded_after(statement) & OPTIONAL


@pytest.mark.parametrize("words", [["ls"], ["report", "--html", "report.html"]], ids=lambda w: w[0])
def test_commands_on_a_pipe_load_nothing_optional(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    command = [*words, "--root", str(tmp_path / "root")]
    statement = (
        f"import os, pypto_store.__main__ as m; os.chdir({str(tmp_path)!r}); m.main({command})"
    )
    assert not _loaded_after(statement) & OPTIONAL


def test_importing_the_language_loads_no_torch() -> None:
    assert not _loaded_after("import pypto.language as pl; pl.jit") & {"torch", "numpy"}


def test_importing_the_store_loads_nothing_of_the_product() -> None:
    loaded = _loaded_after("import pypto_store")
    assert not {name for name in loaded if name.split(".")[0] in {"pypto", "pypto_toolchains"}}
    assert not loaded & HEAVY


def test_nothing_of_remotes_is_loaded_without_one() -> None:
    statement = (
        "import pypto, pypto.jit.resolve, pypto_store.building;"
        "pypto.CacheConfig(enabled=True); pypto.cache_stats()"
    )
    loaded = _loaded_after(statement)
    places = ("pypto_store.remote", "pypto_store.fetching", "pypto.jit.remotes")
    assert not {name for name in loaded if name.startswith(places)}
    assert not loaded & {"grpc", "google.protobuf", "ssl", "http.client", "cryptography"}


@pytest.mark.parametrize(
    "statement", ["import pypto", "import pypto.language, pypto.runtime, pypto.ir, pypto.jit"]
)
def test_no_module_is_loaded_under_its_source_directory(statement: str) -> None:
    """``store.pypto_store`` beside ``pypto_store`` would make two classes of every error."""
    loaded = _loaded_after(statement)
    assert not {name for name in loaded if name.startswith(("store.", "toolchains.", "tests."))}


def test_declaring_a_kernel_loads_no_compiler() -> None:
    """A request that an artifact answers parses nothing, so its process pays for no parser."""
    loaded = _loaded_after("import pypto.language as pl; pl.jit")
    kept_out = ("pypto.language.parser", "pypto.ir.ops", "pypto.ir.verifier", "pypto.ir.passes")
    kept_out += ("pypto.codegen", "pypto.compiler")
    assert not {name for name in loaded if name.startswith(kept_out)}
