"""What a store's outcome counts as is decided by its type; its text is for people."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pypto.jit.persistence import Persistent
from pypto.jit.statistics import CacheStats, Statistics
from pypto_store import Hit, Invalid, Miss, StorageError
from pypto_store.outcomes import Failure

REASONS = ["", "the entry is invalid", "cannot be read: I/O error", "nothing there", "locked"]


def _persistent() -> Persistent:
    unused: Any = None
    recipe: Any = SimpleNamespace(name="kernel")
    return Persistent(
        store=unused,
        key=unused,
        recipe=recipe,
        parent=Path("unused"),
        meter=unused,
        statistics=Statistics(),
        recheck=unused,
        patched=unused,
        explain=unused,
        private=unused,
    )


def _counts(snapshot: CacheStats) -> tuple[int, int, int]:
    return snapshot.invalid_entries, snapshot.storage_errors, snapshot.bypasses


@pytest.mark.conforms("cache.104")
@pytest.mark.parametrize("reason", REASONS)
def test_lookups_are_counted_by_their_type(reason: str) -> None:
    entry: Any = None
    for outcome, expected in (
        (Invalid("/slot", reason), (1, 0, 0)),
        (StorageError("/slot", reason), (0, 1, 0)),
        (Miss(reason), (0, 0, 0)),
        (Miss(reason, (Invalid("/a", reason), Invalid("/b", reason))), (2, 0, 0)),
        (Hit(entry, (Invalid("/a", reason),)), (1, 0, 0)),
    ):
        persistent = _persistent()
        persistent._count(outcome)
        assert _counts(persistent.statistics.snapshot()) == expected


@pytest.mark.conforms("cache.104")
@pytest.mark.parametrize("reason", REASONS)
def test_private_results_are_counted_by_what_failed(reason: str) -> None:
    for failure, expected in (
        (Failure.STORAGE, (0, 1, 0)),
        (Failure.LOCK, (0, 1, 0)),
        (Failure.PUBLICATION, (0, 0, 1)),
        (Failure.INVALID, (0, 0, 0)),
        (None, (0, 0, 0)),
    ):
        persistent = _persistent()
        persistent._count_failure(failure, reason)
        assert _counts(persistent.statistics.snapshot()) == expected


@pytest.mark.conforms("cache.104")
def test_a_slot_that_is_met_twice_is_one_invalid_entry() -> None:
    persistent = _persistent()
    for slot in ("/one", "/two", "/one"):
        persistent._count(Invalid(slot, "damaged"))
    assert persistent.statistics.snapshot().invalid_entries == 2
