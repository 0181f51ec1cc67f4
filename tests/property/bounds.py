"""How much the property tests try."""

from __future__ import annotations

import os

# One variable, as in the fault tests; 5 is the bounded run.
ROUNDS = int(os.environ.get("STORE_FAULT_ROUNDS", "5"))
