"""Choices that a caller of the compiler makes, as enumerations."""

from __future__ import annotations

import enum


class OptimizationStrategy(enum.Enum):
    """Which list of passes a program goes through."""

    Default = "default"


class PassDumpLevel(enum.Enum):
    """What is written of the program after each pass."""

    NONE = "none"
    CONCISE = "concise"
    EXPLICIT = "explicit"


class MemoryPlanner(enum.Enum):
    """Who places tiles in on-chip memory."""

    PYPTO = "pypto"
    DSA_RP = "dsa_rp"
    PTOAS = "ptoas"


class DiagnosticPhase(enum.Enum):
    """When diagnostics of a compilation are collected."""

    PRE_PIPELINE = "pre_pipeline"
    POST_PASS = "post_pass"  # noqa: S105 - no password
    POST_PIPELINE = "post_pipeline"


class VerificationLevel(enum.Enum):
    """How often the compiler checks the representation against its own rules.

    ``NONE`` leaves the checks out: a malformed program then fails later, in other words, or is
    compiled to something else than it says. ``BASIC`` checks before the first pass and after the
    last, ``EVERY_PASS`` after each.
    """

    NONE = "none"
    BASIC = "basic"
    EVERY_PASS = "every_pass"  # noqa: S105 - no password
