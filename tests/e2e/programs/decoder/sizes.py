"""The sizes that all parts share."""

from __future__ import annotations

BATCH = 16
HIDDEN = 128
HEADS = 4
KV_HEADS = 2
HEAD = 32
INTER = 256
MAX_TOKENS = 64
EPS = 1e-6

GROUP = HEADS // KV_HEADS
KV_HIDDEN = KV_HEADS * HEAD
BLOCK = 64
