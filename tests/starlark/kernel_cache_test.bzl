"""Tests of kernel caches: what they provide, what their actions read, what they refuse."""

load("@bazel_skylib//lib:partial.bzl", "partial")
load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts", "unittest")
load("@rules_python//python:defs.bzl", "PyInfo")
load("//build_tools/kernel_cache:defs.bzl", "KernelCacheInfo", "pypto_binary", "pypto_kernel_cache")

# buildifier: disable=bzl-visibility
load("//build_tools/kernel_cache/private:kernel_cache.bzl", "check_identifier", "check_kernels", "spelled", "tool_path")
load("//build_tools/python:defs.bzl", "py_library")
load("//toolchains:defs.bzl", "ToolchainIdentityInfo")

_EXAMPLE = "//docs/examples/prewarmed_cache:ready_kernels"
_CONFIG = "docs/examples/prewarmed_cache/kernels.json"
_SOURCE = "docs/examples/prewarmed_cache/serving_kernels.py"

def _actions(env, mnemonic):
    return [action for action in analysistest.target_actions(env) if action.mnemonic == mnemonic]

def _reads(action, path):
    return path in [file.short_path for file in action.inputs.to_list()]

def _provider_test_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    info = target[KernelCacheInfo]
    asserts.equals(env, _EXAMPLE, spelled(info.label))
    asserts.equals(env, "serving_kernels", info.module)
    asserts.equals(env, "ready_kernels", info.interface)
    asserts.true(env, info.root.is_directory)
    asserts.equals(env, "ready_kernels.root", info.root.basename)

    runfiles = target[DefaultInfo].default_runfiles.files.to_list()
    asserts.true(env, info.root in runfiles, "programs do not get the root")
    sources = [file.short_path for file in target[PyInfo].transitive_sources.to_list()]
    asserts.true(env, "docs/examples/prewarmed_cache/ready_kernels.py" in sources)
    asserts.false(env, _SOURCE in sources, "a program has its own reasons to depend on the kernels")
    return analysistest.end(env)

_provider_test = analysistest.make(_provider_test_impl)

def _actions_test_impl(ctx):
    env = analysistest.begin(ctx)
    sources = _actions(env, "KernelSources")
    asserts.equals(env, 1, len(sources))
    asserts.true(env, sources[0].argv[0].endswith("/ready_kernels_sources_tool"))
    asserts.true(env, _reads(sources[0], _CONFIG))
    asserts.equals(env, 3, len(sources[0].outputs.to_list()))

    binaries = _actions(env, "KernelBinaries")
    asserts.equals(env, 3, len(binaries))
    for action in binaries:
        # A tool for all caches cannot depend on the modules of one: this is why an edit of one
        # kernel compiles no other one.
        asserts.true(env, action.argv[0].endswith("/build_tools/kernel_cache/compile_binaries"))
        asserts.false(env, _reads(action, _CONFIG), "the configuration is an input of compiling")
        trees = [file for file in action.inputs.to_list() if "ready_kernels.sources/" in file.path]
        asserts.equals(env, 1, len(trees))
    for action in sources + binaries:
        asserts.equals(env, "/bin:/usr/bin:/usr/local/bin", action.env["PYPTO_TOOL_PATH"])
        asserts.false(env, "PYPTO_TOOLCHAIN" in action.env)
    asserts.equals(env, 1, len(_actions(env, "KernelCache")))
    return analysistest.end(env)

_actions_test = analysistest.make(
    _actions_test_impl,
    config_settings = {
        "//command_line_option:action_env": [],
        str(Label("//toolchains:hermetic")): False,
    },
)

def _together_test_impl(ctx):
    env = analysistest.begin(ctx)
    asserts.equals(env, 1, len(_actions(env, "KernelSources")))
    asserts.equals(env, 1, len(_actions(env, "KernelBinaries")))
    asserts.equals(env, 0, len(_actions(env, "KernelCache")))
    return analysistest.end(env)

_together_test = analysistest.make(_together_test_impl)

def _toolchain_test_impl(ctx):
    env = analysistest.begin(ctx)
    runfiles = analysistest.target_under_test(env)[DefaultInfo].default_runfiles.files.to_list()
    asserts.true(env, "tests/starlark/fake_toolchain" in [file.short_path for file in runfiles])
    for action in _actions(env, "KernelSources") + _actions(env, "KernelBinaries"):
        asserts.true(env, _reads(action, "tests/starlark/fake_toolchain"))
        asserts.equals(env, "hermetic", action.env["PYPTO_CACHE_IDENTITY"])
        asserts.true(env, action.env["PYPTO_TOOLCHAIN"].endswith("tests/starlark/fake_toolchain/identity.json"))
        asserts.false(env, "PYPTO_TOOL_PATH" in action.env, "nothing of this machine takes part")
    return analysistest.end(env)

_toolchain_test = analysistest.make(_toolchain_test_impl)

def _failure_test_impl(ctx):
    env = analysistest.begin(ctx)
    asserts.expect_failure(env, ctx.attr.told)
    return analysistest.end(env)

_failure_test = analysistest.make(
    _failure_test_impl,
    attrs = {"told": attr.string(mandatory = True)},
    expect_failure = True,
)

def _names_test_impl(ctx):
    env = unittest.begin(ctx)
    told = []
    for name in ["kernel", "_k2", "Kernel"]:
        check_identifier("//a:b", "name", name, fail = told.append)
    check_identifier("//a:b", "module", "a.b_c.d", fail = told.append)
    check_kernels("//a:b", ["one", "two"], fail = told.append)
    asserts.equals(env, [], told)
    for name in ["", "a-b", "2a", "a.b", "a b"]:
        check_identifier("//a:b", "name", name, fail = told.append)
    check_identifier("//a:b", "module", "a..b", fail = told.append)
    asserts.equals(env, 6, len(told))
    asserts.equals(env, '//a:b: name is "a-b", which is no Python name', told[1])
    check_kernels("//a:b", ["one", "two", "one"], fail = told.append)
    asserts.true(env, told[6].startswith('//a:b: kernels names "one" twice'))
    return unittest.end(env)

_names_test = unittest.make(_names_test_impl)

def _tool_path_test_impl(ctx):
    env = unittest.begin(ctx)
    told = []
    asserts.equals(env, "/bin:/usr/bin:/usr/local/bin", tool_path("//a:b", {}, fail = told.append))
    asserts.equals(env, "/opt/bin:/bin", tool_path("//a:b", {"PATH": "/opt/bin:/bin"}, fail = told.append))
    asserts.equals(env, [], told)
    tool_path("//a:b", {"PATH": "/bin:."}, fail = told.append)
    asserts.true(env, told[0].startswith('//a:b: --action_env=PATH=/bin:. has the entry "."'))
    return unittest.end(env)

_tool_path_test = unittest.make(_tool_path_test_impl)

def _fake_toolchain_impl(ctx):
    directory = ctx.actions.declare_directory(ctx.label.name)
    ctx.actions.run_shell(outputs = [directory], command = "mkdir -p $1", arguments = [directory.path])
    return [
        DefaultInfo(files = depset([directory])),
        ToolchainIdentityInfo(directory = directory, kernel_compiler = None, label = ctx.label, sdk = None),
    ]

_fake_toolchain = rule(
    doc = "Stands in for a toolchain directory that is never looked into.",
    implementation = _fake_toolchain_impl,
    provides = [ToolchainIdentityInfo],
)

def _cache(name, **kwargs):
    pypto_kernel_cache(
        name = name,
        tags = ["manual"],
        **({
            "config": "//docs/examples/prewarmed_cache:kernels.json",
            "deps": ["//docs/examples/prewarmed_cache:serving_kernels"],
            "module": "serving_kernels",
        } | kwargs)
    )

def _refused(name, told, **kwargs):
    _cache(name, **kwargs)
    _failure_test(
        name = name + "_test",
        size = "small",
        target_under_test = ":" + name,
        told = told,
    )
    return ":" + name + "_test"

def kernel_cache_test_suite(name):
    """The tests of this file.

    Args:
      name: of the suite.
    """
    _fake_toolchain(name = "fake_toolchain", tags = ["manual"])
    _cache("kernels_together")
    _cache("kernels_with_toolchain", toolchain = ":fake_toolchain")
    tests = [
        _refused("no-python-name", 'name is "no-python-name", which is no Python name'),
        _refused("module_of_no_name", 'module is "serving-kernels"', module = "serving-kernels"),
        _refused("kernels_named_twice", 'kernels names "gate" twice', kernels = ["gate", "gate"]),
        _refused("kernel_of_no_name", 'kernels is "a.b"', kernels = ["a.b"]),
        _refused("no_cpu_level", "cpu_levels is empty; name at least the base level", cpu_levels = []),
        _refused("no_json", "does not produce any kernel_cache config files (expected .json)", config = "misplaced.h"),
        _refused("no_toolchain", "does not have mandatory providers: 'ToolchainIdentityInfo'", toolchain = "//docs/examples/prewarmed_cache:serving_kernels"),
    ]
    py_library(
        name = "no_kernel_cache",
        tags = ["manual"],
    )
    pypto_binary(
        name = "program_without_cache",
        srcs = ["//docs/examples/prewarmed_cache:serve.py"],
        kernel_cache = ":no_kernel_cache",
        main = "//docs/examples/prewarmed_cache:serve.py",
        tags = ["manual"],
    )
    _failure_test(
        name = "program_without_cache_test",
        size = "small",
        target_under_test = ":program_without_cache_launcher",
        told = "does not have mandatory providers: 'KernelCacheInfo'",
    )
    _provider_test(
        name = "kernel_cache_provider_test",
        size = "small",
        target_under_test = _EXAMPLE,
    )
    _actions_test(
        name = "kernel_cache_actions_test",
        size = "small",
        target_under_test = _EXAMPLE,
    )
    _together_test(
        name = "kernels_together_test",
        size = "small",
        target_under_test = ":kernels_together",
    )
    _toolchain_test(
        name = "kernels_with_toolchain_test",
        size = "small",
        target_under_test = ":kernels_with_toolchain",
    )
    unittest.suite(
        name + "_of_functions",
        partial.make(_names_test, size = "small"),
        partial.make(_tool_path_test, size = "small"),
    )
    native.test_suite(
        name = name,
        tests = tests + [
            ":kernel_cache_actions_test",
            ":kernel_cache_provider_test",
            ":kernels_together_test",
            ":kernels_with_toolchain_test",
            ":program_without_cache_test",
            ":" + name + "_of_functions",
        ],
    )
