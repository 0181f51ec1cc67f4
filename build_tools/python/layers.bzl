"""The order of the Python layers, as Bazel visibilities.

A layer may use every layer before it. The same order is in ARCHITECTURE.md, and tests/architecture
holds the imports themselves to it; the visibilities keep a target from even seeing a layer above.
"""

load("//build_tools/python:defs.bzl", "py_library")

visibility(["//..."])

LAYERS = [
    "//store/pypto_store",
    "//toolchains/pypto_toolchains",
    "//pypto/pypto/backend",
    "//pypto/pypto/ir",
    "//pypto/pypto/language",
    "//pypto/pypto/codegen",
    "//pypto/pypto/runtime",
    "//pypto/pypto/compiler",
    "//pypto/pypto/jit",
    "//pypto/pypto/tools",
]

# Who may see every layer: the product's facade, the tests and the examples.
_OVER_ALL = [
    "//:__pkg__",
    "//docs:__subpackages__",
    "//pypto/pypto:__pkg__",
    "//tests:__subpackages__",
]

def below(package, fail = fail):
    """The layers that `package` may use, lowest first."""
    return LAYERS[:_position(package, fail)]

def above(package, fail = fail):
    """The layers that may use `package`, lowest first."""
    return LAYERS[_position(package, fail) + 1:]

def layer(data = []):
    """The library of the layer that this BUILD file is of: its sources, its data, what is below it.

    Args:
      data: files beside sources that belong to the package.
    """
    package = "//" + native.package_name()
    py_library(
        name = package.rpartition("/")[2],
        srcs = native.glob(["**/*.py"]),
        data = data + native.glob(["**/*.pyi", "**/py.typed"], allow_empty = True),
        imports = ["/".join([".."] * _depth(package))],
        visibility = _OVER_ALL + [upper + ":__subpackages__" for upper in above(package)],
        deps = below(package),
    )

def _position(package, fail):
    if package not in LAYERS:
        fail("%s is no layer; those are %s" % (package, ", ".join(LAYERS)))
        return 0  # reached only with a `fail` that a test passed in
    return LAYERS.index(package)

def _depth(package):
    """How many directories the import root is above `package`: one for each part but the root's."""
    return package.count("/") - 2
