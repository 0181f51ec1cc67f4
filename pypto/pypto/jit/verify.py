"""``python -m pypto.jit verify``: build chosen entries again and say what is not the same twice.

READY entries are built from the sources that are kept beside them. With a module and a
configuration, the sources themselves are made again from Python. See `verify_rebuild` for what is
compared, and for what is not.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, TextIO

from pypto.jit.building import Recipe
from pypto.jit.policy import capture_policy, environment_config
from pypto.jit.session import TOOLCHAIN
from pypto.jit.steps import steps_on
from pypto.jit.surroundings import read_surroundings
from pypto.jit.verify_rebuild import Bench, Outcome, Verdict
from pypto.jit.warm import Job, jobs_of, module_named
from pypto.jit.warmup_file import WarmupFileError, load
from pypto_store import CacheConfig, State
from pypto_store.layout import resolve
from pypto_store.listing import EntryRow
from pypto_store.tools.answer import CommandError, Progress
from pypto_store.tools.comparison import EvidenceShelf
from pypto_store.tools.selection import chosen_rows, rows_of
from pypto_store.tools.terminal import (
    SilentProgress,
    TerminalProgress,
    console_on,
    plain,
    table,
)

if TYPE_CHECKING:
    from rich.console import Console

REPORT_SCHEMA = 1

EQUAL = 0
DIFFERENT = 1
UNUSABLE = 2
NOTHING_COMPARED = 3

_KEY_DIGITS = 12
_NO_ENTRY = (
    "the root has no entry of its key: it was not warmed, or its source or a tool is another now"
)
_STYLES = {Outcome.EQUAL: "green", Outcome.DIFFERENT: "red", Outcome.NOT_COMPARABLE: "yellow"}


@dataclass(frozen=True, slots=True)
class Task:
    """One comparison to make. `key` and `state` say of what; `path` is None for no entry at all."""

    key: str | None
    kernel: str
    state: State
    path: str | None
    cpu_level: str | None
    judge: Callable[[int, Event], Verdict]


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one task."""

    task: Task
    verdict: Verdict
    milliseconds: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to build again, and how."""
    parser.add_argument(
        "--root",
        metavar="DIRECTORY",
        help="the cache root (default: the configuration's, $PYPTO_CACHE_DIR, ~/.cache/pypto/jit)",
    )
    parser.add_argument(
        "--key",
        metavar="KEY",
        nargs="+",
        action="extend",
        default=[],
        help="these keys, or enough of their first digits",
    )
    parser.add_argument("--kernel", metavar="NAME", help="all keys of the kernel of that name")
    parser.add_argument("--all", action="store_true", help="every key")
    parser.add_argument("--module", help="the trusted module that has the kernels of --config")
    parser.add_argument(
        "--config",
        type=Path,
        help="a configuration as for warm: what it names, sources made from Python again too",
    )
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=_positive,
        default=len(os.sched_getaffinity(0)),
        help="compilers to run at a time (default: one a processor)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, as where no terminal is")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def verify(options: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    """Run the command; gives the exit status."""
    try:
        # What the user's module prints is no part of the report.
        with redirect_stdout(err):
            with steps_on(err, int(options.module is not None)) as step:
                step(0, f"importing {options.module}")
                root, tasks = _planned(options)
            results = _carried_out(tasks, options.jobs, _progress(err))
        if out.isatty() and not options.json:
            _paint(console_on(out), results)
        else:
            print(json.dumps(_document(root, results), indent=2), file=out)
    except WarmupFileError as error:
        for problem in error.problems:
            print(f"error: {problem}", file=err)
        return UNUSABLE
    except (CommandError, ValueError) as error:
        print(f"error: {error}", file=err)
        return UNUSABLE
    outcomes = {result.verdict.outcome for result in results}
    if Outcome.DIFFERENT in outcomes:
        return DIFFERENT
    return EQUAL if Outcome.EQUAL in outcomes else NOTHING_COMPARED


# -- what to compare


def _planned(options: argparse.Namespace) -> tuple[str, list[Task]]:
    """The root, and every comparison to make in it."""
    if (options.module is None) != (options.config is None):
        raise CommandError("--module and --config go together")
    chosen = sum((bool(options.key), options.kernel is not None, options.all))
    if chosen > 1 or not (chosen or options.config):
        raise CommandError(
            "say what to verify: --all, --kernel NAME or --key KEY, or what a configuration names "
            "with --module and --config"
        )
    world = read_surroundings()
    jobs: list[Job] = []
    cache = environment_config(world.environ)
    if options.config is not None:
        file = load(options.config)
        jobs = jobs_of(file, module_named(options.module))
        cache = file.cache or cache
    cache = replace(
        cache,
        enabled=True,
        readonly=True,
        remote=None,
        root=cache.root if options.root is None else Path(options.root),
    )
    root = capture_policy(cache, world.environ, world.cwd).root
    assert root is not None
    rows = list(rows_of(root))
    shelf = EvidenceShelf(resolve(root)[0])
    bench = Bench(TOOLCHAIN, shelf, world, root, os.uname().machine)
    named = [_identified(job, cache) for job in jobs]
    recipes = {item.key: item for item in named if item.key is not None}
    tasks: list[Task] = []
    if not chosen:
        known = {row.key for row in rows}
        tasks += [_missing(item) for item in named if item.key not in known]
        rows = [row for row in rows if row.key in recipes]
    elif not options.all:
        rows = chosen_rows(rows, options.key, options.kernel, shelf, root)
    by_key: dict[tuple[str, str], list[EntryRow]] = {}
    for row in rows:
        by_key.setdefault((row.environment, row.key), []).append(row)
    for group in by_key.values():
        tasks += _tasks_of_key(group, recipes.get(group[0].key), bench)
    return root, tasks


@dataclass(frozen=True, slots=True)
class Named:
    """A request of the configuration: its key and how to build it, or why it has no key."""

    kernel: str
    key: str | None
    recipe: Recipe | None
    problem: str


def _identified(job: Job, cache: CacheConfig) -> Named:
    found = job.function.identify(job.request.config, cache, job.arguments)
    if isinstance(found, str):
        return Named(job.request.kernel, None, None, found)
    key, recipe = found
    unit = recipe.snapshot.functions[0][0].unit
    return Named(unit, key.digest.hex, recipe, _NO_ENTRY)


def _missing(named: Named) -> Task:
    verdict = Verdict(Outcome.NOT_COMPARABLE, named.problem)
    return Task(named.key, named.kernel, State.GENERATED, None, None, lambda *_: verdict)


def _tasks_of_key(rows: Sequence[EntryRow], named: Named | None, bench: Bench) -> Iterator[Task]:
    generated = next((row for row in rows if row.state is State.GENERATED), None)
    kernel = next(filter(None, map(bench.shelf.kernel, rows)), named.kernel if named else "")
    ready = [row for row in rows if row.state is State.READY]

    def task(row: EntryRow, judge: Callable[[int, Event], Verdict]) -> Task:
        level = None if row.spec is None else row.spec.cpu_level
        return Task(row.key, kernel, row.state, row.path, level, judge)

    if generated is not None and named is not None and named.recipe is not None:
        recipe = named.recipe
        yield task(generated, lambda *_: bench.sources(generated, recipe))
    elif generated is not None and not ready:
        told = "it has no binaries, and its sources are compared with --module and --config only"
        verdict = Verdict(Outcome.NOT_COMPARABLE, told)
        yield task(generated, lambda *_: verdict)
    for row in ready:
        yield task(row, _rebuilding(bench, row, generated))


def _rebuilding(
    bench: Bench, row: EntryRow, generated: EntryRow | None
) -> Callable[[int, Event], Verdict]:
    return lambda workers, cancelled: bench.ready(
        row, generated, workers=workers, cancelled=cancelled
    )


# -- comparing


def _carried_out(tasks: Sequence[Task], jobs: int, progress: Progress) -> list[Result]:
    """The result of every task, in their order; never more than `jobs` compilers at a time."""
    from concurrent.futures import ThreadPoolExecutor, as_completed

    if not tasks:
        return []
    side_by_side = min(jobs, len(tasks))
    cancelled = [Event() for _ in tasks]

    def judged(task: Task, event: Event) -> Result:
        begin = time.perf_counter()
        verdict = task.judge(jobs // side_by_side, event)
        return Result(task, verdict, round((time.perf_counter() - begin) * 1e3, 3))

    with (
        progress.of("rebuilding", len(tasks)) as advance,
        ThreadPoolExecutor(side_by_side, thread_name_prefix="pypto-verify") as pool,
    ):
        futures = [
            pool.submit(judged, task, event) for task, event in zip(tasks, cancelled, strict=True)
        ]
        try:
            for future in as_completed(futures):
                future.result()  # a mistake of ours ends all others at once
                advance(1)
            return [future.result() for future in futures]
        except BaseException:
            for event in cancelled:
                event.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _progress(err: TextIO) -> Progress:
    return TerminalProgress(err, time.monotonic) if err.isatty() else SilentProgress()


# -- telling


def _document(root: str, results: Iterable[Result]) -> Mapping[str, object]:
    results = list(results)
    return {
        "schema_version": REPORT_SCHEMA,
        "root": root,
        "entries": [
            {
                "key": task.key,
                "kernel": task.kernel or None,
                "state": task.state.value,
                "path": task.path,
                "cpu_level": task.cpu_level,
                "outcome": verdict.outcome.value,
                "reason": verdict.reason,
                "files": [asdict(difference) for difference in verdict.differences],
                "milliseconds": result.milliseconds,
            }
            for result in results
            for task, verdict in ((result.task, result.verdict),)
        ],
        "totals": {outcome.value: count for outcome, count in _totals(results).items()},
    }


def _totals(results: Iterable[Result]) -> dict[Outcome, int]:
    totals = dict.fromkeys(Outcome, 0)
    for result in results:
        totals[result.verdict.outcome] += 1
    return totals


def _paint(console: Console, results: Sequence[Result]) -> None:
    listing = table("outcome", "key", "state", "cpu", "kernel", "ms", right=("ms",))
    for result in results:
        task, outcome = result.task, result.verdict.outcome
        listing.add_row(
            plain(outcome.words, _STYLES[outcome]),
            (task.key or "")[:_KEY_DIGITS],
            task.state.value,
            task.cpu_level or "",
            plain(task.kernel),
            f"{result.milliseconds:.0f}",
        )
    if results:
        console.print(listing)
    for result in results:
        task, verdict = result.task, result.verdict
        if verdict.outcome is Outcome.EQUAL:
            continue
        head = f"{(task.key or task.kernel)[:_KEY_DIGITS]} {task.state.value}"
        reason = f": {verdict.reason}" if verdict.reason else ""
        console.print(plain(f"{head} {verdict.outcome.words}{reason}", _STYLES[verdict.outcome]))
        for item in verdict.differences:
            console.print(plain(f"{item.path}: {item.where}", indent=2))
            console.print(plain(f"kept    {item.expected or 'nothing'}", indent=4))
            console.print(plain(f"rebuilt {item.actual or 'nothing'}", indent=4))
    totals = _totals(results)
    console.print(", ".join(f"{count} {outcome.words}" for outcome, count in totals.items()))
