"""How files of a store are called; whatever is called otherwise is somebody else's."""

from __future__ import annotations

import re

# The digest, and ".x" where the content is executable.
BLOB = re.compile(r"([0-9a-f]{64})(\.x)?")
# Evidence by its component, a probe's record by what was probed.
RECORD = re.compile(r"([0-9a-f]{64})\.json")
LOCK = re.compile(r"(?:[0-9a-f]{64}|store)\.lock")
