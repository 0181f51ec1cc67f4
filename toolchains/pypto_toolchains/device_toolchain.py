"""The ``device_toolchain`` component: all that makes binaries for the platform of a request.

That is the compilers of its kernels and of its orchestration. Where kernels are made by the device
toolkit, the toolkit takes the place of their compiler.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from pypto_toolchains.cann import cann_facts
from pypto_toolchains.evidence import Evidence, Unavailable
from pypto_toolchains.gcc import Gcc, identify_gcc
from pypto_toolchains.gcc_probe import COMPONENT
from pypto_toolchains.identity import IdentityRequest
from pypto_toolchains.records import ProbeRecord


@dataclass(frozen=True, slots=True)
class DeviceCapture:
    """The outcome, and what probes said if any had to run: for `ProbeRecords.save`.

    `compilers` are those that were identified, in the order of the target's.
    """

    outcome: Evidence | Unavailable
    records: tuple[ProbeRecord, ...] = ()
    compilers: tuple[Gcc, ...] = ()


def capture_device_toolchain(request: IdentityRequest) -> DeviceCapture:
    """What the request's platform is built with, or the first of it that is not known."""
    target, world = request.target, request.surroundings
    facts: tuple[tuple[str, str], ...] = ()
    records: list[ProbeRecord] = []
    compilers: list[Gcc] = []
    if target.device:
        toolkit = cann_facts(world.environ, os.uname().machine, request.disk)
        if isinstance(toolkit, Unavailable):
            return DeviceCapture(toolkit)
        facts += toolkit
    for compiler in target.compilers:
        gcc = identify_gcc(
            compiler,
            target.options_of(compiler),
            world.environ,
            world.project_root,
            request.records,
            request.disk,
        )
        if isinstance(gcc, Unavailable):
            return DeviceCapture(gcc)
        # A second compiler is named; that of nearly every target needs no name.
        prefix = f"{compiler}." if len(target.compilers) > 1 else ""
        facts += tuple((prefix + name, value) for name, value in gcc.facts)
        records += () if gcc.record is None else (gcc.record,)
        compilers.append(gcc)
    return DeviceCapture(Evidence.of(COMPONENT, facts), tuple(records), tuple(compilers))
