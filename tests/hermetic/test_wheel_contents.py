"""What is in the wheel beside code, and what it asks for."""

from __future__ import annotations

import os
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def wheel():
    path = os.environ.get("PYPTO_TEST_WHEEL")
    if not path:
        pytest.skip("the wheel is built by Bazel: bazelw test //tests/hermetic/...")
    with zipfile.ZipFile(Path(path)) as archive:
        yield archive


def test_the_tools_have_their_pages(wheel):
    names = set(wheel.namelist())
    assets = "pypto_store/tools/report_assets"
    assert {f"{assets}/report.css", f"{assets}/report.js"} <= names
    pages = {f"{page}.{kind}" for page in ("memory_map", "ir_trace") for kind in ("css", "js")}
    assert {f"pypto/tools/assets/{name}" for name in (*pages, "ir_diff.js")} <= names


def test_an_installation_has_the_command(wheel):
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/entry_points.txt")]
    assert "pypto-ir-trace = pypto.tools.ir_trace:main" in wheel.read(name).decode()


def test_what_the_tools_draw_and_pack_with_is_asked_for(wheel):
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    wanted = message_from_bytes(wheel.read(name)).get_all("Requires-Dist")
    assert "rich>=13.7" in wanted
    assert "zstandard>=0.22; extra == 'bundles'" in wanted
    assert "pyelftools>=0.29; extra == 'content'" in wanted
    assert "cryptography>=42; extra == 'signing'" in wanted
