"""What bazelw makes only when asked for, as repositories: programs and files for tests.

build_tools/bootstrap/supplies.py is the other side: it makes each directory and names it by a
variable. A repository is fetched only by what depends on it, and again when its directory moves.
"""

# Repository -> (variable, what its directory holds, the target, the end of the files' names).
_SUPPLIES = {
    "cache_servers": ("PYPTO_CACHE_SERVERS", "the cache servers", "servers.json", "servers.json"),
    "debian_compilers": ("PYPTO_COMPILERS", "the compilers", "compilers.json", "compilers.json"),
    "headless_browser": ("PYPTO_BROWSER", "the browser", "browser", "browser"),
    # pip reads what a wheel is for from its name.
    "published_ptoas": ("PYPTO_PTOAS_WHEEL", "the published wheel of ptoas", "wheel", ".whl"),
}

_EXPORTED = """\
exports_files(["{file}"], visibility = ["//visibility:public"])
"""

_GROUPED = """\
filegroup(
    name = "{target}",
    srcs = {files},
    visibility = ["//visibility:public"],
)
"""

def supply_directory(rctx, variable, what):
    """The directory that bazelw made.

    Args:
      rctx: the repository rule's context.
      variable: (str) what bazelw names it by.
      what: (str) what is in it, for messages.

    Returns:
      (path) the directory, complete.
    """
    path = rctx.getenv(variable)
    if not path:
        fail("%s is not set: run ./bazelw in place of bazel" % variable)
    directory = rctx.path(path)
    if not directory.get_child(".complete").exists:
        fail("%s is not complete at %s: run ./bazelw setup, then this command again" % (what, path))
    return directory

def _supply_impl(rctx):
    variable, what, target, ending = _SUPPLIES[rctx.attr.supply]
    directory = supply_directory(rctx, variable, what)
    files = [file for file in directory.readdir() if file.basename.endswith(ending)]
    if not files:
        fail("%s has no %s: run ./bazelw setup, then this command again" % (directory, ending))
    for file in files:
        rctx.symlink(file, file.basename)
    names = [file.basename for file in files]
    build = _EXPORTED.format(file = target) if names == [target] else _GROUPED.format(files = names, target = target)
    rctx.file("BUILD.bazel", build)

_supply = repository_rule(
    doc = "One supply below bazelw's cache directory.",
    implementation = _supply_impl,
    attrs = {"supply": attr.string(mandatory = True, values = _SUPPLIES.keys())},
)

def _this_bazel_impl(rctx):
    program = rctx.getenv("PYPTO_BAZEL")
    if not program:
        fail("PYPTO_BAZEL is not set: run ./bazelw in place of bazel")
    rctx.file("bazel.json", json.encode_indent({"bazel": program}) + "\n")
    rctx.file("BUILD.bazel", _EXPORTED.format(file = "bazel.json"))

_this_bazel = repository_rule(
    doc = "Names the program that bazelw runs, for tests that run it too.",
    implementation = _this_bazel_impl,
)

def _supplies_impl(mctx):
    for name in _SUPPLIES:
        _supply(name = name, supply = name)
    _this_bazel(name = "this_bazel")
    return mctx.extension_metadata(
        reproducible = True,
        root_module_direct_deps = _SUPPLIES.keys() + ["this_bazel"],
        root_module_direct_dev_deps = [],
    )

supplies = module_extension(
    doc = "Makes one repository for each supply, and one for the running Bazel.",
    implementation = _supplies_impl,
)
