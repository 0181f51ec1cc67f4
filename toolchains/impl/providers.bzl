"""What the declarations of tools say to the rules that use them."""

visibility([
    "//build_tools/...",
    "//tests/starlark/...",
    "//toolchains/...",
])

ToolTreeInfo = provider(
    doc = "Files that tools are made of, and where they lie in a toolchain directory.",
    fields = {
        "directory": "(str) the directory of the toolchain directory that they fill, such as zig",
        "files": "(depset[File]) plain files and directories",
        "label": "(Label) for messages",
    },
)

CxxCompilerInfo = provider(
    doc = "A C++ compiler.",
    fields = {
        "argv": "(list[str]) the command: a path in the toolchain directory or, without a tree, a name on PATH; and its first arguments",
        "dialect": "(str) how it spells its options: gcc, clang or zig",
        "label": "(Label) for messages",
        "tree": "(ToolTreeInfo|None) its files; None where it is this machine's",
    },
)

KernelCompilerInfo = provider(
    doc = "What kernels and orchestration functions are compiled with.",
    fields = {
        "label": "(Label) for messages",
        "tools": "(dict[str, CxxCompilerInfo]) by the names that the SDK has for them",
    },
)

PtoasInfo = provider(
    doc = "The assembler.",
    fields = {
        "executable": "(File) the program",
        "label": "(Label) for messages",
    },
)

PtoIsaInfo = provider(
    doc = "The instruction set's headers.",
    fields = {
        "headers": "(list[File]) files below a directory include/",
        "label": "(Label) for messages",
    },
)

SdkInfo = provider(
    doc = "An assembled SDK.",
    fields = {
        "directory": "(File) the tree",
        "executables": "(list[str]) paths below it that have to be executable",
        "label": "(Label) for messages",
        "pto_isa": "(PtoIsaInfo) whose headers are in it",
        "ptoas": "(PtoasInfo) which is in it",
    },
)

ToolchainIdentityInfo = provider(
    doc = "A toolchain directory: identity.json, inventory.txt and the tools that they describe.",
    fields = {
        "directory": "(File) the tree",
        "kernel_compiler": "(KernelCompilerInfo) whose tools are in it",
        "label": "(Label) for messages",
        "sdk": "(SdkInfo) which it is declared for",
    },
)
