#!/bin/sh
# Runs zig as the tool that this file is called as (c++, ar), for one action.
#
# What zig compiles its C and C++ runtimes to lies beside the compiler that bazelw unpacked, for all
# actions. What it would keep of an action's own sources goes with the action, so that what Bazel
# runs again is compiled again.
set -eu
here=${0%/*}
program=$(readlink -f "$here/zig")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
ZIG_LIB_DIR=$here/lib ZIG_GLOBAL_CACHE_DIR=${program%/*/*}/cache ZIG_LOCAL_CACHE_DIR=$scratch \
    "$here/zig" "${0##*/}" "$@"
