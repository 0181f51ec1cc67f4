"""Which kernels a task consists of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dispatch:
    """The kernels of one task by number; at least one. A task's kernels run at the same time."""

    aic: int | None = None
    aiv0: int | None = None
    aiv1: int | None = None

    @classmethod
    def single(cls, core_type: str, func_id: int) -> Dispatch:
        """A task of one kernel."""
        return cls.of({core_type: func_id}, dual_aiv=False)

    @classmethod
    def of(cls, func_ids: Mapping[str, int], *, dual_aiv: bool) -> Dispatch:
        """A task of one kernel a core type; with `dual_aiv` two cores run the vector kernel."""
        aiv = func_ids.get("aiv")
        return cls(func_ids.get("aic"), aiv, aiv if dual_aiv else None)

    def submission(self, arguments: str) -> str:
        """The call that submits the task; `arguments` names its arguments."""
        slots = (("aic", self.aic), ("aiv0", self.aiv0), ("aiv1", self.aiv1))
        used = [(slot, number) for slot, number in slots if number is not None]
        if len(used) == 1:
            (slot, number) = used[0]
            return f"rt_submit_{slot[:3]}_task({number}, {arguments});"
        kernels = ", ".join(f".{slot} = {number}" for slot, number in used)
        return f"rt_submit_task(MixedKernels{{{kernels}}}, {arguments});"
