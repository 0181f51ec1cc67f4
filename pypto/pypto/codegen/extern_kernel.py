"""The C++ file around the source of an extern kernel."""

from __future__ import annotations

from pypto.codegen.kernel_wrapper import ENTRY_BEGINS
from pypto.ir.nodes import Span

_RENAMED = "pypto_extern_kernel_entry"


def extern_wrapper(source: str, declared_at: Span) -> str:
    """The text of `kernels/<core>/<symbol>.cpp`, which includes the user's file as `source`.

    The user's ``kernel_entry`` becomes a function of this file, and the exported one calls it
    where a fault of an instruction can end it. Faults are said to be where the kernel is declared.
    """
    unit = declared_at.unit.replace("\\", "\\\\").replace('"', '\\"')
    position = f'{{"{unit}", 0, {declared_at.line}, {declared_at.column}}}'
    lines = [
        '#include "pypto_rt/kernel_abi.h"',
        "",
        f"#define kernel_entry {_RENAMED}",
        f'#include "{source}"',
        "#undef kernel_entry",
        "",
        ENTRY_BEGINS,
        'extern "C" PYPTO_KERNEL_EXPORT void kernel_entry(__gm__ int64_t* args) {',
        f"  static constexpr pypto_rt::SourcePosition declared_at{position};",
        "  pypto_rt::guard_kernel(args, [&] {",
        "    pypto_rt::local_context(args)->core->position = &declared_at;",
        f"    {_RENAMED}(args);",
        "  });",
        "}",
    ]
    return "\n".join(lines) + "\n"
