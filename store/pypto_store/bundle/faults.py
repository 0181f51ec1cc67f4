"""Why a bundle cannot be written or read."""

from __future__ import annotations


class BundleError(Exception):
    """A bundle that is not what it must be; the text says what is wrong with it."""


class CodecMissing(Exception):
    """The compression library is not installed."""

    def __init__(self) -> None:
        super().__init__("bundles need the package zstandard; pip install 'zstandard>=0.22'")
