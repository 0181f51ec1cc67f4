"""Reads as much of a Bazel command line as bazelw has to understand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

_WITH_TARGETS = frozenset(
    {
        "build",
        "test",
        "run",
        "coverage",
        "query",
        "cquery",
        "aquery",
        "fetch",
        "mobile-install",
        "print_action",
    }
)
_WITHOUT_TARGETS = frozenset(
    (
        "analyze-profile canonicalize-flags clean config dump help info license mod shutdown"
        " sync vendor version"
    ).split()
)

# Startup options whose value may be the next word.
_STARTUP_WITH_VALUE = frozenset(
    (
        "--bazelrc --connect_timeout_secs --failure_detail_out --host_jvm_args --install_base"
        " --local_startup_timeout_secs --max_idle_secs --output_base --output_user_root"
        " --server_javabase"
    ).split()
)

# Targets that need only the build environment, by pattern or by the package a pattern starts with.
_BUILD_ONLY_TARGETS = frozenset({"//:wheel", "//:wheel_inputs", "//:sdist"})
_BUILD_ONLY_PACKAGES = ("//native/", "//pypto/", "//store/", "//toolchains/")


@dataclass(frozen=True, slots=True)
class Command:
    """A Bazel command line. ``name`` is empty when there is no command."""

    startup: tuple[str, ...]
    name: str
    arguments: tuple[str, ...]

    @property
    def has_targets(self) -> bool:
        """Whether the command is about targets, so that Bazel shows progress on them."""
        return self.name in _WITH_TARGETS

    @property
    def environments(self) -> tuple[str, ...]:
        """The environments that have to be there before Bazel runs this."""
        if not self.has_targets:
            return ()
        compiles = self.name in ("build", "run")
        if compiles and self.targets and all(map(_needs_only_build, self.targets)):
            return ("build",)
        return ("build", "test")

    @property
    def configs(self) -> tuple[str, ...]:
        """The names that ``--config`` options give, in their order."""
        words = self.arguments
        if self.name == "run" and "--" in words:
            words = words[: words.index("--")]
        joined = [word.partition("=")[2] for word in words if word.startswith("--config=")]
        apart = [value for word, value in pairwise(words) if word == "--config"]
        return (*joined, *apart)

    def takes_in(self, package: str) -> bool:
        """Whether a pattern, alone or within a query, may name a target of ``package``.

        ``package`` is written without slashes in front; packages below it count as it.
        """
        parents = [package[: match.start()] for match in re.finditer("/", package)]
        above = "|".join(re.escape(f"{parent}/...") for parent in parents) or "(?!)"
        named = rf"(?:^|[^\w./-])(?://)?(?:\.\.\.|{above}|{re.escape(package)}(?![\w.-]))"
        left_out = rf"-(?://)?(?:{above}|{re.escape(package)}(?:/\.\.\.)?)$"
        if not self.has_targets or any(re.match(left_out, word) for word in self.arguments):
            return False
        return any(re.search(named, word) for word in self.arguments)

    @property
    def targets(self) -> tuple[str, ...]:
        """The target patterns, those behind a lone ``--`` left out for ``run``."""
        words = list(self.arguments)
        if "--" in words:
            cut = words.index("--")
            words = words[:cut] + ([] if self.name == "run" else words[cut + 1 :])
        patterns = [word for word in words if not word.startswith("--")]
        return tuple(patterns[:1] if self.name == "run" else patterns)

    @property
    def makes_outputs(self) -> bool:
        """Whether the native core may have been built by this."""
        return self.name in ("build", "test", "run")


def parse_command(words: Sequence[str]) -> Command:
    """Split ``words`` into startup options, command and arguments."""
    position = 0
    while position < len(words):
        word = words[position]
        if word in _WITH_TARGETS or word in _WITHOUT_TARGETS:
            return Command(tuple(words[:position]), word, tuple(words[position + 1 :]))
        position += 2 if word in _STARTUP_WITH_VALUE else 1
    return Command(tuple(words), "", ())


def _needs_only_build(pattern: str) -> bool:
    label = pattern.removeprefix("@").removeprefix("@")
    if label.startswith("-") or label.endswith("_test"):
        return False
    return label in _BUILD_ONLY_TARGETS or label.startswith(_BUILD_ONLY_PACKAGES)
