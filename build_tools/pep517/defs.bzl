"""The rule that packs Python libraries, the native module and the SDK into a wheel."""

load("//build_tools/python:environment.bzl", "PythonEnvironmentInfo", "run_script")
load("//toolchains:defs.bzl", "SdkInfo")

def _archive_name(file, roots):
    """Where a file goes in the wheel, or None if it is below no import root."""
    for root in roots:
        if file.short_path.startswith(root + "/"):
            return file.short_path.removeprefix(root + "/")
    return None

def _wheel_impl(ctx):
    environment = ctx.attr._environment[PythonEnvironmentInfo]
    tag = "{0}-{0}-{1}".format(environment.python_tag, ctx.attr.platform_tag)
    out = ctx.actions.declare_file("%s-%s-%s.whl" % (ctx.attr.distribution, ctx.attr.version, tag))

    arguments = ctx.actions.args()
    arguments.use_param_file("@%s")
    arguments.set_param_file_format("multiline")
    arguments.add("--out", out)
    arguments.add("--version", ctx.attr.version)
    arguments.add("--tag", tag)
    arguments.add("--pyproject", ctx.file.pyproject)
    arguments.add("--readme", ctx.file.readme)
    arguments.add("--license", ctx.file.license, format = ctx.file.license.basename + "=%s")

    sdks = {target[SdkInfo].directory: target[SdkInfo] for target in ctx.attr.sdks}
    inputs = [ctx.file.pyproject, ctx.file.readme, ctx.file.license]
    files = depset(
        ctx.files.srcs,
        transitive = [target[DefaultInfo].default_runfiles.files for target in ctx.attr.srcs + ctx.attr.sdks],
    )
    for file in files.to_list():
        name = _archive_name(file, ctx.attr.roots)
        if name == None:
            continue
        inputs.append(file)
        if file in sdks:
            arguments.add_all("--tree", [file], expand_directories = False, format_each = name + "=%s")
            for executable in sdks[file].executables:
                arguments.add("--executable", "%s/%s" % (name, executable))
        elif file.is_directory:
            fail("%s: %s is a directory that no SDK target declares" % (ctx.label, file.short_path))
        else:
            arguments.add("--file", file, format = name + "=%s")

    run_script(
        ctx,
        script = ctx.file._script,
        environment = environment,
        inputs = inputs + ctx.files._modules,
        outputs = [out],
        arguments = arguments,
        mnemonic = "PackWheel",
        progress_message = "Packing %{output}",
    )
    return [DefaultInfo(files = depset([out]))]

wheel = rule(
    doc = "A wheel for the build environment's interpreter, its bytes a function of its content.",
    implementation = _wheel_impl,
    attrs = {
        "distribution": attr.string(mandatory = True),
        "license": attr.label(allow_single_file = True, mandatory = True),
        "platform_tag": attr.string(default = "linux_x86_64"),
        "pyproject": attr.label(allow_single_file = [".toml"], mandatory = True, doc = "its [project] table makes METADATA"),
        "readme": attr.label(allow_single_file = [".md"], mandatory = True),
        "roots": attr.string_list(mandatory = True, doc = "import roots; other files are left out"),
        "sdks": attr.label_list(providers = [SdkInfo], doc = "trees whose executables are declared"),
        "srcs": attr.label_list(mandatory = True, doc = "Python libraries; their runfiles are packed"),
        "version": attr.string(mandatory = True),
        "_environment": attr.label(default = "@build_env//:environment", providers = [PythonEnvironmentInfo]),
        "_modules": attr.label_list(
            allow_files = True,
            default = ["//build_tools/pep517:project_metadata.py", "//build_tools/pep517:wheel_archive.py"],
        ),
        "_script": attr.label(allow_single_file = True, default = "//build_tools/pep517:pack_wheel.py"),
    },
)
