"""From the frontend form of a program to the form that code is generated from."""

from __future__ import annotations

from pypto.ir.passes.pipeline import PassObserver, run_passes
from pypto.ir.passes.target import TargetLimits, limits_of

__all__ = ["PassObserver", "TargetLimits", "limits_of", "run_passes"]
