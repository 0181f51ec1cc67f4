"""Sizes, lengths of time and moments as people write them."""

from __future__ import annotations

import argparse
import re
from datetime import UTC, datetime

_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_TIME = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)\s*([smhdw])", re.IGNORECASE)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
# Years of four digits, and a day within them: the moment can be told in every zone.
_FIRST = datetime(1000, 1, 2, tzinfo=UTC)
_LAST = datetime(9999, 12, 30, tzinfo=UTC)


def size(text: str) -> int:
    """Bytes from a number with K, M, G or T (powers of 1024); for argparse."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no size; write 500M or 10G, for example")
    return int(float(found[1]) * 1024 ** _POWERS[found[2].upper()])


def duration(text: str) -> float:
    """Seconds from a number with s, m, h, d or w; for argparse."""
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no length of time; write 12h or 30d, for example"
        )
    return float(found[1]) * _SECONDS[found[2].lower()]


def moment(seconds: float) -> datetime:
    """The time so many seconds after the epoch.

    File systems keep times that no calendar has, and anybody may set them: the nearest then.
    """
    return datetime.fromtimestamp(min(max(seconds, _FIRST.timestamp()), _LAST.timestamp()), tz=UTC)
