"""Kernels that a build compiles, for programs that start with all of them ready.

| name | what |
|---|---|
| pypto_kernel_cache | compiles the kernels that a configuration names into a read-only cache root |
| pypto_binary | a py_binary that uses such a root, whoever starts it |
| pypto_test | a py_test that does |
| KernelCacheInfo | what pypto_kernel_cache says to other rules |

docs/how-to/ship-a-prewarmed-cache.md shows them at work; docs/adr/0026 says why they are as they are.
"""

load("//build_tools/kernel_cache/private:kernel_cache.bzl", _pypto_kernel_cache = "pypto_kernel_cache")
load("//build_tools/kernel_cache/private:program.bzl", _pypto_binary = "pypto_binary", _pypto_test = "pypto_test")
load("//build_tools/kernel_cache/private:providers.bzl", _KernelCacheInfo = "KernelCacheInfo")

KernelCacheInfo = _KernelCacheInfo
pypto_binary = _pypto_binary
pypto_kernel_cache = _pypto_kernel_cache
pypto_test = _pypto_test
