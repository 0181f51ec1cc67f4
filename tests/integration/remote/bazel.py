"""A Bazel that builds a workspace of two files, out of a cache and into it.

It needs no network, no compiler and no repository.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pypto_store import RemoteConfig

_PATIENCE = 300.0  # seconds; the first build takes four on an idle machine
_BUILD = """\
genrule(
    name = "numbers",
    srcs = ["first.txt"],
    outs = ["numbers.txt"],
    cmd = "cat $< > $@; for n in 2 3 4; do echo $$n >> $@; done",
)

genrule(
    name = "size",
    srcs = [":numbers.txt"],
    outs = ["size.txt"],
    cmd = "wc -c < $< > $@",
)
"""
ACTIONS = 2
_PROCESSES = re.compile(r"INFO: \d+ process(?:es)?: (.*)\.")


class Workspace:
    """A workspace and a Bazel server that builds it."""

    def __init__(self, program: Path, directory: Path) -> None:
        self._directory = directory
        self._source = directory / "source"
        self._startup = [
            str(program),
            "--nohome_rc",
            "--noworkspace_rc",
            f"--output_user_root={directory / 'user'}",
            # It stops by itself when the tests are killed before they stop it.
            "--max_idle_secs=30",
            "--host_jvm_args=-Xmx256m",
            # Less work in all for a program that does little.
            "--host_jvm_args=-XX:TieredStopAtLevel=1",
            "--host_jvm_args=-XX:+UseSerialGC",
        ]
        self._source.mkdir(parents=True)
        for name, text in {"WORKSPACE": "", "BUILD": _BUILD, "first.txt": "1\n"}.items():
            (self._source / name).write_text(text, encoding="utf-8")

    def build(self, remote: RemoteConfig) -> tuple[dict[str, int], bytes]:
        """Build everything, with nothing left of earlier builds but what is in `remote`.

        How many processes were of which kind ("local", "remote cache hit", "disk cache hit"), and
        what the first rule made.
        """
        self.run("clean")
        said = self.run("build", "--spawn_strategy=local", *_cache_flags(remote), "//:all")
        summary = _PROCESSES.search(said)
        assert summary is not None, said
        counts = (part.split(" ", 1) for part in summary[1].split(", "))
        processes = {kind: int(count) for count, kind in counts if kind != "internal"}
        return processes, (self._source / "bazel-bin" / "numbers.txt").read_bytes()

    def run(self, command: str, *arguments: str) -> str:
        """Run one command and return what it printed."""
        common = ("--noenable_bzlmod", "--enable_workspace", "--color=no", "--curses=no")
        done = subprocess.run(
            [*self._startup, command, *common, *arguments],
            cwd=self._source,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self._directory), "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout


@contextmanager
def running_bazel(program: Path, directory: Path) -> Iterator[Workspace]:
    """A workspace below an empty directory, and its server until the block ends."""
    workspace = Workspace(program, directory)
    try:
        yield workspace
    finally:
        workspace.run("shutdown")


def _cache_flags(remote: RemoteConfig) -> list[str]:
    if remote.scheme == "file":
        return [f"--disk_cache={remote.url.removeprefix('file://')}"]
    return [f"--remote_cache={remote.url}", f"--remote_instance_name={remote.instance}"]
