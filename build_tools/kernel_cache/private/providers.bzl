"""What a kernel cache says to the rules that use it."""

visibility([
    "//build_tools/kernel_cache/...",
    "//tests/starlark/...",
])

KernelCacheInfo = provider(
    doc = "A read-only cache root with kernels that a build made ready.",
    fields = {
        "interface": "(str) the Python module that points a process at the root; it is named like the target",
        "label": "(Label) for messages",
        "module": "(str) the Python module whose kernels are in it",
        "root": "(File) the tree",
    },
)
