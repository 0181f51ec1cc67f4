"""What a rule needs to know of a Python environment."""

PythonEnvironmentInfo = provider(
    doc = "A Python environment that bazelw made.",
    fields = {
        "identity": "(File) names, versions and records of what is installed; an input of actions",
        "interpreter": "(str) absolute path of its interpreter",
        "label": "(Label) for messages",
        "python_tag": "(str) such as cp311",
        "soabi": "(str) such as cpython-311-x86_64-linux-gnu",
    },
)

def _python_environment_impl(ctx):
    return [
        DefaultInfo(files = depset([ctx.file.identity])),
        PythonEnvironmentInfo(
            identity = ctx.file.identity,
            interpreter = ctx.attr.interpreter,
            label = ctx.label,
            python_tag = ctx.attr.python_tag,
            soabi = ctx.attr.soabi,
        ),
    ]

python_environment = rule(
    doc = "Declares an environment; used by the repositories of environments.bzl.",
    implementation = _python_environment_impl,
    attrs = {
        "identity": attr.label(allow_single_file = [".json"], mandatory = True),
        "interpreter": attr.string(mandatory = True),
        "python_tag": attr.string(mandatory = True),
        "soabi": attr.string(mandatory = True),
    },
    provides = [PythonEnvironmentInfo],
)

def run_script(ctx, script, environment, inputs, outputs, arguments, mnemonic, progress_message, transitive_inputs = []):
    """Registers an action that runs a standard-library-only script.

    Not a py_binary: those resolve the one registered Python toolchain, which is the test
    environment's, and a wheel must not need that.

    Args:
      ctx: the rule's context.
      script: (File) the script.
      environment: (PythonEnvironmentInfo) whose interpreter runs it.
      inputs: (list[File]) beside the script.
      outputs: (list[File]).
      arguments: (Args).
      mnemonic: (str).
      progress_message: (str).
      transitive_inputs: (list[depset[File]]) more inputs.
    """
    ctx.actions.run(
        executable = environment.interpreter,
        arguments = [ctx.actions.args().add_all(["-I", "-S", "-B"]).add(script), arguments],
        inputs = depset([script, environment.identity] + inputs, transitive = transitive_inputs),
        outputs = outputs,
        mnemonic = mnemonic,
        progress_message = progress_message,
        use_default_shell_env = True,
    )
