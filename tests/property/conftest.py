"""One profile for all property tests: bounded, reproducible, without a database on disk."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "bounded",
    max_examples=150,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("bounded")
