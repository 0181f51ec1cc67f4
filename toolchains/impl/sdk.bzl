"""Rules that declare the assembler and the instruction set, and the one that makes an SDK of them."""

load("//build_tools/python:environment.bzl", "PythonEnvironmentInfo", "run_script")
load(":providers.bzl", "PtoIsaInfo", "PtoasInfo", "SdkInfo")
load(":types.bzl", "PTOAS", "PTO_ISA")

visibility([
    "//tests/starlark/...",
    "//toolchains/...",
])

_ASSEMBLER = "bin/ptoas"

def place_below(label, file, marker, fail = fail):
    """Where a file goes in the SDK: its path from the directory `marker` on.

    Args:
      label: of the target that has the file.
      file: (File) anything with a short_path.
      marker: (str) include or src.
      fail: called with the message.

    Returns:
      str.
    """
    _, found, rest = ("/" + file.short_path).partition("/%s/" % marker)
    if not found:
        fail("%s: %s is not below a directory %s/" % (label, file.short_path, marker))
    return "%s/%s" % (marker, rest)

def _ptoas_impl(ctx):
    info = PtoasInfo(executable = ctx.executable.executable, label = ctx.label)
    return [
        DefaultInfo(files = depset([info.executable])),
        info,
        platform_common.ToolchainInfo(ptoas = info),
    ]

ptoas = rule(
    doc = "Declares an assembler.",
    implementation = _ptoas_impl,
    attrs = {
        # For the machine that the SDK is for: it goes into the SDK and no action runs it.
        "executable": attr.label(allow_files = True, cfg = "target", executable = True, mandatory = True),
    },
    provides = [PtoasInfo],
)

def _pto_isa_impl(ctx):
    for file in ctx.files.headers:
        place_below(ctx.label, file, "include")
    info = PtoIsaInfo(headers = ctx.files.headers, label = ctx.label)
    return [
        DefaultInfo(files = depset(info.headers)),
        info,
        platform_common.ToolchainInfo(pto_isa = info),
    ]

pto_isa = rule(
    doc = "Declares an instruction set by its headers.",
    implementation = _pto_isa_impl,
    attrs = {
        "headers": attr.label_list(allow_files = [".h", ".hpp"], mandatory = True, doc = "files below include/pto/"),
    },
    provides = [PtoIsaInfo],
)

def _sdk_impl(ctx):
    environment = ctx.attr._environment[PythonEnvironmentInfo]
    assembler = ctx.toolchains[PTOAS].ptoas
    isa = ctx.toolchains[PTO_ISA].pto_isa
    directory = ctx.actions.declare_directory(ctx.label.name)

    arguments = ctx.actions.args()
    arguments.use_param_file("@%s")
    arguments.set_param_file_format("multiline")
    arguments.add_all("--out", [directory], expand_directories = False)
    arguments.add("--targets", ctx.file.targets)
    arguments.add("--executable", assembler.executable, format = _ASSEMBLER + "=%s")
    headers = isa.headers + ctx.files.headers
    for marker, files in [("include", headers), ("src", ctx.files.helper_sources)]:
        for file in files:
            arguments.add("--file", file, format = place_below(ctx.label, file, marker) + "=%s")

    run_script(
        ctx,
        script = ctx.file._script,
        environment = environment,
        inputs = [ctx.file.targets, assembler.executable] + headers + ctx.files.helper_sources,
        outputs = [directory],
        arguments = arguments,
        mnemonic = "AssembleSdk",
        progress_message = "Assembling %{output}",
    )
    info = SdkInfo(
        directory = directory,
        executables = [_ASSEMBLER],
        label = ctx.label,
        pto_isa = isa,
        ptoas = assembler,
    )
    return [
        DefaultInfo(
            files = depset([directory]),
            runfiles = ctx.runfiles([directory]),
        ),
        info,
        platform_common.ToolchainInfo(sdk = info),
    ]

sdk = rule(
    doc = "Assembles the SDK, with the resolved assembler and instruction set, into a directory named like the target.",
    implementation = _sdk_impl,
    attrs = {
        "headers": attr.label_list(allow_files = [".h", ".hpp"], doc = "more files below include/"),
        "helper_sources": attr.label_list(allow_files = [".cpp"], doc = "files below src/"),
        "targets": attr.label(allow_single_file = [".json"], mandatory = True),
        "_environment": attr.label(default = "@build_env//:environment", providers = [PythonEnvironmentInfo]),
        "_script": attr.label(allow_single_file = True, default = "//build_tools/sdk:assemble.py"),
    },
    provides = [SdkInfo],
    toolchains = [PTOAS, PTO_ISA],
)
