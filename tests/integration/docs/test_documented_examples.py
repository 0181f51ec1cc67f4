"""Every Python block of the pages runs, in the order of the page, in a process of its own.

A block of C++ whose opening fence names a file is that file, beside the script.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = next(
    parent for parent in Path(__file__).parents if (parent / "docs" / "adr" / "README.md").exists()
)
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    if "```python\n" in path.read_text(encoding="utf-8")
)


def _script(page: str) -> str:
    text = (ROOT / page).read_text(encoding="utf-8")
    return "\n\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))


def _files(page: str) -> dict[str, str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return dict(re.findall(r"^```cpp (\S+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))


def _run(script: Path, directory: Path) -> str:
    environment = {**os.environ, "HOME": str(directory)}
    result = subprocess.run(
        [sys.executable, str(script)],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-4000:]
    return result.stdout


@pytest.mark.parametrize("page", PAGES)
def test_the_page_runs(page: str, tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    script.write_text(_script(page), encoding="utf-8")
    for name, text in _files(page).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    _run(script, tmp_path)


def test_the_tutorial_keeps_its_promises(tmp_path: Path) -> None:
    script = tmp_path / "first_kernel.py"
    script.write_text(_script("docs/tutorials/first-kernel.md"), encoding="utf-8")
    first = _run(script, tmp_path)
    assert "first_kernel.py" in first, "the mistake is reported with its file"
    assert "did you mean" in first.lower(), "and with what was probably meant"
    assert "ready_hits=0" in first
    assert "generation_builds=2, binary_builds=2" in first
    second = _run(script, tmp_path)
    assert "ready_hits=1" in second
    assert "generation_builds=1, binary_builds=1" in second, "the call before the cache was on"
