"""The options that commands which run a program share, and what they come to."""

from __future__ import annotations

import argparse

from pypto.backend import PLATFORMS, target_of
from pypto.runtime.host import configure_log
from pypto.runtime.log import LEVELS
from pypto.runtime.run_config import RunConfig


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Where to run, what to record and what to log."""
    parser.add_argument("--platform", choices=sorted(PLATFORMS), help="default: the directory's")
    parser.add_argument("--device-id", type=int, default=0, metavar="N", help="the chip (0)")
    record = parser.add_argument_group("records of the run, in dfx_outputs/ of the directory")
    record.add_argument("--swimlane", action="store_true", help="when each task ran, and where")
    record.add_argument("--pmu", type=int, default=0, metavar="LEVEL", help="counters of the cores")
    record.add_argument(
        "--dump-args", type=int, default=0, metavar="LEVEL", help="arguments of the tasks"
    )
    record.add_argument("--dep-gen", action="store_true", help="the graph of dependencies")
    record.add_argument("--scope-stats", action="store_true", help="figures of the run's scopes")
    parser.add_argument("--log-level", choices=list(LEVELS), help="of the runtime's log")
    parser.add_argument(
        "--log-sync-pypto", action="store_true", help="let the compiler log from that level too"
    )


def run_config_of(options: argparse.Namespace, platform: str) -> RunConfig:
    """The configuration that the options ask for; ``platform`` is the directory's own."""
    target = target_of(options.platform or platform)
    return RunConfig(
        arch=target.backend_type,
        execution_mode=target.mode,
        device_id=options.device_id,
        enable_chip_swimlane=options.swimlane,
        enable_pmu=options.pmu,
        enable_dump_args=options.dump_args,
        enable_dep_gen=options.dep_gen,
        enable_scope_stats=options.scope_stats,
    )


def set_up_log(options: argparse.Namespace) -> None:
    """Log from the chosen level on."""
    if options.log_level is not None:
        configure_log(options.log_level, sync_pypto=options.log_sync_pypto)
