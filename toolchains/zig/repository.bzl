"""The zig that bazelw unpacked, as a repository.

It is fetched only by what depends on it, and again when bazelw's recipe moves it.
"""

load("//build_tools/supplies:repository.bzl", "supply_directory")

visibility("//...")

def _zig_impl(rctx):
    root = supply_directory(rctx, "PYPTO_ZIG", "zig")
    for name in ("zig", "lib", "LICENSE"):
        rctx.symlink(root.get_child("ziglang", name), name)
    for tool in ("ar", "c++"):
        rctx.symlink(rctx.attr._driver, tool)
    rctx.symlink(rctx.attr._build_file, "BUILD.bazel")

_zig = repository_rule(
    doc = "The zig below bazelw's cache directory.",
    implementation = _zig_impl,
    attrs = {
        "_driver": attr.label(default = "//toolchains/zig:driver.sh"),
        "_build_file": attr.label(default = "//toolchains/zig:BUILD.zig.bazel"),
    },
)

def _zig_compiler_impl(mctx):
    _zig(name = "zig")
    return mctx.extension_metadata(
        reproducible = True,
        root_module_direct_deps = ["zig"],
        root_module_direct_dev_deps = [],
    )

zig_compiler = module_extension(
    doc = "Makes @zig.",
    implementation = _zig_compiler_impl,
)
