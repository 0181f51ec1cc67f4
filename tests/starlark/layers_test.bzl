"""Tests of the layer order."""

load("@bazel_skylib//lib:partial.bzl", "partial")
load("@bazel_skylib//lib:unittest.bzl", "asserts", "unittest")
load("//build_tools/python:layers.bzl", "LAYERS", "above", "below")

def _order_test_impl(ctx):
    env = unittest.begin(ctx)
    asserts.equals(env, [], below("//store/pypto_store"))
    asserts.equals(env, [], above("//pypto/pypto/tools"))
    asserts.equals(
        env,
        ["//store/pypto_store", "//toolchains/pypto_toolchains", "//pypto/pypto/backend"],
        below("//pypto/pypto/ir"),
    )
    for package in LAYERS:
        asserts.equals(env, LAYERS, below(package) + [package] + above(package))
    return unittest.end(env)

_order_test = unittest.make(_order_test_impl)

def _unknown_test_impl(ctx):
    env = unittest.begin(ctx)
    failures = []
    below("//pypto/pypto/nowhere", fail = failures.append)
    asserts.equals(env, 1, len(failures))
    asserts.true(env, failures[0].startswith("//pypto/pypto/nowhere is no layer"))
    return unittest.end(env)

_unknown_test = unittest.make(_unknown_test_impl)

def layers_test_suite(name):
    """The tests of this file.

    Args:
      name: of the suite.
    """
    unittest.suite(
        name,
        partial.make(_order_test, size = "small"),
        partial.make(_unknown_test, size = "small"),
    )
