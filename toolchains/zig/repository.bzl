"""The zig that bazelw unpacked, as a repository.

It is fetched only by what depends on it, and again when bazelw's recipe moves it.
"""

visibility("//...")

def _zig_impl(rctx):
    path = rctx.getenv("PYPTO_ZIG")
    if not path:
        fail("PYPTO_ZIG is not set: run ./bazelw in place of bazel")
    root = rctx.path(path)
    if not root.get_child(".complete").exists:
        fail("zig is not there (%s): run ./bazelw setup, then this command again" % path)
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
