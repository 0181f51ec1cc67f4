"""Errors of the compile driver."""

from __future__ import annotations


class AssemblyFailed(RuntimeError):
    """The assembler rejected text that this compiler wrote: a defect here, not of the kernel.

    ``kernel`` names the function, ``pto`` is the rejected text and ``report`` what the assembler
    said of it.
    """

    def __init__(self, kernel: str, pto: str, report: str) -> None:
        super().__init__(
            f"internal error: the assembler rejected the generated text of kernel {kernel}. "
            "This is a defect of pypto, not of the kernel; please report it with what follows.\n"
            f"{report}\n--- {kernel}.pto ---\n{pto}"
        )
        self.kernel = kernel
        self.pto = pto
        self.report = report
