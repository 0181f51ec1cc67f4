"""SDKs and instruction sets from git checkouts: clean ones have an identity, others have none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from mutations import House, Mutation, Outcome, check, differences

CHANGES, KEEPS, BYPASSES, CAUGHT = Outcome

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

Edit = Callable[[House], object]

RUNTIME, ISA = "PYPTO_RUNTIME_ROOT", "PTO_ISA_ROOT"
COMPONENTS = {RUNTIME: "runtime", ISA: "pto_isa"}
HEADER = "include/pto/pto-inst.hpp"


def git(directory: Path, *words: str) -> str:
    """What git says, in a world without anybody's settings."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    nobody = {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "HOME": str(directory),
        **{
            f"GIT_{who}_{what}": value
            for who in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", "n"), ("EMAIL", "e@x"), ("DATE", "2001-01-01T00:00:00Z"))
        },
    }
    settings = ("-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main")
    return subprocess.run(
        ["git", *settings, *words],
        cwd=directory,
        env={**environ, **nobody},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


def commit(directory: Path) -> str:
    """Commit all there is; the commit."""
    git(directory, "add", "-A")
    git(directory, "commit", "-q", "--allow-empty", "-m", "x")
    return git(directory, "rev-parse", "HEAD")


class Checkout:
    """A house whose SDK or instruction set is a clean checkout."""

    def __init__(self, house: House, variable: str) -> None:
        self.house = house
        self.variable = variable
        self.component = COMPONENTS[variable]
        self.path = house.top / "checkout"
        shutil.copytree(house.sdk, self.path)
        metadata = json.loads((self.path / "sdk.json").read_text())
        del metadata["revision"]
        (self.path / "sdk.json").write_text(json.dumps(metadata))
        (self.path / "docs").mkdir()
        (self.path / "docs" / "note").write_text("a note\n")
        (self.path / ".gitignore").write_text("/build/\n*.log\n")
        git(self.path, "init", "-q")
        self.head = commit(self.path)
        house.environ[variable] = str(self.path)

    def check(self, name: str, apply: Edit, expect: Outcome, reason: str = "") -> None:
        check(self.house, Mutation(name, self.component, apply, expect, reason))


@pytest.fixture(params=[RUNTIME, ISA])
def checkout(request: pytest.FixtureRequest, house: House) -> Checkout:
    return Checkout(house, request.param)


@pytest.mark.conforms("cache.86")
def test_a_clean_checkout_is_known_by_its_commit(checkout: Checkout) -> None:
    facts = checkout.house.facts(checkout.component)
    assert facts["checkout.revision"] == checkout.head
    if checkout.variable == RUNTIME:
        assert set(facts) == {"checkout.revision", "sdk.metadata", "native", "sources"}
    else:
        assert facts["pin"] == (checkout.house.sdk / "pto_isa.pin").read_text().strip()


def edit(path: str) -> Callable[[Checkout], object]:
    def apply(checkout: Checkout) -> None:
        with (checkout.path / path).open("a") as file:
            file.write("\n")

    return apply


def create(path: str) -> Callable[[Checkout], object]:
    def apply(checkout: Checkout) -> None:
        (checkout.path / path).parent.mkdir(exist_ok=True)
        (checkout.path / path).write_text("new\n")

    return apply


def staged(checkout: Checkout) -> None:
    edit("docs/note")(checkout)
    git(checkout.path, "add", "-A")


def unseen_edit(flag: str) -> Callable[[Checkout], object]:
    """An edit that git was told to overlook."""

    def apply(checkout: Checkout) -> None:
        git(checkout.path, "update-index", flag, HEADER)
        edit(HEADER)(checkout)

    return apply


def same_times(checkout: Checkout) -> None:
    """An edit that changes neither size nor time, with settings that trust those."""
    header = checkout.path / HEADER
    status = header.stat()
    text = header.read_text()
    for name, value in (("core.trustctime", "false"), ("core.checkStat", "minimal")):
        git(checkout.path, "config", name, value)
    git(checkout.path, "status")
    # What git keeps of a file's last change is the second of it.
    while int(time.time()) == int(status.st_ctime):
        time.sleep(0.01)
    header.write_text(text.replace("a", "b", 1))
    os.utime(header, ns=(status.st_atime_ns, status.st_mtime_ns))


def configured(name: str, value: str, then: Callable[[Checkout], object]):
    def apply(checkout: Checkout) -> None:
        git(checkout.path, "config", name, value)
        then(checkout)

    return apply


def locally_excluded(checkout: Checkout) -> None:
    (checkout.path / ".git" / "info" / "exclude").write_text("*.hpp\n")
    create("include/more.hpp")(checkout)


def globally_excluded(checkout: Checkout) -> None:
    (checkout.house.top / "excludes").write_text("more\n")
    git(checkout.path, "config", "core.excludesFile", str(checkout.house.top / "excludes"))
    create("docs/more")(checkout)


def no_git(checkout: Checkout) -> None:
    """All tools but git."""
    environ = checkout.house.environ
    tools = checkout.house.top / "without-git"
    tools.mkdir()
    for directory in reversed(environ["PATH"].split(":")):
        for name in os.listdir(directory) if os.path.isdir(directory) else ():
            if name != "git":
                (tools / name).unlink(missing_ok=True)
                (tools / name).symlink_to(os.path.join(directory, name))
    environ["PATH"] = str(tools)


def no_repository(checkout: Checkout) -> None:
    shutil.rmtree(checkout.path / ".git")


def no_commit(checkout: Checkout) -> None:
    no_repository(checkout)
    git(checkout.path, "init", "-q")


def other_worktree(checkout: Checkout) -> None:
    """A repository whose files are said to be somewhere else, where they are clean."""
    other = checkout.house.top / "elsewhere"
    shutil.copytree(checkout.path, other)
    shutil.rmtree(other / ".git")
    git(checkout.path, "config", "core.worktree", str(other))
    edit(HEADER)(checkout)


def ignored_by_another(checkout: Checkout) -> None:
    """No checkout, but below one that ignores it and is clean."""
    no_repository(checkout)
    top = checkout.path.parent
    git(top, "init", "-q")
    (top / ".gitignore").write_text("*\n!.gitignore\n")
    commit(top)


def replaced_object(checkout: Checkout) -> None:
    """Another tree shows under the same commit."""
    edit(HEADER)(checkout)
    other = commit(checkout.path)
    git(checkout.path, "update-ref", "refs/heads/main", checkout.head)
    git(checkout.path, "replace", checkout.head, other)


def link_outside(checkout: Checkout) -> None:
    outside = checkout.house.top / "outside"
    outside.mkdir()
    (checkout.path / "include" / "outside").symlink_to(outside)
    commit(checkout.path)


def link(name: bytes, target: str) -> Callable[[Checkout], object]:
    """A committed link among the headers."""

    def apply(checkout: Checkout) -> None:
        os.symlink(os.fsencode(target), os.fsencode(checkout.path / "include") + b"/" + name)
        commit(checkout.path)

    return apply


def link_to_ignored(checkout: Checkout) -> None:
    create("build/made.hpp")(checkout)
    link(b"made.hpp", "../build/made.hpp")(checkout)


def part_of_a_larger_checkout(checkout: Checkout) -> None:
    """The directory is a part of a repository, and links to a file of another part."""
    no_repository(checkout)
    top = checkout.path.parent
    create("../common/shared.hpp")(checkout)
    os.symlink("../../common/shared.hpp", checkout.path / "include" / "shared.hpp")
    git(top, "init", "-q")
    git(top, "add", "common", checkout.path.name)
    git(top, "commit", "-q", "-m", "x")


def own_repository(checkout: Checkout) -> None:
    """Headers that make a repository of their own, which another one ignores."""
    (checkout.path / ".git" / "info" / "exclude").write_text("/include/own/\n")
    create("include/own/own.hpp")(checkout)
    git(checkout.path / "include/own", "init", "-q")
    commit(checkout.path / "include/own")


def add_submodule(checkout: Checkout, path: str = "library") -> None:
    library = checkout.house.top / "library"
    library.mkdir()
    (library / "file").write_text("1\n")
    git(library, "init", "-q")
    commit(library)
    git(checkout.path, "submodule", "--quiet", "add", str(library), path)
    commit(checkout.path)


DIRTY: dict[str, tuple[Callable[[Checkout], object], str]] = {
    "a tracked file is edited": (edit(HEADER), f"changes ({HEADER})"),
    "an edit is staged": (staged, "changes (docs/note)"),
    "a file is removed": (lambda c: (c.path / "docs/note").unlink(), "changes (docs/note)"),
    "an untracked file lies in it": (create("docs/new"), "changes (docs/new)"),
    "an untracked directory lies in it": (create("new/file"), "changes (new/file)"),
    "an ignored header could be included": (create("include/x.log"), "changes (include/x.log)"),
    "a header is ignored here alone": (locally_excluded, "changes (include/more.hpp)"),
    "a file is ignored by settings": (globally_excluded, "changes (docs/more)"),
    "untracked files are not shown": (
        configured("status.showUntrackedFiles", "no", create("docs/new")), "changes (docs/new)"
    ),
    "changes are assumed away": (unseen_edit("--assume-unchanged"), "overlook changes"),
    "the worktree is skipped": (unseen_edit("--skip-worktree"), "overlook changes"),
    "neither size nor time changes": (same_times, f"changes ({HEADER})"),
    "the index is gone": (lambda c: (c.path / ".git/index").unlink(), "does not track"),
    "there is no git": (no_git, "no git on PATH"),
    "there is no repository": (no_repository, "not a git repository"),
    "there is no commit": (no_commit, "is no clean git checkout"),
    "the files are said to be elsewhere": (other_worktree, "has its files in"),
    "another repository ignores it": (ignored_by_another, "does not track"),
    "another tree shows under the commit": (replaced_object, f"changes ({HEADER})"),
    "a link leads out of it": (link_outside, "leads out of it"),
    "a link whose name is no text does": (link(b"x\xff.hpp", "/etc/hosts"), "leads out of it"),
    "a link leads to nothing": (link(b"x.hpp", "../build/x.hpp"), "leads out of it"),
    "a link leads to an ignored file": (link_to_ignored, "leads out of it"),
    "a link leads to another part": (part_of_a_larger_checkout, "leads out of it"),
    "a name differs by its case": (
        configured("core.ignoreCase", "true", create("docs/Note")), "changes (docs/Note)"
    ),
    "a header differs by its case": (
        configured("core.ignoreCase", "true", create("include/PTO/x.hpp")),
        "changes (include/PTO/x.hpp)",
    ),
    "a pipe lies among the headers": (
        lambda c: os.mkfifo(c.path / "include/x.hpp"), "changes (include/x.hpp)"
    ),
    "what git takes for a repository's lies there": (
        create("include/.git/x.hpp"), "changes (include/.git/x.hpp)"
    ),
    "headers are an ignored repository": (own_repository, "changes (include/own/"),
}  # fmt: skip


@pytest.mark.conforms("cache.86")
@pytest.mark.parametrize("name", DIRTY, ids=lambda name: name.replace(" ", "_"))
def test_what_is_not_exactly_a_commit_has_no_identity(checkout: Checkout, name: str) -> None:
    apply, reason = DIRTY[name]
    checkout.check(name, lambda _: apply(checkout), BYPASSES, reason)


def committed(checkout: Checkout) -> None:
    edit(HEADER)(checkout)
    commit(checkout.path)


def detached(checkout: Checkout) -> None:
    git(checkout.path, "checkout", "-q", "--detach")


def moved_to(name: str) -> Callable[[Checkout], object]:
    def apply(checkout: Checkout) -> None:
        other = checkout.path.with_name(name)
        checkout.path.rename(other)
        checkout.house.environ[checkout.variable] = str(other)

    return apply


def cloned(checkout: Checkout) -> None:
    other = checkout.house.top / "clone"
    git(checkout.path, "clone", "-q", ".", str(other))
    checkout.house.environ[checkout.variable] = str(other)


def worktree(checkout: Checkout) -> None:
    other = checkout.house.top / "worktree"
    git(checkout.path, "worktree", "add", "-q", "--detach", str(other))
    checkout.house.environ[checkout.variable] = str(other)


def packed(checkout: Checkout) -> None:
    git(checkout.path, "gc", "-q")
    git(checkout.path, "pack-refs", "--all")
    assert not (checkout.path / ".git/refs/heads/main").exists()


def misleading_variables(checkout: Checkout) -> None:
    """What makes git look at another repository than it is asked about."""
    other = checkout.house.top / "other"
    other.mkdir()
    (other / "sdk.json").write_text("")
    git(other, "init", "-q")
    commit(other)
    checkout.house.environ.update(
        GIT_DIR=str(other / ".git"),
        GIT_WORK_TREE=str(other),
        GIT_INDEX_FILE=str(other / ".git/index"),
        GIT_CEILING_DIRECTORIES=str(checkout.path.parent),
        GIT_CONFIG_COUNT="1",
        GIT_CONFIG_KEY_0="core.bare",
        GIT_CONFIG_VALUE_0="true",
    )


CLEAN: dict[str, tuple[Callable[[Checkout], object], Outcome]] = {
    "another commit": (committed, CHANGES),
    "an ignored file outside the headers": (create("build/x"), KEEPS),
    "times change": (lambda c: os.utime(c.path / HEADER, (1, 1)), KEEPS),
    "the head is detached": (detached, KEEPS),
    "references are packed": (packed, KEEPS),
    "it lies elsewhere": (moved_to("moved"), KEEPS),
    "it lies where no text leads": (moved_to(os.fsdecode(b"a \n\xff")), KEEPS),
    "a link stays in it": (link(b"x.hpp", "pto/pto-inst.hpp"), CHANGES),
    "a link to a directory stays in it": (link(b"pto2", "pto"), CHANGES),
    "a clone is at the same commit": (cloned, KEEPS),
    "a worktree is at the same commit": (worktree, KEEPS),
    "variables name another repository": (misleading_variables, KEEPS),
}


@pytest.mark.conforms("cache.86")
@pytest.mark.parametrize("name", CLEAN, ids=lambda name: name.replace(" ", "_"))
def test_what_is_exactly_a_commit_keeps_its_identity(checkout: Checkout, name: str) -> None:
    apply, expect = CLEAN[name]
    checkout.check(name, lambda _: apply(checkout), expect)


def test_edits_are_seen_whatever_variables_say(checkout: Checkout) -> None:
    misleading_variables(checkout)
    checkout.check("edit", lambda _: edit(HEADER)(checkout), BYPASSES, f"changes ({HEADER})")


def overlooked(path: Path) -> None:
    git(path, "update-index", "--assume-unchanged", "file")
    (path / "file").write_text("2\n")


def emptied(path: Path) -> None:
    """As in a clone that was made without its submodules."""
    git(path.parent.parent, "submodule", "--quiet", "deinit", "-f", "include/library")
    (path / "file").write_text("2\n")


def excluded(path: Path) -> None:
    information = path / git(path, "rev-parse", "--git-dir") / "info"
    information.mkdir(exist_ok=True)
    (information / "exclude").write_text("*\n")
    (path / "new").write_text("")


SUBMODULE: dict[str, tuple[Callable[[Path], object], str]] = {
    "at another commit": (
        lambda path: ((path / "file").write_text("2\n"), commit(path)), "changes (include/library)"
    ),
    "edited": (lambda path: (path / "file").write_text("2\n"), "changes (include/library)"),
    "with an untracked file": (
        lambda path: (path / "new").write_text(""), "changes (include/library)"
    ),
    "with an edit to be overlooked": (overlooked, "overlook changes of file"),
    "with an ignored header": (excluded, "changes (include/library/new)"),
    "not checked out": (emptied, "the submodule include/library/ of the checkout"),
    "touched": (lambda path: os.utime(path / "file", (1, 1)), ""),
}  # fmt: skip


@pytest.mark.parametrize("name", SUBMODULE, ids=lambda name: name.replace(" ", "_"))
def test_submodules_are_part_of_a_checkout(checkout: Checkout, name: str) -> None:
    add_submodule(checkout, "include/library")
    git(checkout.path, "config", "diff.ignoreSubmodules", "all")
    apply, reason = SUBMODULE[name]
    expect = BYPASSES if reason else KEEPS
    checkout.check(name, lambda _: apply(checkout.path / "include/library"), expect, reason)


def test_an_ignored_file_beside_a_source_counts(house: House) -> None:
    checkout = Checkout(house, RUNTIME)
    made = create("src/made.log")
    checkout.check("made", lambda _: made(checkout), BYPASSES, "changes (src/made.log)")


def test_git_is_asked_again_by_every_process(checkout: Checkout) -> None:
    """No file tells that a checkout is clean still, so nothing is recalled."""
    checkout.house.known()
    before = checkout.house.worked_out
    assert not checkout.house.known().recallable
    assert checkout.house.worked_out == before + 1


@pytest.mark.conforms("cache.86")
def test_a_checkout_that_changed_since_is_caught_before_building(checkout: Checkout) -> None:
    process = checkout.house.process()
    process.identity()
    for _ in range(2):
        assert process.changed() is None
        edit(HEADER)(checkout)
        assert str(process.changed()).startswith(f"{checkout.component}: the checkout ")
        git(checkout.path, "checkout", "-q", ".")
    assert process.changed() is None
    committed(checkout)
    moved = f"{checkout.component}: it changed since the process identified it; restart"
    assert str(process.changed()).startswith(moved)
    git(checkout.path, "checkout", "-q", checkout.head)
    assert process.changed() is None


@pytest.mark.conforms("cache.86")
def test_an_installed_sdk_elsewhere_is_known_by_its_revision(house: House) -> None:
    other = house.top / "other-sdk"
    shutil.copytree(house.sdk, other)
    check(house, Mutation("selected", "", lambda h: h.environ.update({RUNTIME: str(other)}), KEEPS))
    assert house.known().recallable
    with (other / HEADER).open("a") as header:
        header.write("\n")
    house.sdk = other
    before = house.known()
    house.build_sdk()
    assert differences(before, house.known()) == {"runtime"}


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        (RUNTIME, "relative", "PYPTO_RUNTIME_ROOT=relative is relative"),
        (ISA, "./isa", "PTO_ISA_ROOT=./isa is relative"),
        (RUNTIME, "/nowhere/sdk", "cannot be read"),
        (ISA, "/nowhere/isa", "/nowhere/isa"),
    ],
)
def test_a_directory_that_says_nothing(
    house: House, variable: str, value: str, reason: str
) -> None:
    component = "runtime" if "relative" in reason else COMPONENTS[variable]
    name = Mutation(
        "set", component, lambda h: h.environ.update({variable: value}), BYPASSES, reason
    )
    check(house, name)


def test_an_empty_variable_is_none(house: House) -> None:
    before = house.known()
    house.environ.update({RUNTIME: "", ISA: ""})
    assert house.known().digest == before.digest
