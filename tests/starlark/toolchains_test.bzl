"""Tests of the toolchain rules: what they say, what they refuse, what is resolved, what actions read."""

load("@bazel_skylib//lib:partial.bzl", "partial")
load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts", "unittest")
load(
    "//toolchains:defs.bzl",
    "CxxCompilerInfo",
    "KernelCompilerInfo",
    "PtoIsaInfo",
    "PtoasInfo",
    "SdkInfo",
    "ToolTreeInfo",
    "ToolchainIdentityInfo",
    "cxx_compiler",
    "ptoas",
    "tool_tree",
    "toolchain_identity",
)
load("//toolchains/impl:compilers.bzl", "check_directory", "compiler_argv")
load("//toolchains/impl:identity.bzl", "supplied_trees")
load("//toolchains/impl:sdk.bzl", "place_below")
load("//toolchains/impl:types.bzl", "HOST_CXX", "KERNEL_COMPILER")

_CC = "@bazel_tools//tools/cpp:toolchain_type"
_HERMETIC = {str(Label("//toolchains:hermetic")): True}

def _names(label):
    return "//%s:%s" % (label.package, label.name)

# What the declarations refuse.

def _refusals(function, *arguments):
    failures = []
    function("//x:y", fail = failures.append, *arguments)
    return failures

def _compiler_misuse_test_impl(ctx):
    env = unittest.begin(ctx)
    tree = struct(directory = "zig", label = "//x:tree")
    either = "//x:y: say either tree and program, for a compiler that the build supplies, or command, for the one that this machine has"
    for arguments, refusal in [
        ((None, "", "", []), either),
        ((tree, "zig", "g++", []), either),
        ((tree, "", "", []), "//x:y: program is the path of the compiler among the files of tree; say both"),
        ((None, "zig", "g++", []), "//x:y: program is the path of the compiler among the files of tree; say both"),
        ((tree, "/usr/bin/zig", "", []), '//x:y: program is "/usr/bin/zig"; give the path below the files of tree'),
        ((tree, "../zig", "", []), '//x:y: program is "../zig"; give the path below the files of tree'),
        (
            (tree, "zig", "", ["--sysroot=/opt/root"]),
            '//x:y: the argument "--sysroot=/opt/root" has an absolute path, which would tie the identity to one machine',
        ),
        (
            (tree, "zig", "", ["-I", "/opt/root"]),
            '//x:y: the argument "/opt/root" has an absolute path, which would tie the identity to one machine',
        ),
        ((tree, "zig", "", ["c++", "-target", "x86_64-linux-gnu.2.28"]), None),
        ((None, "", "g++", []), None),
    ]:
        asserts.equals(env, [refusal] if refusal else [], _refusals(compiler_argv, *arguments))
    return unittest.end(env)

_compiler_misuse_test = unittest.make(_compiler_misuse_test_impl)

def _directory_misuse_test_impl(ctx):
    env = unittest.begin(ctx)
    asserts.equals(env, [], _refusals(check_directory, "zig"))
    for name in ["", "a/b", "..", ".hidden"]:
        asserts.equals(
            env,
            ['//x:y: directory is "%s"; name one directory, without / and not starting with a dot' % name],
            _refusals(check_directory, name),
        )
    return unittest.end(env)

_directory_misuse_test = unittest.make(_directory_misuse_test_impl)

def _compiler(label, **trees):
    return struct(label = label, tools = {
        name: struct(label = "//x:" + name, tree = struct(directory = tree[0], label = tree[1]) if tree else None)
        for name, tree in trees.items()
    })

def _trees_misuse_test_impl(ctx):
    env = unittest.begin(ctx)
    shared = _compiler("//x:c", aarch64_cxx = ("zig", "//x:tree"), host_cxx = ("zig", "//x:tree"))
    asserts.equals(env, ["//x:tree"], [tree.label for tree in supplied_trees("//x:y", shared)])
    asserts.equals(
        env,
        ["//x:y: //x:host_cxx, the host_cxx of //x:c, is what this machine has on PATH and no file of the build, so " +
         "nothing can be said of it; build with --config=hermetic, or give kernel_compiler one whose tools are supplied"],
        _refusals(supplied_trees, _compiler("//x:c", aarch64_cxx = ("zig", "//x:tree"), host_cxx = None)),
    )
    asserts.equals(
        env,
        ["//x:y: //x:one and //x:two both fill the directory zig"],
        _refusals(supplied_trees, _compiler("//x:c", aarch64_cxx = ("zig", "//x:one"), host_cxx = ("zig", "//x:two"))),
    )
    return unittest.end(env)

_trees_misuse_test = unittest.make(_trees_misuse_test_impl)

def _place_test_impl(ctx):
    env = unittest.begin(ctx)
    header = struct(short_path = "native/isa/include/pto/tile.hpp")
    asserts.equals(env, "include/pto/tile.hpp", place_below("//x:y", header, "include"))
    asserts.equals(
        env,
        ["//x:y: native/isa/include/pto/tile.hpp is not below a directory src/"],
        _refusals(place_below, header, "src"),
    )
    return unittest.end(env)

_place_test = unittest.make(_place_test_impl)

# What the declarations say.

def _machine_test_impl(ctx):
    env = analysistest.begin(ctx)
    compiler = analysistest.target_under_test(env)[KernelCompilerInfo]
    asserts.equals(env, "//toolchains:machine_kernel_compiler", _names(compiler.label))
    asserts.equals(env, ["aarch64_cxx", "host_cxx"], sorted(compiler.tools))
    host = compiler.tools["host_cxx"]
    asserts.equals(env, ("//toolchains:machine_cxx", ["g++"], "gcc", None), (_names(host.label), host.argv, host.dialect, host.tree))
    asserts.equals(env, ["aarch64-linux-gnu-g++"], compiler.tools["aarch64_cxx"].argv)
    return analysistest.end(env)

_machine_test = analysistest.make(_machine_test_impl)

def _zig_test_impl(ctx):
    env = analysistest.begin(ctx)
    compiler = analysistest.target_under_test(env)[KernelCompilerInfo]
    asserts.equals(env, "//toolchains/zig:kernel_compiler", _names(compiler.label))
    for tool, machine in [("host_cxx", "x86_64"), ("aarch64_cxx", "aarch64")]:
        info = compiler.tools[tool]
        asserts.equals(env, "//toolchains/zig:%s_cxx" % machine, _names(info.label))
        asserts.equals(env, ["zig/zig", "c++", "-target", machine + "-linux-gnu.2.28"], info.argv)
        asserts.equals(env, "zig", info.dialect)
        asserts.equals(env, "zig", info.tree.directory)
        asserts.equals(env, "//toolchains/zig:tree", _names(info.tree.label))
    return analysistest.end(env)

_zig_test = analysistest.make(_zig_test_impl)

def _labels_test_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    for provider in [CxxCompilerInfo, ToolTreeInfo, PtoasInfo, PtoIsaInfo, SdkInfo, ToolchainIdentityInfo]:
        if provider in target:
            asserts.equals(env, target.label, target[provider].label)
    return analysistest.end(env)

_labels_test = analysistest.make(_labels_test_impl)

# What is resolved.

_ResolvedInfo = provider(
    doc = "What toolchain resolution gave.",
    fields = {
        "cc": "(str) the compiler of Bazel's C++ rules",
        "host_cxx": "(str) label",
        "kernel_compiler": "(str) label",
        "kernel_host_cxx": "(str) label",
    },
)

def _resolved_impl(ctx):
    compiler = ctx.toolchains[KERNEL_COMPILER].kernel_compiler
    return [_ResolvedInfo(
        cc = ctx.toolchains[_CC].cc.compiler,
        host_cxx = _names(ctx.toolchains[HOST_CXX].cxx_compiler.label),
        kernel_compiler = _names(compiler.label),
        kernel_host_cxx = _names(compiler.tools["host_cxx"].label),
    )]

_resolved = rule(
    implementation = _resolved_impl,
    toolchains = [_CC, HOST_CXX, KERNEL_COMPILER],
)

def _hermetic_resolution_test_impl(ctx):
    env = analysistest.begin(ctx)
    found = analysistest.target_under_test(env)[_ResolvedInfo]
    asserts.equals(env, "zig", found.cc)
    asserts.equals(env, "//toolchains/zig:x86_64_cxx", found.host_cxx)
    asserts.equals(env, "//toolchains/zig:kernel_compiler", found.kernel_compiler)
    asserts.equals(env, "//toolchains/zig:x86_64_cxx", found.kernel_host_cxx)
    return analysistest.end(env)

_hermetic_resolution_test = analysistest.make(_hermetic_resolution_test_impl, config_settings = _HERMETIC)

def _machine_resolution_test_impl(ctx):
    env = analysistest.begin(ctx)
    found = analysistest.target_under_test(env)[_ResolvedInfo]
    asserts.true(env, found.cc != "zig")
    asserts.equals(env, "//toolchains:machine_cxx", found.host_cxx)
    asserts.equals(env, "//toolchains:machine_kernel_compiler", found.kernel_compiler)
    asserts.equals(env, "//toolchains:machine_cxx", found.kernel_host_cxx)
    return analysistest.end(env)

_machine_resolution_test = analysistest.make(
    _machine_resolution_test_impl,
    config_settings = {str(Label("//toolchains:hermetic")): False},
)

def _other_assembler_test_impl(ctx):
    env = analysistest.begin(ctx)
    info = analysistest.target_under_test(env)[SdkInfo]
    asserts.equals(env, "//tests/starlark:other_ptoas", _names(info.ptoas.label))
    (action,) = [each for each in analysistest.target_actions(env) if each.mnemonic == "AssembleSdk"]
    inputs = [file.short_path for file in action.inputs.to_list()]
    asserts.true(env, "tests/starlark/other_ptoas.sh" in inputs)
    asserts.false(env, "native/ptoas/ptoas" in inputs)
    return analysistest.end(env)

_other_assembler_test = analysistest.make(
    _other_assembler_test_impl,
    config_settings = {
        "//command_line_option:extra_toolchains": str(Label("//tests/starlark:other_ptoas_toolchain")),
    },
)

def _hermetic_compile_test_impl(ctx):
    env = analysistest.begin(ctx)
    actions = [each for each in analysistest.target_actions(env) if each.mnemonic == "CppCompile"]
    asserts.true(env, len(actions) > 0)
    for action in actions:
        asserts.true(env, action.argv[0].startswith("external/") and action.argv[0].endswith("zig/c++"), action.argv[0])
        asserts.equals(env, [], [word for word in action.argv if "=/" in word or word.startswith(("/", "-I/", "-L/"))])
        inputs = [file.path for file in action.inputs.to_list()]
        asserts.equals(env, [], [path for path in inputs if not path.startswith(("external/", "native/"))])
    return analysistest.end(env)

_hermetic_compile_test = analysistest.make(_hermetic_compile_test_impl, config_settings = _HERMETIC)

# The identity.

def _identity_test_impl(ctx):
    env = analysistest.begin(ctx)
    info = analysistest.target_under_test(env)[ToolchainIdentityInfo]
    (action,) = [each for each in analysistest.target_actions(env) if each.mnemonic == "ToolchainIdentity"]
    asserts.equals(env, [info.directory], action.outputs.to_list())
    asserts.true(env, info.directory.is_directory)
    asserts.equals(env, "//pypto/pypto:_sdk", _names(info.sdk.label))

    # Beside the tools' files: the script, the interpreter's identity and the SDK.
    tools = {file: True for tool in info.kernel_compiler.tools.values() for file in tool.tree.files.to_list()}
    others = [file.short_path for file in action.inputs.to_list() if file not in tools]
    asserts.equals(
        env,
        ["build_tools/toolchains/toolchain_directory.py", "identity.json", "pypto/pypto/_sdk"],
        sorted([path.rpartition("/")[2] if path.startswith("../") else path for path in others]),
    )
    asserts.true(env, len(tools) > 1000)
    asserts.equals(env, [], [file.path for file in tools if not file.path.startswith("external/")])
    return analysistest.end(env)

_identity_test = analysistest.make(_identity_test_impl)

def _machine_identity_test_impl(ctx):
    env = analysistest.begin(ctx)
    asserts.expect_failure(env, "is what this machine has on PATH and no file of the build")
    return analysistest.end(env)

_machine_identity_test = analysistest.make(_machine_identity_test_impl, expect_failure = True)

def _absolute_argument_test_impl(ctx):
    env = analysistest.begin(ctx)
    asserts.expect_failure(env, "has an absolute path, which would tie the identity to one machine")
    return analysistest.end(env)

_absolute_argument_test = analysistest.make(_absolute_argument_test_impl, expect_failure = True)

def toolchains_test_suite(name):
    """The tests of this file.

    Args:
      name: of the suite.
    """
    ptoas(
        name = "other_ptoas",
        executable = "other_ptoas.sh",
    )
    native.toolchain(
        name = "other_ptoas_toolchain",
        toolchain = ":other_ptoas",
        toolchain_type = "//toolchains:ptoas_toolchain_type",
    )
    toolchain_identity(
        name = "machine_identity",
        kernel_compiler = "//toolchains:machine_kernel_compiler",
        tags = ["manual"],
    )
    tool_tree(
        name = "one_file",
        srcs = ["other_ptoas.sh"],
        directory = "tools",
    )
    cxx_compiler(
        name = "absolute_cxx",
        args_before = ["--sysroot=/opt"],
        dialect = "clang",
        program = "tests/starlark/other_ptoas.sh",
        tags = ["manual"],
        tree = ":one_file",
    )
    _resolved(name = "resolved", tags = ["manual"])

    tests = {
        "absolute_argument": (_absolute_argument_test, ":absolute_cxx"),
        "hermetic_compile": (_hermetic_compile_test, "//native/ptoas:assembler"),
        "hermetic_resolution": (_hermetic_resolution_test, ":resolved"),
        "identity": (_identity_test, "//toolchains/zig:kernel"),
        "machine": (_machine_test, "//toolchains:machine_kernel_compiler"),
        "machine_identity": (_machine_identity_test, ":machine_identity"),
        "machine_resolution": (_machine_resolution_test, ":resolved"),
        "other_assembler": (_other_assembler_test, "//pypto/pypto:_sdk"),
        "zig": (_zig_test, "//toolchains/zig:kernel_compiler"),
    } | {
        "label_of_" + label.rpartition(":")[2]: (_labels_test, label)
        for label in [
            "//pypto/pypto:_sdk",
            "//toolchains/zig:kernel",
            "//toolchains/zig:tree",
            "//toolchains:machine_cxx",
            "//toolchains:pto_isa",
            "//toolchains:ptoas",
        ]
    }
    for test, (make, target) in tests.items():
        make(name = test + "_toolchain_test", size = "small", target_under_test = target)
    unittest.suite(
        name + "_units",
        partial.make(_compiler_misuse_test, size = "small"),
        partial.make(_directory_misuse_test, size = "small"),
        partial.make(_place_test, size = "small"),
        partial.make(_trees_misuse_test, size = "small"),
    )
    native.test_suite(
        name = name,
        tests = [test + "_toolchain_test" for test in tests] + [name + "_units"],
    )
