"""Rules that declare C++ compilers, and what kernels are compiled with."""

load(":providers.bzl", "CxxCompilerInfo", "KernelCompilerInfo", "ToolTreeInfo")
load(":types.bzl", "HOST_CXX")

visibility([
    "//tests/starlark/...",
    "//toolchains/...",
])

_DIALECTS = ["clang", "gcc", "zig"]

def check_directory(label, directory, fail = fail):
    """Refuses what cannot be one directory directly below a toolchain directory.

    Args:
      label: of the target that gives it.
      directory: its name.
      fail: called with the message.
    """
    if not directory or "/" in directory or directory.startswith("."):
        fail("%s: directory is %r; name one directory, without / and not starting with a dot" % (label, directory))

def compiler_argv(label, tree, program, command, args, fail = fail):
    """The command of a compiler, from what its declaration says.

    Args:
      label: of the declaration.
      tree: (ToolTreeInfo|None) the files of a supplied compiler.
      program: (str) the program's path among them.
      command: (str) the name on PATH of a compiler that is this machine's.
      args: (list[str]) first arguments.
      fail: called with the message.

    Returns:
      list[str].
    """
    if bool(tree) == bool(command):
        fail("%s: say either tree and program, for a compiler that the build supplies, or command, for the one that this machine has" % label)
    if bool(tree) != bool(program):
        fail("%s: program is the path of the compiler among the files of tree; say both" % label)
    if program.startswith("/") or ".." in program.split("/"):
        fail("%s: program is %r; give the path below the files of tree" % (label, program))
    for word in args:
        if word.startswith("/") or "=/" in word:
            fail("%s: the argument %r has an absolute path, which would tie the identity to one machine" % (label, word))
    return ["%s/%s" % (tree.directory, program) if tree else command] + args

def _tool_tree_impl(ctx):
    check_directory(ctx.label, ctx.attr.directory)
    info = ToolTreeInfo(
        directory = ctx.attr.directory,
        files = depset(ctx.files.srcs),
        label = ctx.label,
    )
    return [DefaultInfo(files = info.files), info]

tool_tree = rule(
    doc = "Declares files that tools are made of.",
    implementation = _tool_tree_impl,
    attrs = {
        "directory": attr.string(mandatory = True, doc = "the directory of the toolchain directory that they fill"),
        "srcs": attr.label_list(allow_files = True, mandatory = True, doc = "files, and directories with all that is below them; they keep their paths in their repository"),
    },
    provides = [ToolTreeInfo],
)

def _cxx_compiler_impl(ctx):
    tree = ctx.attr.tree[ToolTreeInfo] if ctx.attr.tree else None
    info = CxxCompilerInfo(
        argv = compiler_argv(ctx.label, tree, ctx.attr.program, ctx.attr.command, ctx.attr.args_before),
        dialect = ctx.attr.dialect,
        label = ctx.label,
        tree = tree,
    )
    return [
        DefaultInfo(files = tree.files if tree else depset()),
        info,
        platform_common.ToolchainInfo(cxx_compiler = info),
    ]

cxx_compiler = rule(
    doc = "Declares a C++ compiler: one that the build supplies, or the one that this machine has.",
    implementation = _cxx_compiler_impl,
    attrs = {
        "args_before": attr.string_list(doc = "arguments in front of all others"),
        "command": attr.string(doc = "a name on PATH, for this machine's"),
        "dialect": attr.string(mandatory = True, values = _DIALECTS, doc = "how it spells its options"),
        "program": attr.string(doc = "the compiler's path among the files of tree"),
        "tree": attr.label(providers = [ToolTreeInfo], doc = "its files, for a supplied one"),
    },
    provides = [CxxCompilerInfo],
)

def _kernel_compiler_impl(ctx):
    if ctx.attr.host_cxx:
        host_cxx = ctx.attr.host_cxx[CxxCompilerInfo]
    else:
        host_cxx = ctx.toolchains[HOST_CXX].cxx_compiler
    info = KernelCompilerInfo(
        label = ctx.label,
        tools = {
            "aarch64_cxx": ctx.attr.aarch64_cxx[CxxCompilerInfo],
            "host_cxx": host_cxx,
        },
    )
    return [info, platform_common.ToolchainInfo(kernel_compiler = info)]

kernel_compiler = rule(
    doc = "Declares what kernels and orchestration functions are compiled with.",
    implementation = _kernel_compiler_impl,
    attrs = {
        "aarch64_cxx": attr.label(mandatory = True, providers = [CxxCompilerInfo], doc = "for orchestration that runs on a device's own cores"),
        "host_cxx": attr.label(providers = [CxxCompilerInfo], doc = "for this machine; the resolved host C++ compiler if not said"),
    },
    provides = [KernelCompilerInfo],
    toolchains = [HOST_CXX],
)
