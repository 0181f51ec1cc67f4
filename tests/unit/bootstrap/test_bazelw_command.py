"""What is read of a Bazel command line, and what is written for Bazel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from bootstrap.apt import _mirror, describe
from bootstrap.command import parse_command
from bootstrap.failure import SetupError
from bootstrap.inner_loop import link_outputs
from bootstrap.rcfile import hidden_by_sandbox, write_bazelrc
from bootstrap.registry import write_registry
from bootstrap.settings import Settings
from bootstrap.supplies import SUPPLIES

MakeSettings = Callable[..., Settings]


@pytest.mark.parametrize(
    ("line", "needed"),
    [
        ("version", ()),
        ("shutdown", ()),
        ("", ()),
        ("build //:wheel", ("build",)),
        ("--output_base=/x build //:wheel --config=asan", ("build",)),
        ("--output_base /x --max_idle_secs 15 build -c dbg //native/ptoas", ("build", "test")),
        ("build //native/... //pypto/...", ("build",)),
        ("build //native/... //...", ("build", "test")),
        ("build //... -//tests/...", ("build", "test")),
        ("build", ("build", "test")),
        ("test //native/...", ("build", "test")),
        ("run //docs/examples:quickstart", ("build", "test")),
        ("run //toolchains/zig:install -- //elsewhere", ("build",)),
        ("query //...", ("build", "test")),
    ],
)
def test_only_what_a_command_needs_is_made(line: str, needed: tuple[str, ...]) -> None:
    assert parse_command(line.split()).environments == needed


@pytest.mark.parametrize(
    ("line", "needed"),
    [
        ("test //...", True),
        ("test ...", True),
        ("build -c dbg //tests/...", True),
        ("test tests/browser/...", True),
        ("test //tests/browser:test_report_page", True),
        ("query kind(py_test,//...)", True),
        ("test -- //... -//tests/browser/...", False),
        ("test -- //... -//tests/...", False),
        ("test //tests/unit/...", False),
        ("test //tests/browser-less/...", False),
        ("build //native/... //pypto/...", False),
        ("build //:wheel", False),
        ("run //docs/examples:quickstart", False),
        ("shutdown", False),
        ("info //...", False),
    ],
)
def test_a_package_is_taken_in_by_patterns_that_may_name_its_targets(
    line: str, needed: bool
) -> None:
    assert parse_command(line.split()).takes_in("tests/browser") is needed


@pytest.mark.parametrize(
    ("line", "made"),
    [
        (
            "test //...",
            {
                *("PYPTO_BROWSER", "PYPTO_CACHE_SERVERS", "PYPTO_COMPILERS", "PYPTO_PTOAS_WHEEL"),
                "PYPTO_ZIG",
            },
        ),
        ("test //tests/integration/jit/...", set()),
        ("test //tests/integration/identity:test_compiler_drivers", {"PYPTO_COMPILERS"}),
        ("test //tests/integration/remote:test_reapi", {"PYPTO_CACHE_SERVERS"}),
        ("test //tests/browser/...", {"PYPTO_BROWSER"}),
        ("test //tests/integration/published_ptoas/...", {"PYPTO_PTOAS_WHEEL"}),
        ("build //toolchains/zig:kernel", {"PYPTO_ZIG"}),
        ("build //toolchains/pypto_toolchains", set()),
        ("build --config=hermetic //:wheel", {"PYPTO_ZIG"}),
        ("build --config hermetic //:wheel", {"PYPTO_ZIG"}),
        ("run --config=asan //native/ptoas -- --config=hermetic", set()),
        ("build --config=asan //native/...", set()),
        ("shutdown --config=hermetic", set()),
    ],
)
def test_what_is_large_is_made_for_the_commands_that_need_it_alone(
    line: str, made: set[str]
) -> None:
    command = parse_command(line.split())
    assert {s.variable for s in SUPPLIES if s.is_wanted(command)} == made


def test_the_arguments_of_a_run_program_are_no_targets() -> None:
    command = parse_command(["run", "-c", "opt", "//x:y", "--", "//:wheel", "-v"])
    assert command.name == "run"
    assert "//:wheel" not in command.targets


def test_the_mirror_is_that_of_this_release() -> None:
    targets = (
        "bookworm-security http://a/security\nbookworm http://b/debian\nbookworm http://c/debian"
    )
    assert _mirror(targets, "bookworm", "") == "http://b/debian"
    with pytest.raises(SetupError, match="names no Debian mirror"):
        _mirror("noble http://d/ubuntu", "bookworm", "use another")


def test_a_package_file_is_described_by_name_and_bytes(tmp_path: Path) -> None:
    path = tmp_path / "zlib1g_1%3a1.3-3_amd64.deb"
    path.write_bytes(b"package")
    package = describe(path)
    assert (package.name, package.version, package.size) == ("zlib1g", "1:1.3-3", 7)
    assert len(package.sha256) == 64


@pytest.mark.parametrize(
    ("cache", "home", "hidden"),
    [
        ("/var/c", "/home/me", []),
        ("/tmp/c", "/home/me", ["/tmp/c"]),
        ("/tmp/c", "/tmp/h", ["/tmp/c", "/tmp/h"]),
    ],
)
def test_what_the_sandbox_hides_is_found(
    make_settings: MakeSettings, cache: str, home: str, hidden: list[str]
) -> None:
    settings = replace(make_settings(), cache=Path(cache), home=Path(home))
    assert hidden_by_sandbox(settings) == [Path(name) for name in hidden]


def test_the_written_file_points_at_what_bazelw_made(
    make_settings: MakeSettings, tmp_path: Path
) -> None:
    directories = {"PYPTO_TEST_ENV": tmp_path / "t", "PYPTO_ZIG": tmp_path / "z"}
    writable = {"hermetic": tmp_path / "z" / "cache"}
    text = write_bazelrc(make_settings(), directories, "abc", writable).read_text()
    assert f"common --repo_env=PYPTO_TEST_ENV={tmp_path / 't'}\n" in text
    assert f"common --repo_env=PYPTO_ZIG={tmp_path / 'z'}\n" in text
    assert "build --action_env=PYPTO_HOST_COMPILER=abc\n" in text
    assert f"build:hermetic --sandbox_writable_path={tmp_path / 'z' / 'cache'}\n" in text


def test_the_same_settings_give_the_same_file(make_settings: MakeSettings, tmp_path: Path) -> None:
    """Another name would restart Bazel's server at every command."""
    arguments = (make_settings(), {"PYPTO_BUILD_ENV": tmp_path}, "abc", {})
    assert write_bazelrc(*arguments) == write_bazelrc(*arguments)


def _module(directory: Path, text: str) -> None:
    directory.mkdir(parents=True)
    (directory / "MODULE.bazel").write_text(text)


def test_the_registry_offers_every_version_asked_for(tmp_path: Path) -> None:
    share = tmp_path / "share"
    _module(share / "embedded_tools", 'bazel_dep(name = "zlib", version = "1.3")\n')
    _module(
        share / "rules" / "cc",
        '# A ) in a comment\nmodule(\n    name = "rules_cc",  # and a )\n    version = "0.0.11",\n'
        '    compatibility_level = 1,\n)\nbazel_dep(name = "skylib", version = "1.5")\n',
    )
    _module(
        tmp_path / "root",
        'bazel_dep(name = "rules_cc", version = "0.0.9")\n'
        'bazel_dep(name = "only_dev", version = "1", dev_dependency = True)\n',
    )
    registry = tmp_path / "registry"
    write_registry(registry, share, tmp_path / "root" / "MODULE.bazel")
    modules = {
        str(p.parent.relative_to(registry / "modules")) for p in registry.glob("modules/*/*/*.json")
    }
    assert modules == {
        "platforms/0.0.7",
        "rules_cc/0.0.11",
        "rules_cc/0.0.9",
        "skylib/1.5",
        "zlib/1.3",
    }
    text = (registry / "modules/rules_cc/0.0.9/MODULE.bazel").read_text()
    assert (
        'module(name = "rules_cc", version = "0.0.9", compatibility_level = 1)\nbazel_dep' in text
    )
    assert (registry / "stubs/zlib/MODULE.bazel").exists()


def _built(workspace: Path) -> Path:
    outputs = workspace / "bazel-bin" / "pypto" / "pypto"
    (outputs / "_sdk").mkdir(parents=True)
    (outputs / "_native.so").write_text("built")
    package = workspace / "pypto" / "pypto"
    package.mkdir(parents=True)
    return package


def test_outputs_are_linked_into_the_source_tree(tmp_path: Path) -> None:
    package = _built(tmp_path)
    (package / "_sdk").symlink_to("/elsewhere")
    link_outputs(tmp_path)
    assert (package / "_native.so").read_text() == "built"
    assert (package / "_sdk").is_dir()
    assert not (package / "_native.so").readlink().is_absolute()


def test_what_someone_put_there_stays(tmp_path: Path) -> None:
    package = _built(tmp_path)
    (package / "_native.so").write_text("mine")
    (package / "_sdk").mkdir()
    link_outputs(tmp_path)
    assert (package / "_native.so").read_text() == "mine"
    assert not (package / "_sdk").is_symlink()
