"""The cache servers that bazelw unpacked for tests, as a repository.

It is fetched only by what depends on it, and again when bazelw's recipe moves it.
"""

_BUILD = """\
exports_files(["servers.json"], visibility = ["//visibility:public"])
"""

def _servers_impl(rctx):
    path = rctx.getenv("PYPTO_CACHE_SERVERS")
    if not path:
        fail("PYPTO_CACHE_SERVERS is not set: run ./bazelw in place of bazel")
    directory = rctx.path(path)
    if not directory.get_child(".complete").exists:
        fail("the servers are not there (%s): run ./bazelw setup, then this command again" % path)
    rctx.symlink(directory.get_child("servers.json"), "servers.json")
    rctx.file("BUILD.bazel", _BUILD)

_servers = repository_rule(
    doc = "The servers below bazelw's cache directory.",
    implementation = _servers_impl,
)

def _cache_servers_impl(mctx):
    _servers(name = "cache_servers")
    return mctx.extension_metadata(
        reproducible = True,
        root_module_direct_deps = ["cache_servers"],
        root_module_direct_dev_deps = [],
    )

cache_servers = module_extension(
    doc = "Makes @cache_servers, whose servers.json has the programs' absolute paths.",
    implementation = _cache_servers_impl,
)
