"""Macros for C++ targets."""

load("@rules_cc//cc:defs.bzl", _cc_test = "cc_test")

# -Werror is for our own code and our own tests; headers of others come through `includes`.
# Compilers are told where they are by relative paths, so outputs hold no directory but the one that
# GCC writes down by itself.
COPTS = ["-Werror"] + select({
    "@rules_cc//cc/compiler:gcc": ["-fno-working-directory"],
    "//conditions:default": [],
})

def cc_test(name, size = "small", copts = [], **kwargs):
    """A C++ test, linked statically against the libraries under test."""
    _cc_test(
        name = name,
        size = size,
        copts = COPTS + copts,
        linkstatic = True,
        **kwargs
    )

def cc_suite(srcs, support = [], sizes = {}, **kwargs):
    """One cc_test for each file, named as the file.

    Args:
      srcs: files, usually glob(["*_test.cc"]).
      support: headers of the folder that are no tests.
      sizes: from a test's name to its size, where "small" is not enough.
      **kwargs: passed to every cc_test.
    """
    for source in srcs:
        name = source.rpartition("/")[2].rpartition(".")[0]
        cc_test(
            name = name,
            srcs = [source] + support,
            size = sizes.get(name, "small"),
            **kwargs
        )
