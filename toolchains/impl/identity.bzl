"""The rule that puts a toolchain and its identity into one directory."""

load("//build_tools/python:environment.bzl", "PythonEnvironmentInfo", "run_script")
load(":providers.bzl", "KernelCompilerInfo", "ToolchainIdentityInfo")
load(":types.bzl", "KERNEL_COMPILER", "SDK")

visibility([
    "//tests/starlark/...",
    "//toolchains/...",
])

def supplied_trees(label, compiler, fail = fail):
    """The files of every tool of `compiler`, each tree once.

    Args:
      label: of the target that asks.
      compiler: (KernelCompilerInfo).
      fail: called with the message if a tool is this machine's, or if trees meet in one directory.

    Returns:
      list[ToolTreeInfo], in the order of their directories.
    """
    trees = {}
    for name, tool in compiler.tools.items():
        if tool.tree:
            other = trees.setdefault(tool.tree.directory, tool.tree)
            if other.label != tool.tree.label:
                fail("%s: %s and %s both fill the directory %s" % (label, other.label, tool.tree.label, tool.tree.directory))
        else:
            fail(("%s: %s, the %s of %s, is what this machine has on PATH and no file of the build, so " +
                  "nothing can be said of it; build with --config=hermetic, or give kernel_compiler one whose tools are supplied") %
                 (label, tool.label, name, compiler.label))
    return [trees[directory] for directory in sorted(trees)]

def _path_in_repository(file):
    path = file.short_path
    return path.split("/", 2)[2] if path.startswith("../") else path

def _placed(file, expander):
    # A directory of a rule is expanded here; one of a repository is walked by the script.
    return [
        "%s=%s" % (_path_in_repository(each), each.path)
        for each in expander.expand(file)
    ]

def _described(label):
    return str(label) if label.repo_name else str(label).lstrip("@")

def _toolchain_identity_impl(ctx):
    environment = ctx.attr._environment[PythonEnvironmentInfo]
    if ctx.attr.kernel_compiler:
        compiler = ctx.attr.kernel_compiler[KernelCompilerInfo]
    else:
        compiler = ctx.toolchains[KERNEL_COMPILER].kernel_compiler
    sdk = ctx.toolchains[SDK].sdk
    trees = supplied_trees(ctx.label, compiler)
    directory = ctx.actions.declare_directory(ctx.label.name)

    arguments = ctx.actions.args()
    arguments.use_param_file("@%s")
    arguments.set_param_file_format("multiline")
    arguments.add_all("--out", [directory], expand_directories = False)
    arguments.add_all("--sdk", [sdk.directory], expand_directories = False)
    for component, label in [
        ("device_toolchain", compiler.label),
        ("pto_isa", sdk.pto_isa.label),
        ("ptoas", sdk.ptoas.label),
        ("runtime", sdk.label),
    ]:
        arguments.add("--label", "%s=%s" % (component, _described(label)))
    for name, tool in sorted(compiler.tools.items()):
        arguments.add("--tool", json.encode({"argv": tool.argv, "dialect": tool.dialect, "name": name}))
    for tree in trees:
        arguments.add_all(
            tree.files,
            before_each = "--file",
            expand_directories = False,
            format_each = tree.directory + "/%s",
            map_each = _placed,
        )

    run_script(
        ctx,
        script = ctx.file._script,
        environment = environment,
        inputs = [sdk.directory],
        transitive_inputs = [tree.files for tree in trees],
        outputs = [directory],
        arguments = arguments,
        mnemonic = "ToolchainIdentity",
        progress_message = "Describing the toolchain %{label}",
    )
    return [
        DefaultInfo(
            files = depset([directory]),
            runfiles = ctx.runfiles([directory]),
        ),
        ToolchainIdentityInfo(
            directory = directory,
            kernel_compiler = compiler,
            label = ctx.label,
            sdk = sdk,
        ),
    ]

toolchain_identity = rule(
    doc = """\
Makes a toolchain directory, named like the target: copies of the tools, `identity.json` that says by
digests what they are, and `inventory.txt` with a line for each file. Nothing in it depends on where
or by whom it is made.""",
    implementation = _toolchain_identity_impl,
    attrs = {
        "kernel_compiler": attr.label(providers = [KernelCompilerInfo], doc = "the resolved one if not said"),
        "_environment": attr.label(default = "@build_env//:environment", providers = [PythonEnvironmentInfo]),
        "_script": attr.label(allow_single_file = True, default = "//build_tools/toolchains:toolchain_directory.py"),
    },
    provides = [ToolchainIdentityInfo],
    toolchains = [KERNEL_COMPILER, SDK],
)
