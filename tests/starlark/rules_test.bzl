"""Analysis tests of the rules that assemble the SDK and pack the wheel."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")
load("//build_tools/pep517:defs.bzl", "wheel")
load("//build_tools/python:environment.bzl", "PythonEnvironmentInfo")
load("//toolchains:defs.bzl", "SdkInfo", "sdk")

def _action(env, mnemonic):
    found = [action for action in analysistest.target_actions(env) if action.mnemonic == mnemonic]
    asserts.equals(env, 1, len(found))
    return found[0]

def _sdk_test_impl(ctx):
    env = analysistest.begin(ctx)
    info = analysistest.target_under_test(env)[SdkInfo]
    asserts.equals(env, ["bin/ptoas"], info.executables)
    asserts.true(env, info.directory.is_directory)
    asserts.equals(env, "_sdk", info.directory.basename)

    inputs = [file.short_path for file in _action(env, "AssembleSdk").inputs.to_list()]
    for path in ["native/ptoas/ptoas", "native/sdk/targets.json", "native/isa/include/pto/pto-inst.hpp"]:
        asserts.true(env, path in inputs, path + " is no input of the SDK")
    return analysistest.end(env)

_sdk_test = analysistest.make(_sdk_test_impl)

def _misplaced_header_test_impl(ctx):
    env = analysistest.begin(ctx)
    asserts.expect_failure(env, "is not below a directory include/")
    return analysistest.end(env)

_misplaced_header_test = analysistest.make(_misplaced_header_test_impl, expect_failure = True)

def _wheel_test_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    tag = ctx.attr._environment[PythonEnvironmentInfo].python_tag
    names = [file.basename for file in target[DefaultInfo].files.to_list()]
    asserts.equals(env, ["pypto-0.1.0-%s-%s-linux_x86_64.whl" % (tag, tag)], names)

    inputs = [file.short_path for file in _action(env, "PackWheel").inputs.to_list()]
    for path in ["pypto/pypto/_native.so", "pypto/pypto/_sdk", "store/pypto_store/py.typed"]:
        asserts.true(env, path in inputs, path + " is not packed")
    asserts.equals(env, [], [path for path in inputs if path.startswith("../test_env")])
    return analysistest.end(env)

_wheel_test = analysistest.make(
    _wheel_test_impl,
    attrs = {
        "_environment": attr.label(default = "@build_env//:environment"),
    },
)

def _undeclared_tree_test_impl(ctx):
    env = analysistest.begin(ctx)
    asserts.expect_failure(env, "is a directory that no SDK target declares")
    return analysistest.end(env)

_undeclared_tree_test = analysistest.make(_undeclared_tree_test_impl, expect_failure = True)

def rules_test_suite(name):
    """The tests of this file.

    Args:
      name: of the suite.
    """
    sdk(
        name = "misplaced_header_sdk",
        headers = ["misplaced.h"],
        tags = ["manual"],
        targets = "//native/sdk:targets.json",
    )
    wheel(
        name = "undeclared_tree_wheel",
        srcs = ["//pypto/pypto"],
        distribution = "pypto",
        license = "//:LICENSE",
        pyproject = "//:pyproject.toml",
        readme = "//:README.md",
        roots = ["pypto"],
        tags = ["manual"],
        version = "0.1.0",
    )

    _sdk_test(
        name = "sdk_test",
        size = "small",
        target_under_test = "//pypto/pypto:_sdk",
    )
    _misplaced_header_test(
        name = "misplaced_header_test",
        size = "small",
        target_under_test = ":misplaced_header_sdk",
    )
    _wheel_test(
        name = "wheel_test",
        size = "small",
        target_under_test = "//:wheel",
    )
    _undeclared_tree_test(
        name = "undeclared_tree_test",
        size = "small",
        target_under_test = ":undeclared_tree_wheel",
    )
    native.test_suite(
        name = name,
        tests = [
            ":misplaced_header_test",
            ":sdk_test",
            ":undeclared_tree_test",
            ":wheel_test",
        ],
    )
