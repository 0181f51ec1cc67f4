"""The toolchain types, and how a rule gets what was resolved."""

visibility([
    "//tests/starlark/...",
    "//toolchains/...",
])

HOST_CXX = Label("//toolchains:host_cxx_toolchain_type")
KERNEL_COMPILER = Label("//toolchains:kernel_compiler_toolchain_type")
PTOAS = Label("//toolchains:ptoas_toolchain_type")
PTO_ISA = Label("//toolchains:pto_isa_toolchain_type")
SDK = Label("//toolchains:sdk_toolchain_type")
