"""The passes, in order."""

from __future__ import annotations

from collections.abc import Callable

from pypto.ir.errors import VerifyError
from pypto.ir.nodes import Program
from pypto.ir.options import VerificationLevel
from pypto.ir.pass_context import active_instruments
from pypto.ir.passes.copy_carried import copy_carried_tiles
from pypto.ir.passes.directions import upgrade_directions
from pypto.ir.passes.lower_tensors import lower_tensor_operations
from pypto.ir.passes.outline_scopes import outline_scopes
from pypto.ir.passes.place_operands import place_operands
from pypto.ir.passes.plan_memory import plan_memory
from pypto.ir.passes.simplify import simplify
from pypto.ir.passes.splice_opaque import splice_opaque_functions
from pypto.ir.passes.take_strides import take_strides
from pypto.ir.passes.target import TargetLimits
from pypto.ir.passes.tile_tensors import tile_tensor_operations
from pypto.ir.verifier import Form, verify

Pass = Callable[[Program, TargetLimits], Program]

PASSES: tuple[Pass, ...] = (
    splice_opaque_functions,
    tile_tensor_operations,
    lower_tensor_operations,
    outline_scopes,
    take_strides,
    upgrade_directions,
    simplify,
    place_operands,
    copy_carried_tiles,
    plan_memory,
)


# Sees the program before the first pass (index 0, "frontend") and after each.
PassObserver = Callable[[int, str, Program], None]


def run_passes(
    program: Program,
    target: TargetLimits,
    observe: PassObserver | None = None,
    verification: VerificationLevel = VerificationLevel.BASIC,
) -> Program:
    """The lowered form of a program in frontend form.

    Raises CompileError, at the user's span, for a program that cannot be compiled, and
    VerifyError, which is one, where the program or a pass breaks an invariant.
    """
    checked = verification is not VerificationLevel.NONE
    form, instruments = Form.FRONTEND, active_instruments()
    if checked:
        verify(program, form)
    if observe is not None:
        observe(0, "frontend", program)
    for index, apply in enumerate(PASSES, start=1):
        for instrument in instruments:
            instrument.before_pass(apply.__name__, program)
        program = apply(program, target)
        # The passes before it and it itself, together, give the lowered form.
        form = Form.LOWERED if apply is outline_scopes else form
        if verification is VerificationLevel.EVERY_PASS:
            _verify_after(apply.__name__, program, form)
        for instrument in instruments:
            instrument.after_pass(apply.__name__, program)
        if observe is not None:
            observe(index, apply.__name__, program)
    if checked:
        verify(program, Form.LOWERED)
    return program


def _verify_after(name: str, program: Program, form: Form) -> None:
    try:
        verify(program, form)
    except VerifyError as error:
        raise VerifyError(f"after the pass {name}: {error.message}", error.span) from error
