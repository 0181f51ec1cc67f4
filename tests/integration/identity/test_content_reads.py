"""The compilers' part of an identity by content: every byte that a compile may read or run."""

from __future__ import annotations

import shutil

import pytest
from mutations import Mutation, Outcome, check
from workshop import DEVICE, Edit, Workshop, append, library, new

# What the `build` policy trusts, because nothing that is published tells it: the contrast.
UNSEEN_BY_BUILD: dict[str, Edit] = {
    "a header is edited": lambda s: append(s.toolchain.include / "stdint.h"),
    "a header of the compiler is edited": lambda s: append(s.toolchain.own_include / "stddef.h"),
    "a header appears": lambda s: new(s.toolchain.include / "more.h"),
    "a header appears before another": lambda s: new(
        s.toolchain.top / "usr/local/include/stdint.h"
    ),
    "a directory of headers appears": lambda s: new(s.toolchain.install / "include-fixed/limits.h"),
    "a header is gone": lambda s: (s.toolchain.include / "stdc-predef.h").unlink(),
    "a startup file is edited": lambda s: append(s.toolchain.libraries / "crti.o"),
    "a startup file of the compiler is edited": lambda s: append(
        s.toolchain.install / "crtbeginS.o"
    ),
    "a startup file appears before another": lambda s: shutil.copy(
        s.toolchain.libraries / "crtn.o", s.toolchain.install
    ),
    "the driver is patched": lambda s: append(s.toolchain.driver),
    "a helper is patched": lambda s: append(s.toolchain.install / "collect2"),
    "the plugin is patched": lambda s: append(s.toolchain.install / "liblto_plugin.so"),
    "a library is patched": lambda s: append(s.library),
    "a library appears before another": lambda s: shutil.copy(library("libz.so.1"), s.loader),
    "a library for some processors appears": lambda s: shutil.copytree(
        s.loader, s.loader / "glibc-hwcaps" / "x86-64-v2"
    ),
    "a library is gone": lambda s: s.library.unlink(),
}


@pytest.mark.conforms("cache.98")
@pytest.mark.parametrize("name", UNSEEN_BY_BUILD)
def test_what_a_compile_reads(workshop: Workshop, name: str) -> None:
    edit = UNSEEN_BY_BUILD[name]
    before = workshop.house.known("build").digest
    check(
        workshop.house, Mutation(name, DEVICE, lambda _: edit(workshop), Outcome.CHANGES), "content"
    )
    assert workshop.house.known("build").digest == before
