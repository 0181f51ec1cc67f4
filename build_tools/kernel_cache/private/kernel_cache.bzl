"""The rule that makes kernels ready in actions, and the macro in front of it.

Three kinds of actions, so that an edit rebuilds what it must:

    KernelSources    one a cache: imports the module and writes the sources of each kernel
    KernelBinaries   one a name in `kernels`: compiles them; the module is no input of it
    KernelCache      one a cache: puts the trees together

Sources depend on nothing of the module but what their kernel uses. So after an edit the first runs,
and the second only for kernels whose sources are other ones now: for the rest Bazel has the result.
"""

load("@bazel_skylib//lib:paths.bzl", paths_lib = "paths")
load("@rules_python//python:defs.bzl", "PyInfo")
load("//build_tools/python:defs.bzl", "py_binary")
load("//build_tools/python:environment.bzl", "PythonEnvironmentInfo", "run_script")
load("//toolchains:defs.bzl", "ToolchainIdentityInfo")
load(":providers.bzl", "KernelCacheInfo")

visibility([
    "//build_tools/kernel_cache/...",
    "//tests/starlark/...",
])

# Bazel's own, where --action_env says nothing of PATH.
_STRICT_PATH = "/bin:/usr/bin:/usr/local/bin"

def check_identifier(label, attribute, value, fail = fail):
    """Refuses what cannot be the name of a Python module or function.

    Args:
      label: of the target that gives it.
      attribute: of the target.
      value: a name; with dots for `module`.
      fail: called with the message.
    """
    for part in value.split(".") if attribute == "module" else [value]:
        word = part.replace("_", "a")
        if not word.isalnum() or word[:1].isdigit():
            fail("%s: %s is %r, which is no Python name" % (label, attribute, value))

def check_kernels(label, kernels, fail = fail):
    """Refuses names that cannot be kernels, or that are given twice.

    Args:
      label: of the target that gives them.
      kernels: (list[str]).
      fail: called with the message.
    """
    for position, name in enumerate(kernels):
        check_identifier(label, "kernels", name, fail)
        if name in kernels[:position]:
            fail("%s: kernels names %r twice; one action compiles all requests for a kernel" % (label, name))

def tool_path(label, environment, fail = fail):
    """Where tools are looked for, in the actions and in every program that uses the cache.

    Args:
      label: of the target that asks.
      environment: (dict) of Bazel's actions.
      fail: called with the message.

    Returns:
      str, a list of absolute directories.
    """
    path = environment.get("PATH", _STRICT_PATH)
    for entry in path.split(":"):
        if not entry.startswith("/"):
            fail("%s: --action_env=PATH=%s has the entry %r; tools are looked for in absolute directories" %
                 (label, path, entry))
    return path

def spelled(label):
    """A label as people write it in this workspace.

    Args:
      label: (Label).

    Returns:
      str.
    """
    return str(label).removeprefix("@@") if str(label).startswith("@@//") else str(label)

def _relative(file, directory, below = ""):
    """Where `file` is as seen from a directory of runfiles; both are named by short paths."""
    up = [".."] * (directory.count("/") + 1 if directory else 0)
    return "/".join(up + [file.short_path] + ([below] if below else []))

def _kernel_sources(ctx, trees, environment, tools):
    arguments = ctx.actions.args()
    arguments.add("--label", spelled(ctx.label))
    arguments.add("--module", ctx.attr.module)
    arguments.add("--config", ctx.file.config)
    for kernel, tree in trees.items():
        arguments.add_all("--tree", [tree], expand_directories = False, format_each = kernel + "=%s")
    ctx.actions.run(
        executable = ctx.executable.sources_tool,
        arguments = [arguments],
        inputs = [ctx.file.config] + tools,
        outputs = trees.values(),
        env = environment,
        mnemonic = "KernelSources",
        progress_message = "Generating the kernels of %{label}",
        # Its PATH is in `environment`; what bazelw says of this machine's compiler is not.
        use_default_shell_env = True,
    )

def _kernel_binaries(ctx, kernel, sources, out, environment, tools):
    arguments = ctx.actions.args()
    arguments.add("--label", spelled(ctx.label))
    arguments.add_all("--sources", [sources], expand_directories = False)
    arguments.add_all("--out", [out], expand_directories = False)
    arguments.add_all(ctx.attr.cpu_levels, before_each = "--cpu-level")
    ctx.actions.run(
        executable = ctx.executable._binaries_tool,
        arguments = [arguments],
        inputs = [sources] + tools,
        outputs = [out],
        env = environment,
        mnemonic = "KernelBinaries",
        progress_message = "Compiling %s of %%{label}" % (kernel or "the kernels"),
        use_default_shell_env = True,
    )

def _assembled(ctx, parts, root):
    arguments = ctx.actions.args()
    arguments.add_all("--out", [root], expand_directories = False)
    arguments.add_all(parts, expand_directories = False, before_each = "--part")
    run_script(
        ctx,
        script = ctx.file._assemble,
        environment = ctx.attr._environment[PythonEnvironmentInfo],
        inputs = parts,
        outputs = [root],
        arguments = arguments,
        mnemonic = "KernelCache",
        progress_message = "Assembling %{output}",
    )

def _kernel_cache_impl(ctx):
    name = ctx.label.name
    check_identifier(ctx.label, "name", name)
    check_identifier(ctx.label, "module", ctx.attr.module)
    check_kernels(ctx.label, ctx.attr.kernels)
    if not ctx.attr.cpu_levels:
        fail("%s: cpu_levels is empty; name at least the base level, x86-64" % ctx.label)

    # Which tools there are is said in the same words to the actions and to programs.
    if ctx.attr.toolchain:
        toolchain = ctx.attr.toolchain[ToolchainIdentityInfo].directory
        values = {"PYPTO_CACHE_IDENTITY": "hermetic"}
        paths = {"PYPTO_TOOLCHAIN": (toolchain, "identity.json")}
        tools = [toolchain]
    else:
        values = {"PYPTO_TOOL_PATH": tool_path(ctx.label, ctx.configuration.default_shell_env)}
        paths = {}
        tools = []
    environment = values | {
        variable: "%s/%s" % (tree.path, below)
        for variable, (tree, below) in paths.items()
    }

    # "" stands for every kernel.
    kernels = ctx.attr.kernels or [""]
    root = ctx.actions.declare_directory(name + ".root")
    sources = {kernel: ctx.actions.declare_directory("%s.sources/%s" % (name, kernel or "all")) for kernel in kernels}
    _kernel_sources(ctx, sources, environment, tools)
    if len(kernels) == 1:
        _kernel_binaries(ctx, kernels[0], sources[kernels[0]], root, environment, tools)
    else:
        parts = {kernel: ctx.actions.declare_directory("%s.binaries/%s" % (name, kernel)) for kernel in kernels}
        for kernel in kernels:
            _kernel_binaries(ctx, kernel, sources[kernel], parts[kernel], environment, tools)
        _assembled(ctx, parts.values(), root)

    # By this module programs find the root, which is beside it wherever they run.
    package = ctx.label.package
    interface = ctx.actions.declare_file(name + ".py")
    ctx.actions.expand_template(
        template = ctx.file._interface,
        output = interface,
        substitutions = {
            "%{label}": spelled(ctx.label),
            "%{paths}": json.encode({
                "PYPTO_CACHE_DIR": root.basename,
            } | {
                variable: _relative(tree, package, below)
                for variable, (tree, below) in paths.items()
            }),
            "%{values}": json.encode({"PYPTO_CACHE": "1", "PYPTO_CACHE_READONLY": "1"} | values),
        },
    )
    library = ctx.attr._library
    return [
        DefaultInfo(
            files = depset([root]),
            runfiles = ctx.runfiles([root, interface] + tools).merge(library[DefaultInfo].default_runfiles),
        ),
        PyInfo(
            imports = depset([paths_lib.join(ctx.workspace_name, package)], transitive = [library[PyInfo].imports]),
            transitive_sources = depset([interface], transitive = [library[PyInfo].transitive_sources]),
        ),
        KernelCacheInfo(
            interface = name,
            label = ctx.label,
            module = ctx.attr.module,
            root = root,
        ),
    ]

kernel_cache = rule(
    doc = "See pypto_kernel_cache, which also makes the tool that can import the module.",
    implementation = _kernel_cache_impl,
    attrs = {
        "config": attr.label(allow_single_file = [".json"], mandatory = True, doc = "the configuration, as `python -m pypto.jit warm` has it, without `cache`"),
        "cpu_levels": attr.string_list(doc = "the levels that binaries are made for"),
        "kernels": attr.string_list(doc = "names of all kernels in the configuration"),
        "module": attr.string(mandatory = True, doc = "the module that has the kernels, as the program imports it"),
        "sources_tool": attr.label(cfg = "target", executable = True, mandatory = True, doc = "can import the module"),
        "toolchain": attr.label(providers = [ToolchainIdentityInfo], doc = "what compiles, where the build supplies it"),
        "_assemble": attr.label(allow_single_file = True, default = "//build_tools/kernel_cache:assemble.py"),
        # Of the target's configuration, as the program's own package is: the very same files.
        "_binaries_tool": attr.label(cfg = "target", default = "//build_tools/kernel_cache:compile_binaries", executable = True),
        "_environment": attr.label(default = "@build_env//:environment", providers = [PythonEnvironmentInfo]),
        "_interface": attr.label(allow_single_file = True, default = "//build_tools/kernel_cache:interface.py.tpl"),
        "_library": attr.label(default = "//build_tools/kernel_cache:pypto_kernel_cache", providers = [PyInfo]),
    },
    provides = [KernelCacheInfo, PyInfo],
)

def pypto_kernel_cache(name, module, config, deps, kernels = [], cpu_levels = ["x86-64"], toolchain = None, **kwargs):
    """Compiles the kernels that a configuration names, into a root that programs start with.

    Python programs that depend on the target can `import NAME` and call `NAME.use()`; pypto_binary
    and pypto_test do it for theirs.

    Args:
      name: the target's name, and that of the module; a Python name.
      module: the module that has the kernels, by the name under which the program imports it, for
        that is part of their keys. Not the program itself, which is called __main__ when it runs.
      config: a JSON file as `python -m pypto.jit warm` reads it, without the field `cache`.
      deps: Python libraries with the module and what it imports.
      kernels: the names of all kernels in the configuration. With them each is compiled by an
        action of its own, and again only when its own sources have changed.
      cpu_levels: what binaries are made for, such as x86-64-v3; a program uses the best one that its
        processor has.
      toolchain: a toolchain_identity that compiles them and makes their keys, and the programs',
        independent of the machine. If not said, it is //toolchains/zig:kernel with
        --config=hermetic, and the machine's own compiler without.
      **kwargs: visibility, tags, testonly and the like.
    """
    tool = name + "_sources_tool"
    py_binary(
        name = tool,
        srcs = ["//build_tools/kernel_cache:generate_sources.py"],
        main = "//build_tools/kernel_cache:generate_sources.py",
        tags = ["manual"],
        testonly = kwargs.get("testonly", False),
        visibility = ["//visibility:private"],
        deps = deps + ["//build_tools/kernel_cache:roots"],
    )
    kernel_cache(
        name = name,
        config = config,
        cpu_levels = cpu_levels,
        kernels = kernels,
        module = module,
        sources_tool = tool,
        toolchain = toolchain or select({
            "//conditions:default": None,
            "//toolchains:is_hermetic": "//toolchains/zig:kernel",
        }),
        **kwargs
    )
