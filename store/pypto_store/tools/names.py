"""How files of a store are called; whatever is called otherwise is somebody else's."""

from __future__ import annotations

import re

# The digest, ".x" where the content is executable, ".2" for another inode of the same content.
BLOB = re.compile(r"([0-9a-f]{64})(\.x)?(?:\.2)?")
# Evidence by its component; what users of the store remember by what it is about.
RECORD = re.compile(r"([0-9a-f]{64})\.json")
LOCK = re.compile(r"(?:[0-9a-f]{64}|store)\.lock")

# Where users of the store remember what would cost them time to find out again. No entry needs it.
RECORD_DIRECTORIES = ("facts", "tools")
