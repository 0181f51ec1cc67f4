"""Run by an environment's own interpreter: prints what it is and what is installed, as JSON.

The result is an input of every action that uses the environment, so it holds what could change a
result and nothing of the time or the order of installation. Lines of RECORD that name scripts are
left out: their content starts with the environment's own path.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import re
import sys
import sysconfig


def _record_digest(text: str) -> str:
    lines = [line for line in text.splitlines() if not re.match(r"(\.\./)+(bin|share)/", line)]
    kept = [
        line
        for line in lines
        if "/INSTALLER," not in line and "/REQUESTED," not in line and "__pycache__" not in line
    ]
    return hashlib.sha256("\n".join(sorted(kept)).encode()).hexdigest()


def _distributions() -> list[list[str]]:
    found = {}
    for distribution in importlib.metadata.distributions():
        name = re.sub(r"[-_.]+", "-", distribution.metadata["Name"]).lower()
        found[name] = [
            name,
            distribution.version,
            _record_digest(distribution.read_text("RECORD") or ""),
        ]
    return [found[name] for name in sorted(found)]


def main() -> None:
    """Write the identity to standard output."""
    distributions = _distributions()
    identity = {
        "version": sys.version.split()[0],
        "build": sys.version,
        "soabi": sysconfig.get_config_var("SOABI"),
        "python_tag": f"cp{sys.version_info.major}{sys.version_info.minor}",
        "distributions": distributions,
        # Paths: read by the repository rule, kept out of what actions see.
        "paths": {
            "python": sys.executable,
            "include": sysconfig.get_path("include"),
            "purelib": sysconfig.get_path("purelib"),
        },
    }
    json.dump(identity, sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")


main()
