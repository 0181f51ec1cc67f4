"""The rule whose program copies a toolchain directory out of the build."""

load("//build_tools/python:environment.bzl", "PythonEnvironmentInfo")
load(":providers.bzl", "ToolchainIdentityInfo")

visibility("//toolchains/...")

_PROGRAM = """\
#!/bin/sh
runfiles=$0.runfiles/{workspace}
exec '{python}' -I -S -B "$runfiles/{script}" --toolchain "$runfiles/{toolchain}" "$@"
"""

def _toolchain_installer_impl(ctx):
    environment = ctx.attr._environment[PythonEnvironmentInfo]
    directory = ctx.attr.toolchain[ToolchainIdentityInfo].directory
    program = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.write(
        program,
        _PROGRAM.format(
            python = environment.interpreter,
            script = ctx.file._script.short_path,
            toolchain = directory.short_path,
            workspace = ctx.workspace_name,
        ),
        is_executable = True,
    )
    return [DefaultInfo(
        executable = program,
        runfiles = ctx.runfiles([directory, ctx.file._script]),
    )]

toolchain_installer = rule(
    doc = "A program for `bazel run` that copies a toolchain directory to the one it is told.",
    implementation = _toolchain_installer_impl,
    attrs = {
        "toolchain": attr.label(mandatory = True, providers = [ToolchainIdentityInfo]),
        "_environment": attr.label(default = "@build_env//:environment", providers = [PythonEnvironmentInfo]),
        "_script": attr.label(allow_single_file = True, default = "//build_tools/toolchains:install_toolchain.py"),
    },
    executable = True,
)
