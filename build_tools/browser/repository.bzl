"""The browser that bazelw made, as a repository.

It is fetched only by what depends on it, and again when bazelw's recipe moves it.
"""

_BUILD = """\
exports_files(["browser"], visibility = ["//visibility:public"])
"""

def _browser_impl(rctx):
    path = rctx.getenv("PYPTO_BROWSER")
    if not path:
        fail("PYPTO_BROWSER is not set: run ./bazelw in place of bazel")
    launcher = rctx.path(path).get_child("browser")
    if not rctx.path(path).get_child(".complete").exists:
        fail("the browser is not there (%s): run ./bazelw setup, then this command again" % path)
    rctx.symlink(launcher, "browser")
    rctx.file("BUILD.bazel", _BUILD)

_browser = repository_rule(
    doc = "The browser below bazelw's cache directory.",
    implementation = _browser_impl,
)

def _headless_browser_impl(mctx):
    _browser(name = "headless_browser")
    return mctx.extension_metadata(
        reproducible = True,
        root_module_direct_deps = ["headless_browser"],
        root_module_direct_dev_deps = [],
    )

headless_browser = module_extension(
    doc = "Makes @headless_browser, whose program is @headless_browser//:browser.",
    implementation = _headless_browser_impl,
)
