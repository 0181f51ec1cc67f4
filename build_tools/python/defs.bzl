"""Macros for Python libraries, extension modules and tests."""

load("@rules_cc//cc:defs.bzl", "cc_binary")
load("@rules_python//python:defs.bzl", _py_binary = "py_binary", _py_library = "py_library", _py_test = "py_test")

_MAIN = "//build_tools/python:pytest_main.py"
_CONFIGURATION = "//:pyproject.toml"

def py_library(name, **kwargs):
    """A library whose directories become packages only by their own __init__.py."""
    _py_library(name = name, **kwargs)

def py_binary(name, **kwargs):
    """A program, without invented __init__.py files."""
    _py_binary(name = name, legacy_create_init = 0, **kwargs)

def py_test(name, **kwargs):
    """A test that is a program of its own, without invented __init__.py files."""
    _py_test(name = name, legacy_create_init = 0, **kwargs)

def pybind_extension(name, srcs, deps = [], copts = [], linkopts = [], **kwargs):
    """A pybind11 module `NAME.so`; an ABI-tagged suffix is not needed to import it.

    Args:
      name: the module's last name.
      srcs: C++ sources.
      deps: C++ libraries, linked in.
      copts: more compiler options.
      linkopts: more linker options.
      **kwargs: passed to cc_binary.
    """
    cc_binary(
        name = name + ".so",
        srcs = srcs,
        linkshared = True,
        linkstatic = True,
        copts = ["-fvisibility=hidden"] + copts,
        # Bazel names a shared library by its path below the output directory.
        linkopts = ["-Wl,-soname,%s.so" % name] + linkopts,
        deps = deps + ["@build_env//:pybind11"],
        **kwargs
    )

def pytest_test(name, srcs, deps = [], data = [], args = [], support = [], env = {}, **kwargs):
    """A test of pytest files in the test environment.

    Args:
      name: the target's name.
      srcs: the files with tests.
      deps: Python libraries.
      data: files the tests read.
      args: more arguments of pytest.
      support: conftest.py and other modules of the folder that are no tests.
      env: variables; HOME, XDG_CACHE_HOME and TMPDIR become the test's own directory.
      **kwargs: passed to py_test.
    """
    _py_test(
        name = name,
        srcs = srcs + support + [_MAIN],
        main = _MAIN,
        args = ["$(rootpath %s)" % source for source in srcs] + args,
        data = data + [_CONFIGURATION, "@test_env//:identity.json"],
        deps = deps,
        env = env,
        legacy_create_init = 0,
        **kwargs
    )

def _test_sources(srcs):
    # For the conformance table, which reads the markers of every test and runs none.
    native.filegroup(
        name = "test_sources",
        srcs = srcs,
        visibility = ["//tests/conformance:__pkg__"],
    )

def pytest_suite(srcs, support = [], sizes = {}, reads = {}, unsandboxed = [], **kwargs):
    """One pytest_test for each file, named as the file.

    Args:
      srcs: files, usually glob(["test_*.py"]).
      support: conftest.py and other modules of the folder that are no tests.
      sizes: from a test's name to its size, where "small" is not enough.
      reads: from a test's name to further files that it reads.
      unsandboxed: names of tests that need what no sandbox has, such as another user.
      **kwargs: passed to every pytest_test.
    """
    default = kwargs.pop("size", "small")
    data = kwargs.pop("data", [])
    _test_sources(srcs)
    for source in srcs:
        name = source.removesuffix(".py")
        pytest_test(
            name = name,
            srcs = [source],
            support = support,
            size = sizes.get(name, default),
            data = reads.get(name, []) + data,
            tags = ["no-sandbox"] if name in unsandboxed else [],
            **kwargs
        )

def pytest_folder(srcs, support = [], data = [], name = "tests", **kwargs):
    """One pytest_test for all files of a folder.

    For tests that take less time than a process takes to import what they need. With
    `shard_count`, as many processes, each with its part of the files.

    Args:
      srcs: files, usually glob(["test_*.py"]).
      support: conftest.py and other modules of the folder that are no tests.
      data: files the tests read.
      name: the target's name.
      **kwargs: passed to pytest_test.
    """
    _test_sources(srcs)
    pytest_test(name = name, srcs = srcs, support = support, data = data, **kwargs)
