"""Build directories as a compilation leaves them, made by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from pypto.compiler.memory_record import (
    FILE_NAME,
    FunctionMemory,
    MemoryRecord,
    Place,
    RecordedStatement,
    RecordedTile,
)

Told = tuple[int, str, str]


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Callable[[Callable[..., int], list[str]], Told]:
    """Runs a command: its status, standard output and standard error."""

    def run(main: Callable[..., int], arguments: Sequence[object]) -> Told:
        status = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return status, out, err

    return run


@pytest.fixture
def record() -> MemoryRecord:
    """Two kernels: one of three tiles in two spaces, the other of one with a name that hurts."""
    place = Place("m:kernel", 4)
    tiles = (
        RecordedTile("left", "Mat", (64, 64), "fp32", 0, 16384, 1, 3, place),
        RecordedTile("right", "Mat", (64, 32), "fp32", 16384, 8192, 2, 3, place),
        RecordedTile("sum", "Acc", (64, 32), "fp32", 0, 8192, 3, 4, Place("m:helper", 2)),
    )
    statements = tuple(
        RecordedStatement(at, 0, text, place)
        for at, text in enumerate(("left = load", "right = load", "sum = matmul", "store"), 1)
    )
    hostile = RecordedTile("<b>[red]x", "Vec", (8, 8), "int8", 64, 64, 1, 1, place)
    return MemoryRecord(
        program="kernel",
        arch="a2a3",
        capacity={"Vec": 196608, "Mat": 524288, "Acc": 131072},
        functions=(
            FunctionMemory("product", "m:kernel", 4, statements, tiles),
            FunctionMemory("rows", "m:kernel", 1, statements[:1], (hostile,)),
        ),
        sources={"m:kernel": ("/home/me/m.py", 10)},
    )


@pytest.fixture
def build(tmp_path: Path, record: MemoryRecord) -> Path:
    """A build directory with three dumped passes, their profile and the memory map."""
    directory = tmp_path / "build"
    (directory / FILE_NAME).parent.mkdir(parents=True)
    (directory / FILE_NAME).write_text(record.to_json())
    dumps = {
        "00_frontend.py": "# pypto program: k\n\n\n# orchestration\ndef k(x):\n    return x\n",
        "01_after_split.py": "# pypto program: k\n\n\n# incore\ndef part(x):\n    pass\n\n\n"
        "# orchestration\ndef k(x):\n    part(x)\n    return x\n",
        "10_after_place.py": "# pypto program: k\n\n\n# incore\ndef part(x):\n    <pass>\n",
    }
    for name, text in dumps.items():
        (directory / "passes_dump" / name).write_text(text)
    stages = [{"pass": "split", "seconds": 0.25}, {"pass": "other", "seconds": 1}]
    (directory / "report").mkdir()
    (directory / "report" / "pipeline_profile.json").write_text(
        json.dumps({"schema": 1, "stages": stages})
    )
    return directory
