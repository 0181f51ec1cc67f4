"""What one request asks for: the arguments' types, and every option that reaches the payload."""

from __future__ import annotations

from dataclasses import dataclass

from pypto.backend import DEFAULT_RUNTIME
from pypto.ir.options import PassDumpLevel
from pypto.ir.pass_context import active_instruments
from pypto.jit.binding import Bound
from pypto.runtime.options import CompileOptions, refuse_distributed_config
from pypto_store.digest import Digest
from pypto_store.records import RecordBuilder

# Scalars are run-time values: the first version of this record had them as constants.
_SCALAR_SEMANTICS = 2


@dataclass(frozen=True, slots=True, eq=False)
class Specialization:
    """The bound arguments, the options, and one digest over both."""

    bound: Bound
    options: CompileOptions
    digest: Digest

    @classmethod
    def of(cls, bound: Bound, options: CompileOptions) -> Specialization:
        """The specialization; ValueError for distributed settings, which cannot be compiled.

        Options that select diagnostics or a place are no part of it: requests that have them are
        never looked up.
        """
        refuse_distributed_config(options.distributed_config)
        planner = options.memory_planner
        record = RecordBuilder("pypto.specialization/v1")
        record.sequence("parameters", bound.parameters)
        record.integer("scalar_semantics", _SCALAR_SEMANTICS)
        record.text("platform", options.platform)
        record.text("runtime", DEFAULT_RUNTIME.value)
        record.text("strategy", options.strategy.name)
        record.optional_text("memory_planner", None if planner is None else planner.name)
        record.boolean("auto_deps", options.analyze_auto_scopes_for_deps)
        return cls(bound, options, record.finish())


def forces_fresh_build(options: CompileOptions) -> bool:
    """Whether a request wants the build itself: its diagnostics, or its files in a place.

    Instruments that are active want to see every pass.
    """
    dumps = options.dump_passes
    return bool(
        active_instruments()
        or (dumps is not False and dumps is not PassDumpLevel.NONE)
        or options.dump_ptoas_passes
        or options.profiling
        or options.diagnostic_phase is not None
        or options.output_dir is not None
    )
