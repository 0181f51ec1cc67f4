"""One profile for all property tests: bounded, reproducible, without a database on disk."""

from __future__ import annotations

import os
import sys

from hypothesis import HealthCheck, settings

# The tests of this folder share modules that are no tests.
sys.path.insert(0, os.path.dirname(__file__))

from bounds import ROUNDS

settings.register_profile(
    "bounded",
    max_examples=30 * ROUNDS,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("bounded")
