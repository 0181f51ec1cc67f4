"""The published wheel of ptoas that bazelw downloaded, as a repository.

It is fetched only by what depends on it, and again when bazelw's recipe moves it.
"""

_BUILD = """\
filegroup(
    name = "wheel",
    srcs = glob(["*.whl"]),
    visibility = ["//visibility:public"],
)
"""

def _wheel_impl(rctx):
    path = rctx.getenv("PYPTO_PTOAS_WHEEL")
    if not path:
        fail("PYPTO_PTOAS_WHEEL is not set: run ./bazelw in place of bazel")
    directory = rctx.path(path)
    if not directory.get_child(".complete").exists:
        fail("the wheel is not there (%s): run ./bazelw setup, then this command again" % path)
    for file in directory.readdir():
        # pip reads what a wheel is for from its name.
        if file.basename.endswith(".whl"):
            rctx.symlink(file, file.basename)
    rctx.file("BUILD.bazel", _BUILD)

_wheel = repository_rule(
    doc = "The wheel below bazelw's cache directory.",
    implementation = _wheel_impl,
)

def _published_ptoas_impl(mctx):
    _wheel(name = "published_ptoas")
    return mctx.extension_metadata(
        reproducible = True,
        root_module_direct_deps = ["published_ptoas"],
        root_module_direct_dev_deps = [],
    )

published_ptoas = module_extension(
    doc = "Makes @published_ptoas, whose file is @published_ptoas//:wheel.",
    implementation = _published_ptoas_impl,
)
