"""A git checkout as evidence: the commit it is at, if its files are exactly that commit's.

What is not seen: files that are ignored and lie in no directory of headers, what filters of
``.gitattributes`` turn committed bytes into, and untracked files of a submodule that its own
configuration hides.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pypto_toolchains.process import ToolError, run_tool
from pypto_toolchains.search import find_executable

_SECONDS = 60.0

# A user's settings may hide changes, or start programs.
_SETTINGS = (
    ("core.checkStat", "default"),
    ("core.excludesFile", os.devnull),
    ("core.fsmonitor", "false"),
    ("core.trustctime", "true"),
    ("core.untrackedCache", "false"),
    ("status.showUntrackedFiles", "all"),
)

_LINK = "120000"
_NUL = "\0"


class NoCleanCheckout(Exception):
    """A directory is not exactly one commit; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A directory that should be a clean checkout, or lie in one.

    `root` is absolute. `anchor` is a file of it that must be tracked, so that a directory which
    some other repository ignores is not taken for one. In `headers`, directories of it that a
    compiler searches, even ignored files count. Both are relative to `root`.
    """

    root: str
    anchor: str
    headers: tuple[str, ...]

    def revision(self, environ: Mapping[str, str]) -> str:
        """The commit whose files these are, as git names it. Runs git; NoCleanCheckout."""
        git = _Git(self.root, environ)
        top, head = self._head(git)
        self._tracked(git, top)
        # The code of a change and its path; and what git would leave out of that.
        status = ("status", "--porcelain=v1", "--no-renames", "--untracked-files=all")
        changed = git.ask(*status, "--ignore-submodules=none", "-z", "--", ".")[3:]
        if not changed and self.headers:
            changed = git.ask("ls-files", "--others", "-z", "--", *self.headers)
        if changed:
            raise NoCleanCheckout(
                f"the checkout {self.root} has uncommitted changes ({changed.split(_NUL)[0]}); "
                f"commit or remove them"
            )
        return head

    def _head(self, git: _Git) -> tuple[str, str]:
        told = git.ask("rev-parse", "--show-toplevel", "HEAD^{commit}")
        top, head = told.removesuffix("\n").rsplit("\n", 1)
        # core.worktree may name another directory than the one that was asked about.
        top = os.path.realpath(top)
        if not _is_below(os.path.realpath(self.root), top):
            raise NoCleanCheckout(
                f"the repository of {self.root} has its files in {top}; use a checkout of its own"
            )
        return top, head

    def _tracked(self, git: _Git, top: str) -> None:
        """Check that the index tells all about the files below the root."""
        found = False
        for entry in git.ask("ls-files", "-v", "-s", "-z", "--", ".").split(_NUL)[:-1]:
            told, path = entry.split("\t", 1)
            tag, mode, *_ = told.split(" ")
            found |= path == self.anchor
            if tag != "H":
                raise NoCleanCheckout(
                    f"git is told to overlook changes of {path} in {self.root}; run git "
                    f"update-index --no-assume-unchanged --no-skip-worktree {path} there"
                )
            if mode == _LINK and not _is_below(os.path.realpath(f"{self.root}/{path}"), top):
                raise NoCleanCheckout(
                    f"the link {path} in the checkout {self.root} leads out of it; "
                    f"commit what it names instead"
                )
        if not found:
            raise NoCleanCheckout(
                f"git does not track {self.anchor} in {self.root}; use a checkout of its own"
            )


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
            ).stdout
        except ToolError as error:
            lines = error.stderr.strip().splitlines()
            raise NoCleanCheckout(
                f"{self._root} is no clean git checkout ({lines[-1] if lines else error}); "
                f"use one with a commit, or an installed build"
            ) from error


def _is_below(path: str, top: str) -> bool:
    return path == top or path.startswith(top.rstrip("/") + "/")
