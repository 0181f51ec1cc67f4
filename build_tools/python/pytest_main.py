"""Runs pytest on the files it is given, as Bazel's test protocol has it."""

import os
import sys
from pathlib import Path

import pytest


def main() -> int:
    """Run the tests; pytest's exit status."""
    scratch = os.environ["TEST_TMPDIR"]
    # Nothing a test writes may reach the user's directories or another test's.
    os.environ.update(HOME=scratch, XDG_CACHE_HOME=scratch, TMPDIR=scratch)
    # Bazel's test-setup.sh puts "." in front; what a search finds must not depend on the directory.
    entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
    os.environ["PATH"] = os.pathsep.join(entry for entry in entries if entry.startswith("/"))
    root = Path.cwd()
    arguments = [
        "-ra",
        "-p",
        "no:cacheprovider",
        f"--rootdir={root}",
        f"--config-file={root / 'pyproject.toml'}",
        f"--basetemp={scratch}/pytest",
    ]
    if report := os.environ.get("XML_OUTPUT_FILE"):
        arguments.append(f"--junitxml={report}")
    if chosen := os.environ.get("TESTBRIDGE_TEST_ONLY"):
        arguments.append(f"-k={chosen}")
    return int(pytest.main([*arguments, *_part(sys.argv[1:])]))


def _part(files: list[str]) -> list[str]:
    """Those of `files` that are this shard's."""
    if status := os.environ.get("TEST_SHARD_STATUS_FILE"):
        Path(status).touch()  # tells Bazel that shards are known of
    first = int(os.environ.get("TEST_SHARD_INDEX", "0"))
    return files[first :: int(os.environ.get("TEST_TOTAL_SHARDS", "1"))]


if __name__ == "__main__":
    sys.exit(main())
