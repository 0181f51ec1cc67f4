"""The Python environments that bazelw made, as repositories.

A repository points at an environment by --repo_env and is fetched again when that value changes or
when the environment's identity does; nothing is asked of the interpreter here.
"""

_BUILD = """\
load("@rules_cc//cc:defs.bzl", "cc_library")
load("@rules_python//python:defs.bzl", "py_runtime", "py_runtime_pair")
load("@@{rules}//build_tools/python:environment.bzl", "python_environment")

package(default_visibility = ["//visibility:public"])

exports_files(["identity.json"])

python_environment(
    name = "environment",
    identity = "identity.json",
    interpreter = "{python}",
    python_tag = "{python_tag}",
    soabi = "{soabi}",
)

cc_library(
    name = "python_headers",
    hdrs = glob(["include/**/*.h"]),
    includes = ["include"],
)

cc_library(
    name = "pybind11",
    hdrs = glob(["pybind11/**/*.h"]),
    includes = ["pybind11"],
    deps = [":python_headers"],
)

py_runtime(
    name = "runtime",
    interpreter_path = "{python}",
    python_version = "PY3",
    stub_shebang = "#!{python}",
)

py_runtime_pair(
    name = "runtime_pair",
    py3_runtime = ":runtime",
)
"""

def _environment_impl(rctx):
    variable = "PYPTO_%s_ENV" % rctx.attr.environment.upper()
    path = rctx.getenv(variable)
    if not path:
        fail("%s is not set: run ./bazelw in place of bazel" % variable)
    source = rctx.path(path).get_child("identity.json")
    if not source.exists:
        fail("the %s environment is not there (%s): run ./bazelw setup, then this command again" %
             (rctx.attr.environment, path))
    identity = json.decode(rctx.read(source))
    paths = identity.pop("paths")

    # What actions see: no path, so that the same environment in another directory is the same input.
    rctx.file("identity.json", json.encode_indent(identity, indent = " ") + "\n")
    rctx.symlink(paths["include"], "include")
    rctx.symlink(paths["purelib"] + "/pybind11/include", "pybind11")
    rctx.file("BUILD.bazel", _BUILD.format(
        python = paths["python"],
        python_tag = identity["python_tag"],
        rules = rctx.attr.rules.workspace_name,
        soabi = identity["soabi"],
    ))

_environment = repository_rule(
    doc = "One environment below bazelw's cache directory.",
    implementation = _environment_impl,
    attrs = {
        "environment": attr.string(mandatory = True, doc = "build or test"),
        "rules": attr.label(mandatory = True, doc = "any label of this workspace"),
    },
)

def _python_environments_impl(mctx):
    for name in ("build", "test"):
        _environment(
            name = name + "_env",
            environment = name,
            rules = Label("//build_tools/python:environment.bzl"),
        )
    return mctx.extension_metadata(
        reproducible = True,
        root_module_direct_deps = ["build_env", "test_env"],
        root_module_direct_dev_deps = [],
    )

python_environments = module_extension(
    doc = "Makes @build_env and @test_env.",
    implementation = _python_environments_impl,
)
