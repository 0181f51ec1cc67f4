"""The compilers that bazelw unpacked for tests, as a repository.

It is fetched only by what depends on it, and again when bazelw's recipe moves it.
"""

_BUILD = """\
exports_files(["compilers.json"], visibility = ["//visibility:public"])
"""

def _compilers_impl(rctx):
    path = rctx.getenv("PYPTO_COMPILERS")
    if not path:
        fail("PYPTO_COMPILERS is not set: run ./bazelw in place of bazel")
    directory = rctx.path(path)
    if not directory.get_child(".complete").exists:
        fail("the compilers are not there (%s): run ./bazelw setup, then this command again" % path)
    rctx.symlink(directory.get_child("compilers.json"), "compilers.json")
    rctx.file("BUILD.bazel", _BUILD)

_compilers = repository_rule(
    doc = "The compilers below bazelw's cache directory.",
    implementation = _compilers_impl,
)

def _debian_compilers_impl(mctx):
    _compilers(name = "debian_compilers")
    return mctx.extension_metadata(
        reproducible = True,
        root_module_direct_deps = ["debian_compilers"],
        root_module_direct_dev_deps = [],
    )

debian_compilers = module_extension(
    doc = "Makes @debian_compilers, whose compilers.json has the programs' absolute paths.",
    implementation = _debian_compilers_impl,
)
