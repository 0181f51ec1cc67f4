"""Starts a program with the kernel cache %{label}. Generated."""

import os
import sys

import %{interface}

%{interface}.use()
# The program takes this process over, so that nothing in it differs from one started directly.
before = sys.orig_argv[: -len(sys.argv)]
main = os.path.join(os.path.dirname(os.path.abspath(__file__)), "%{main}")
os.execv(sys.executable, [*before, os.path.normpath(main), *sys.argv[1:]])
