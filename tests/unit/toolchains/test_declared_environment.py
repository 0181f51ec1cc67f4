"""The environment that tools get."""

from __future__ import annotations

import pytest
from pypto_toolchains.declared_environment import environment_of_tools
from pypto_toolchains.environment import EnvironmentRegistry

SHELL = {
    "CPATH": "/opt/include",
    "HOME": "/home/user",
    "LD_LIBRARY_PATH": "/opt/lib:",
    "PATH": "/home/user/bin:/usr/bin",
    "PTOAS_ROOT": "/opt/ptoas",
    "TMPDIR": "/scratch",
}


def test_without_a_declaration_tools_get_the_environment_of_the_process() -> None:
    assert environment_of_tools(SHELL) is SHELL


def test_a_declaration_is_their_path_and_leaves_nothing_that_changes_what_they_make() -> None:
    found = environment_of_tools({**SHELL, "PYPTO_TOOL_PATH": "/usr/bin:/bin"})
    assert found == {
        "HOME": "/home/user",
        "PATH": "/usr/bin:/bin",
        "PTOAS_ROOT": "/opt/ptoas",
        "PYPTO_TOOL_PATH": "/usr/bin:/bin",
        "TMPDIR": "/scratch",
    }
    assert environment_of_tools(found) == found, "it may be asked again on the way"


def test_every_semantic_variable_is_dropped_unless_it_is_about_this_process() -> None:
    semantic = EnvironmentRegistry.load().semantic
    shell = {**dict.fromkeys(semantic, "x"), "PYPTO_TOOL_PATH": "/bin"}
    assert environment_of_tools(shell).keys() & set(semantic) == {
        "LD_AUDIT", "LD_PRELOAD", "PYTHONHOME", "PYTHONOPTIMIZE",
    }  # fmt: skip


@pytest.mark.parametrize("value", ["", "bin", "/usr/bin:", ":/bin", "/bin::/usr/bin", "~/bin"])
def test_what_depends_on_the_directory_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match=r"PYPTO_TOOL_PATH=.* absolute directories"):
        environment_of_tools({"PYPTO_TOOL_PATH": value})


HERMETIC = {"PYPTO_CACHE_IDENTITY": "hermetic", "PYPTO_TOOLCHAIN": "/opt/toolchain/identity.json"}


def test_a_hermetic_toolchain_gets_nothing_that_may_change_what_it_makes() -> None:
    semantic = EnvironmentRegistry.load().semantic
    shell = {**SHELL, **dict.fromkeys(semantic, "x"), "LANG": "de_DE.UTF-8", "MY_OWN": "1"}
    found = environment_of_tools({**shell, **HERMETIC})
    selecting = {"HOME", "PATH", "PTOAS_ROOT", "TMPDIR"}
    assert found == {**{name: SHELL[name] for name in selecting}, **HERMETIC}


def test_a_policy_and_a_toolchain_that_disagree_are_refused() -> None:
    with pytest.raises(ValueError, match="PYPTO_TOOLCHAIN"):
        environment_of_tools({"PYPTO_CACHE_IDENTITY": "hermetic"})
    with pytest.raises(ValueError, match="PYPTO_CACHE_IDENTITY"):
        environment_of_tools({"PYPTO_TOOLCHAIN": "/opt/toolchain/identity.json"})
