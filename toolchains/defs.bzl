"""Tools as toolchains: rules that declare them, and the identity of what was declared.

The files behind this one, in impl/, are private. Each rule returns a provider with the `label` that
declared the thing, and can be the `toolchain` of a `toolchain()` of the type of its name:

| rule | toolchain type |
|---|---|
| cxx_compiler | //toolchains:host_cxx_toolchain_type |
| kernel_compiler | //toolchains:kernel_compiler_toolchain_type |
| ptoas | //toolchains:ptoas_toolchain_type |
| pto_isa | //toolchains:pto_isa_toolchain_type |
| sdk | //toolchains:sdk_toolchain_type |
"""

load("//toolchains/impl:compilers.bzl", _cxx_compiler = "cxx_compiler", _kernel_compiler = "kernel_compiler", _tool_tree = "tool_tree")
load("//toolchains/impl:identity.bzl", _toolchain_identity = "toolchain_identity")
load("//toolchains/impl:installer.bzl", _toolchain_installer = "toolchain_installer")
load(
    "//toolchains/impl:providers.bzl",
    _CxxCompilerInfo = "CxxCompilerInfo",
    _KernelCompilerInfo = "KernelCompilerInfo",
    _PtoIsaInfo = "PtoIsaInfo",
    _PtoasInfo = "PtoasInfo",
    _SdkInfo = "SdkInfo",
    _ToolTreeInfo = "ToolTreeInfo",
    _ToolchainIdentityInfo = "ToolchainIdentityInfo",
)
load("//toolchains/impl:sdk.bzl", _pto_isa = "pto_isa", _ptoas = "ptoas", _sdk = "sdk")

tool_tree = _tool_tree
cxx_compiler = _cxx_compiler
kernel_compiler = _kernel_compiler
ptoas = _ptoas
pto_isa = _pto_isa
sdk = _sdk
toolchain_identity = _toolchain_identity
toolchain_installer = _toolchain_installer

ToolTreeInfo = _ToolTreeInfo
CxxCompilerInfo = _CxxCompilerInfo
KernelCompilerInfo = _KernelCompilerInfo
PtoasInfo = _PtoasInfo
PtoIsaInfo = _PtoIsaInfo
SdkInfo = _SdkInfo
ToolchainIdentityInfo = _ToolchainIdentityInfo
