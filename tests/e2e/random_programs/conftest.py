"""Lets the tests of this folder share modules."""

from __future__ import annotations

import os
import sys

# The tests of this folder share modules that are no tests.
sys.path.insert(0, os.path.dirname(__file__))
