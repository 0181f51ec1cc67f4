"""The functions that say how tasks are scheduled: blocks, ids, explicit order."""

from __future__ import annotations

from pypto.language.functions import Value, kernel_only
from pypto.language.markers import SplitMode


@kernel_only
def spmd(
    blocks: Value = None,
    *,
    sync_start: bool = False,
    name_hint: str = "",
    deps: Value = None,
    optimizations: Value = None,
    core_num: Value = None,
) -> Value:
    """``with pl.spmd(n):`` or ``for i in pl.spmd(n):`` runs its block ``n`` times on the cores.

    The blocks run in any order and at the same time, and are one task. Each knows its index, the
    loop's variable or ``pl.tile.get_block_idx()``. ``n`` is an int or a run-time scalar;
    ``core_num`` is another name for it. With ``with``, the block may also be one call of an
    incore function, which then runs ``n`` times.
    """


@kernel_only
def cluster(*, name_hint: str = "") -> Value:
    """``with pl.cluster():`` is a block for one matrix core and its two vector cores.

    Around calls of incore functions, ``pl.at`` and ``pl.spmd`` it changes nothing.
    """


@kernel_only
def manual_scope() -> Value:
    """``with pl.manual_scope():`` leaves the order of the tasks inside to their ``deps``.

    The tensors that they share do not order them among each other.
    """


@kernel_only
def submit(
    kernel: Value,
    *args: Value,
    deps: Value = None,
    no_dep_args: Value = None,
    dumps: Value = None,
    **kwargs: Value,
) -> Value:
    """Calls an incore function and gives its results, if it has any, and then its task id."""


@kernel_only
def spmd_submit(
    kernel: Value,
    *args: Value,
    core_num: Value,
    sync_start: bool = False,
    deps: Value = None,
    no_dep_args: Value = None,
    dumps: Value = None,
    **kwargs: Value,
) -> Value:
    """``pl.submit`` in ``core_num`` blocks."""


@kernel_only
def no_dep(tensor: Value) -> Value:
    """An argument of an incore function whose memory orders the task against no other."""


@kernel_only
def dump_tag(tensor: Value) -> Value:
    """The tensor, which later tasks that use it show where arguments are dumped."""


@kernel_only
def split(mode: SplitMode) -> Value:
    """In ``optimizations=[...]``: how vector work is divided between two vector cores."""


@kernel_only
def cross_core_slot(slot_num: int) -> Value:
    """In ``optimizations=[...]``: how many slots the cores of a cluster exchange tiles in."""


@kernel_only
def get_block_idx() -> Value:
    """Which block of its task this is, from 0. On a core only."""


@kernel_only
def get_block_num() -> Value:
    """How many blocks its task has; 1 outside ``pl.spmd``. On a core only."""
