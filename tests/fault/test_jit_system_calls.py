"""Every system call below a cache's root fails while a kernel is asked for through the JIT.

All that the JIT keeps there takes part: entries, evidence, what probes said, facts about sources. A
request gives a program in any case, and counts its trouble.
"""

from __future__ import annotations

import errno
import os
import shutil

import pytest
from intercepted import DONE, Run, Unavailable, intercepted
from jit_requests import Requests

ROUNDS = int(os.environ.get("STORE_FAULT_ROUNDS", "5"))
CODES = (errno.EIO, errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EMFILE, errno.ESTALE)


@pytest.fixture
def requests(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return Requests(tmp_path)


def perform(requests, root, how, decide) -> Run:
    def act():
        compiled, counted = requests.ask(root, how)
        return compiled.artifact_key, counted

    try:
        with intercepted(act, root, decide) as run:
            pass
    except Unavailable as error:
        pytest.skip(str(error))
    return run


def but_for_syncs(_, call):
    return DONE if call.name in ("fsync", "sync_file_range") else None


@pytest.mark.parametrize("situation", ["ready", "generated", "nothing"])
def test_a_request_survives_every_failing_call(tmp_path, requests, situation, record_property):
    template = tmp_path / "template"
    requests.ask(template, "warmup")
    if situation != "ready":
        shutil.rmtree(next(template.glob("artifacts/v1/*/*/ready")))
    if situation == "nothing":
        shutil.rmtree(template / "artifacts")
        shutil.rmtree(template / "cas")
    root = tmp_path / "root"
    shutil.copytree(template, root)
    rehearsal = perform(requests, root, "compile", but_for_syncs)
    assert rehearsal.answer[0] is not None
    # A hit reads; everything else also compiles, which takes its time.
    stride = 1 if situation == "ready" or ROUNDS > 5 else 4
    failures = 0
    for target in range(0, len(rehearsal.calls), stride):
        if rehearsal.calls[target].name == "close":
            continue
        code = CODES[target // stride % len(CODES)]
        shutil.rmtree(root)
        shutil.copytree(template, root)

        def decide(number, call, target=target, code=code):
            return code if number == target else but_for_syncs(number, call)

        run = perform(requests, root, "compile", decide)
        failures += 1
        told = (run.struck, errno.errorcode[code], run.answer)
        assert isinstance(run.answer, tuple), told
        key, counted = run.answer
        assert counted["requests"] == 1, told
        # No entry: then the reason is counted, and the next request finds or makes one.
        if key is None:
            assert counted["storage_errors"] + counted["bypasses"] > 0, told
        assert counted["invalid_entries"] == 0, told
        if failures % 10 == 0:
            compiled, again = requests.ask(root, "compile")
            assert compiled.artifact_key == rehearsal.answer[0], told
            assert again["storage_errors"] == again["invalid_entries"] == 0, told
    record_property("failures", failures)
    print(f"{situation}: {len(rehearsal.calls)} calls, {failures} failures")
