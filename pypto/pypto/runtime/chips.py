"""The simulated chips of this process.

A chip is like a device: programs that name the same one share it, and it lives as long as the
process. Its threads start with its first run, and again in a forked child.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from pypto.backend import ExecutionMode, target_of
from pypto.runtime.errors import ToolchainUnavailable
from pypto.runtime.options import RunOptions

if TYPE_CHECKING:
    from pypto._native import Chip

_lock = threading.Lock()
_chips: dict[str, Chip] = {}


def open_chip(options: RunOptions) -> Chip:
    """A chip of its own for the platform of ``options``; errors as for `require_simulated`."""
    require_simulated(options)
    from pypto._native import Chip

    return Chip(options.platform)


def require_simulated(options: RunOptions) -> None:
    """Refuse what the simulated chip cannot do.

    ToolchainUnavailable for a device, NotImplementedError for diagnostics.
    """
    target = target_of(options.platform)
    if target.mode is not ExecutionMode.SIM:
        raise ToolchainUnavailable(
            f"platform {options.platform!r} needs a device and its driver, which this version "
            f"does not drive; run on '{target.backend_type.arch}sim'"
        )
    if options.dfx.any_enabled():
        raise NotImplementedError(
            "the simulated chip records no diagnostics; leave enable_chip_swimlane, "
            "enable_dump_args, enable_pmu, enable_dep_gen and enable_scope_stats off"
        )


def shared_chip(options: RunOptions) -> Chip:
    """The process's chip for the platform of ``options``; errors as for `require_simulated`."""
    require_simulated(options)
    with _lock:
        chip = _chips.get(options.platform)
        if chip is None:
            chip = open_chip(options)
            _chips[options.platform] = chip
        return chip
