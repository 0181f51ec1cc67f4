"""Identifiers of generated text."""

from __future__ import annotations

import re

_OTHER = re.compile(r"[^A-Za-z0-9_]+")

# Words that C++ does not allow as the name of a function, and names of the kernel's own text.
_CPP_RESERVED = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t
    char32_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
    constinit continue decltype default delete do double dynamic_cast else enum explicit export
    extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public register reinterpret_cast requires return
    short signed sizeof static static_assert static_cast struct switch template this thread_local
    throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while
    xor xor_eq main kernel_entry half bfloat16_t pto pypto_rt ChipTensor
    """.split()
)


def identifier(name: str) -> str:
    """A name with every run of other characters replaced by an underscore."""
    text = _OTHER.sub("_", name) or "_"
    return f"_{text}" if text[0].isdigit() else text


def function_names(names: tuple[str, ...]) -> dict[str, str]:
    """A distinct C++ identifier for each function, its own name wherever that is one."""
    chosen: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        stem = identifier(name)
        if stem in _CPP_RESERVED:
            stem = f"{stem}_kernel"
        text, count = stem, 0
        while text in taken:
            count += 1
            text = f"{stem}_{count}"
        taken.add(text)
        chosen[name] = text
    return chosen


class Names:
    """Distinct names in one text, the first user of a name getting it as it is."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}

    def new(self, stem: str) -> str:
        """A name that starts with `stem` and was not given before."""
        text = stem
        while text in self._taken:
            number = self._next.get(stem, 0)
            self._next[stem] = number + 1
            text = f"{stem}_{number}"
        self._taken.add(text)
        return text
