"""Programs and tests that start with the kernels of a cache."""

load("//build_tools/python:defs.bzl", "py_binary", "py_test")
load(":kernel_cache.bzl", "spelled")
load(":providers.bzl", "KernelCacheInfo")

visibility([
    "//build_tools/kernel_cache/...",
    "//tests/starlark/...",
])

def _kernel_cache_launcher_impl(ctx):
    launcher = ctx.actions.declare_file(ctx.label.name + ".py")
    up = [".."] * (ctx.label.package.count("/") + 1 if ctx.label.package else 0)
    ctx.actions.expand_template(
        template = ctx.file._template,
        output = launcher,
        substitutions = {
            "%{interface}": ctx.attr.kernel_cache[KernelCacheInfo].interface,
            "%{label}": spelled(ctx.attr.kernel_cache[KernelCacheInfo].label),
            "%{main}": "/".join(up + [ctx.file.main.short_path]),
        },
    )
    return [DefaultInfo(files = depset([launcher]))]

_kernel_cache_launcher = rule(
    doc = "Makes the file that a program is started by: it finds the cache, and gives way to the program.",
    implementation = _kernel_cache_launcher_impl,
    attrs = {
        "kernel_cache": attr.label(mandatory = True, providers = [KernelCacheInfo]),
        "main": attr.label(allow_single_file = [".py"], mandatory = True),
        "_template": attr.label(allow_single_file = True, default = "//build_tools/kernel_cache:launcher.py.tpl"),
    },
)

def _program(rule, name, kernel_cache, srcs, main, deps, kwargs):
    main = main or name + ".py"
    launcher = name + "_launcher"
    _kernel_cache_launcher(
        name = launcher,
        kernel_cache = kernel_cache,
        main = main,
        tags = ["manual"],
        testonly = rule == py_test or kwargs.get("testonly", False),
        visibility = ["//visibility:private"],
    )
    rule(
        name = name,
        srcs = srcs + [launcher],
        main = launcher + ".py",
        deps = deps + [kernel_cache],
        **kwargs
    )

def pypto_binary(name, kernel_cache, srcs, deps = [], main = None, **kwargs):
    """A py_binary that starts with the kernels of a cache, however and wherever it is started.

    Args:
      name: the target's name.
      kernel_cache: a pypto_kernel_cache with kernels that it uses.
      srcs: its sources, `main` among them.
      deps: Python libraries.
      main: the file to run, NAME.py if not said.
      **kwargs: passed to py_binary.
    """
    _program(py_binary, name, kernel_cache, srcs, main, deps, kwargs)

def pypto_test(name, kernel_cache, srcs, deps = [], main = None, **kwargs):
    """A py_test that starts with the kernels of a cache.

    Args:
      name: the target's name.
      kernel_cache: a pypto_kernel_cache with kernels that it uses.
      srcs: its sources, `main` among them.
      deps: Python libraries.
      main: the file to run, NAME.py if not said.
      **kwargs: passed to py_test.
    """
    _program(py_test, name, kernel_cache, srcs, main, deps, kwargs)
