"""The tests of this folder share modules that are no tests."""

from __future__ import annotations

import logging
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))


@pytest.fixture
def setting(tmp_path):
    from tier_settings import LONG, Setting

    made = Setting(tmp_path)
    yield made
    for tier in made.tiers:
        assert tier.flush(LONG)
        tier.close()


@pytest.fixture
def told(caplog):
    """What was logged, as texts."""
    caplog.set_level(logging.INFO)
    return lambda: [record.getMessage() for record in caplog.records]
