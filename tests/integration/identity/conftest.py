"""What the tests of identities share: a complete installation each may change."""

from __future__ import annotations

import dataclasses
import os
import sys
from pathlib import Path

import pytest

# The tests of this folder share modules that are no tests.
sys.path.insert(0, os.path.dirname(__file__))

from described_toolchains import write_toolchain
from mutations import House
from workshop import Workshop


@pytest.fixture
def house(tmp_path: Path) -> House:
    """An installation of its own."""
    return House(tmp_path)


@pytest.fixture
def described(house: House) -> House:
    """An installation with a hermetic toolchain of its own, which is named in the environment."""
    description = write_toolchain(house.top / "toolchain", house.sdk)
    house.environ["PYPTO_TOOLCHAIN"] = str(description)
    return house


@pytest.fixture
def workshop(house: House) -> Workshop:
    """A workshop, whose Python has a small library."""
    small = house.top / "library"
    small.mkdir()
    (small / "json.py").write_text("loads = None\n")
    house.interpreter = dataclasses.replace(house.interpreter, library=lambda: (str(small),))
    return Workshop(house)
