"""Coverage-guided fuzzing of the manifest's readers: python tests/property/fuzz_manifest.py

Needs atheris (`pip install atheris`), which nothing else does. Begins from the corpus of nasty
manifests and the two sound ones; arguments go to libFuzzer, for example -max_total_time=60. What
makes it stop belongs into the corpus, which the tests run.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["pypto_store", "json"]):
    from manifest_slot import ManifestSlot
    from pypto_store import State

CORPUS = Path(__file__).parent / "manifest_corpus"


def main() -> None:
    """Fuzz until libFuzzer stops."""
    with tempfile.TemporaryDirectory() as base:
        slot = ManifestSlot(Path(base))
        seeds = Path(base, "seeds")
        shutil.copytree(CORPUS, seeds)
        for state in State:
            (seeds / f"{state.value}.json").write_bytes(slot.sound[state])

        def judge(data: bytes) -> None:
            for state in State:
                slot.judge(data, state)

        atheris.Setup([*sys.argv, str(seeds)], judge)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
