"""Attention over blocks of keys, every step a task."""

from __future__ import annotations

import torch
from examples.flash_attention import (
    HEAD,
    QUERIES,
    attention,
    flash_attention,
    inputs,
)


def test_attention_in_tasks(launch):
    arguments, out = inputs(), torch.empty(QUERIES, HEAD)
    launch(flash_attention, *arguments, out)
    torch.testing.assert_close(out, attention(*arguments), rtol=1e-2, atol=5e-3)
