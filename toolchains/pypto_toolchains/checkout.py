"""A git checkout as evidence: the commit it is at, if its files are exactly that commit's.

Git says whether tracked files are as they were committed, and which files it tracks. What it leaves
out besides (ignored files, other repositories, pipes) is looked for here, in the directories that
compilers search.

What is not seen: ignored files in other directories, and what filters of ``.gitattributes`` turn
committed bytes into.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path

from pypto_toolchains.process import ToolError, run_tool
from pypto_toolchains.search import find_executable

_SECONDS = 60.0

# A user's settings may hide changes, or start programs.
_SETTINGS = (
    ("core.checkStat", "default"),
    ("core.excludesFile", os.devnull),
    ("core.fsmonitor", "false"),
    ("core.ignoreCase", "false"),
    ("core.symlinks", "true"),
    ("core.trustctime", "true"),
    ("core.untrackedCache", "false"),
    ("status.showUntrackedFiles", "all"),
)

_LINK = "120000"
_SUBMODULE = "160000"
_REPOSITORY = ".git"
_NUL = "\0"


class NoCleanCheckout(Exception):
    """A directory is not exactly one commit; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A directory that should be a clean checkout, or lie in one.

    `root` is absolute. `anchor` is a file of it that must be tracked, so that a directory which
    some other repository ignores is not taken for one. In `searched`, directories in which a
    compiler looks for files, even ignored files count. Both are relative to `root`.
    """

    root: str
    anchor: str
    searched: tuple[str, ...]

    def revision(self, environ: Mapping[str, str]) -> str:
        """The commit whose files these are, as git names it. Runs git; NoCleanCheckout."""
        tracked = _Tracked()
        head = self._collect("", environ, tracked)
        directories = [*self.searched, *self._linked_directories(tracked)]
        try:
            self._check_tracked(directories, tracked.files)
        except OSError as error:
            raise NoCleanCheckout(
                f"the checkout {self.root} cannot be read: {error}; correct its permissions"
            ) from error
        return head

    def _collect(self, inner: str, environ: Mapping[str, str], tracked: _Tracked) -> str:
        """Add what is tracked in the repository at `inner`, and in its submodules, each of which
        must be unchanged; the commit it is at."""
        directory = os.path.join(self.root, inner)
        git = _Git(directory, environ)
        head = self._head(git, inner)
        tracked.files.add(inner + _REPOSITORY)
        submodules = []
        # The index must tell all about the files.
        for entry in git.ask("ls-files", "-v", "-s", "-z", "--", ".").split(_NUL)[:-1]:
            told, path = entry.split("\t", 1)
            tag, mode, *_ = told.split(" ")
            if tag != "H":
                raise NoCleanCheckout(
                    f"git is told to overlook changes of {path} in {directory}; run git "
                    f"update-index --no-assume-unchanged --no-skip-worktree {path} there"
                )
            if mode == _SUBMODULE:
                submodules.append(f"{inner}{path}/")
                continue
            tracked.files.add(inner + path)
            if mode == _LINK:
                tracked.links.append(inner + path)
        if not inner and self.anchor not in tracked.files:
            raise NoCleanCheckout(
                f"git does not track {self.anchor} in {self.root}; use a checkout of its own"
            )
        # The code of a change and its path; and what git would leave out of that.
        status = ("status", "--porcelain=v1", "--no-renames", "--untracked-files=all")
        changed = git.ask(*status, "--ignore-submodules=none", "-z", "--", ".")[3:]
        if changed:
            raise self._changed(inner + changed.split(_NUL)[0])
        for submodule in submodules:
            self._collect(submodule, environ, tracked)
        return head

    def _head(self, git: _Git, inner: str) -> str:
        directory = os.path.join(self.root, inner)
        if inner and not os.path.lexists(directory + _REPOSITORY):
            raise NoCleanCheckout(
                f"the submodule {inner} of the checkout {self.root} is not checked out; run git "
                f"submodule update --init there"
            )
        told = git.ask("rev-parse", "--show-toplevel", "HEAD^{commit}")
        top, head = told.removesuffix("\n").rsplit("\n", 1)
        # core.worktree may name another directory than the one that was asked about.
        top = os.path.realpath(top)
        if not _is_below(os.path.realpath(directory), top):
            raise NoCleanCheckout(
                f"the repository of {directory} has its files in {top}; use a checkout of its own"
            )
        return head

    def _linked_directories(self, tracked: _Tracked) -> Iterator[str]:
        """The directories that links name. Every link must lead to something that is tracked."""
        root = os.path.realpath(self.root)
        for link in tracked.links:
            target = os.path.realpath(f"{root}/{link}")
            inside = os.path.relpath(target, root)
            if _is_below(target, root) and os.path.isdir(target):
                yield inside
            elif inside not in tracked.files:
                raise NoCleanCheckout(
                    f"the link {link} in the checkout {self.root} leads out of it; "
                    f"commit what it names instead"
                )

    def _check_tracked(self, directories: Iterable[str], tracked: AbstractSet[str]) -> None:
        """Check that directories hold nothing but what is tracked. OSError."""
        waiting = list(directories)
        while waiting:
            directory = os.path.normpath(waiting.pop())
            with (
                contextlib.suppress(FileNotFoundError),
                os.scandir(f"{self.root}/{directory}") as entries,
            ):
                for entry in entries:
                    path = os.path.normpath(f"{directory}/{entry.name}")
                    if path in tracked:
                        continue
                    if not entry.is_dir(follow_symlinks=False):
                        raise self._changed(path)
                    waiting.append(path)

    def _changed(self, path: str) -> NoCleanCheckout:
        return NoCleanCheckout(
            f"the checkout {self.root} has uncommitted changes ({path}); commit or remove them"
        )


@dataclass(frozen=True, slots=True)
class _Tracked:
    """What git tracks below a checkout, submodules included: all files, and those of them that
    are links. What makes a directory a repository is among the files."""

    files: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)


class _Git:
    """Asks git about one directory, free of what the user's environment says of repositories."""

    def __init__(self, root: str, environ: Mapping[str, str]) -> None:
        found = find_executable("git", environ.get("PATH"), root)
        if found is None:
            raise NoCleanCheckout(
                f"there is no git on PATH to tell whether the checkout {root} is clean; "
                f"install git, or use an installed build"
            )
        settings = [word for name, value in _SETTINGS for word in ("-c", f"{name}={value}")]
        self._command = [found, "--no-optional-locks", "--literal-pathspecs", *settings]
        self._root = Path(root)
        # GIT_DIR, GIT_INDEX_FILE and others would show another repository than this one.
        kept = {name: value for name, value in environ.items() if not name.startswith("GIT_")}
        # A replaced object would make another tree of the same commit.
        self._environ = {**kept, "LC_ALL": "C", "LANGUAGE": "", "GIT_NO_REPLACE_OBJECTS": "1"}

    def ask(self, *words: str) -> str:
        """What git answers. NoCleanCheckout, with its own words, where it does not."""
        try:
            return run_tool(
                [*self._command, *words],
                cwd=self._root,
                environ=self._environ,
                timeout=_SECONDS,
                stage=f"asking git about {self._root}",
                undecodable="surrogateescape",
            ).stdout
        except ToolError as error:
            lines = error.stderr.strip().splitlines()
            raise NoCleanCheckout(
                f"{self._root} is no clean git checkout ({lines[-1] if lines else error}); "
                f"use one with a commit, or an installed build"
            ) from error


def _is_below(path: str, top: str) -> bool:
    return path == top or path.startswith(top.rstrip("/") + "/")
