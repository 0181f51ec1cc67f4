"""The rule that assembles the SDK: assembler, headers, helper sources and what describes them."""

load("//build_tools/python:environment.bzl", "PythonEnvironmentInfo", "run_script")

SdkInfo = provider(
    doc = "An assembled SDK.",
    fields = {
        "directory": "(File) the tree",
        "executables": "(list[str]) paths below it that have to be executable",
        "label": "(Label) for messages",
    },
)

_ASSEMBLER = "bin/ptoas"

def _below(file, marker):
    """The part of a file's path behind `/marker/`, or None."""
    _, found, rest = ("/" + file.short_path).partition("/%s/" % marker)
    return rest if found else None

def _sdk_impl(ctx):
    environment = ctx.attr._environment[PythonEnvironmentInfo]
    directory = ctx.actions.declare_directory(ctx.label.name)

    arguments = ctx.actions.args()
    arguments.use_param_file("@%s")
    arguments.set_param_file_format("multiline")
    arguments.add_all("--out", [directory], expand_directories = False)
    arguments.add("--targets", ctx.file.targets)
    arguments.add("--executable", ctx.executable.assembler, format = _ASSEMBLER + "=%s")
    for marker, files in [("include", ctx.files.headers), ("src", ctx.files.helper_sources)]:
        for file in files:
            rest = _below(file, marker)
            if rest == None:
                fail("%s: %s is not below a directory %s/" % (ctx.label, file.short_path, marker))
            arguments.add("--file", file, format = "%s/%s=%%s" % (marker, rest))

    run_script(
        ctx,
        script = ctx.file._script,
        environment = environment,
        inputs = [ctx.file.targets, ctx.executable.assembler] + ctx.files.headers + ctx.files.helper_sources,
        outputs = [directory],
        arguments = arguments,
        mnemonic = "AssembleSdk",
        progress_message = "Assembling %{output}",
    )
    return [
        DefaultInfo(
            files = depset([directory]),
            runfiles = ctx.runfiles([directory]),
        ),
        SdkInfo(
            directory = directory,
            executables = [_ASSEMBLER],
            label = ctx.label,
        ),
    ]

sdk = rule(
    doc = "Assembles the SDK into a directory named like the target.",
    implementation = _sdk_impl,
    attrs = {
        "assembler": attr.label(cfg = "target", executable = True, mandatory = True),
        "headers": attr.label_list(allow_files = [".h", ".hpp"], doc = "files below include/"),
        "helper_sources": attr.label_list(allow_files = [".cpp"], doc = "files below src/"),
        "targets": attr.label(allow_single_file = [".json"], mandatory = True),
        "_environment": attr.label(default = "@build_env//:environment", providers = [PythonEnvironmentInfo]),
        "_script": attr.label(allow_single_file = True, default = "//build_tools/sdk:assemble.py"),
    },
    provides = [SdkInfo],
)
