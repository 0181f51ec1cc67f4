"""The programs of the servers that tests here start.

bazelw makes them; with plain pytest, PYPTO_TEST_CACHE_SERVERS names the servers.json of its cache
directory.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

# The tests of this folder share modules that are no tests.
sys.path.insert(0, os.path.dirname(__file__))


@pytest.fixture(scope="session")
def programs() -> dict[str, Path]:
    """Server programs by name: casd and nginx."""
    listing = os.environ.get("PYPTO_TEST_CACHE_SERVERS")
    if not listing:
        pytest.skip("PYPTO_TEST_CACHE_SERVERS names no servers.json; bazelw sets it")
    text = Path(listing).read_text(encoding="utf-8")
    return {name: Path(path) for name, path in json.loads(text).items()}
