from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import pytest
from pypto_toolchains.process import (
    ToolCancelled,
    ToolFailed,
    ToolNotFound,
    ToolOutputTooLarge,
    ToolTimeout,
    compiler_timeout,
    run_tool,
)


def _python(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]


def test_gives_back_both_streams(tmp_path: Path) -> None:
    result = run_tool(
        _python("import sys; print('out'); print('err', file=sys.stderr)"),
        cwd=tmp_path,
        environ={},
        timeout=30,
        stage="probe",
    )
    assert (result.stdout, result.stderr) == ("out\n", "err\n")


def test_gets_the_environment_and_directory_it_is_given(tmp_path: Path) -> None:
    code = "import os; print(os.getcwd()); print(os.environ.get('PYPTO_X'), 'HOME' in os.environ)"
    result = run_tool(
        _python(code), cwd=tmp_path, environ={"PYPTO_X": "1"}, timeout=30, stage="probe"
    )
    assert result.stdout.splitlines() == [str(tmp_path.resolve()), "1 False"]


def test_failure_names_the_stage_and_quotes_the_end_of_stderr(tmp_path: Path) -> None:
    code = "import sys; sys.stderr.write('x' * 100000 + 'the reason'); sys.exit(3)"
    with pytest.raises(ToolFailed, match=r"compile f\.cpp") as caught:
        run_tool(_python(code), cwd=tmp_path, environ={}, timeout=30, stage="compile f.cpp")
    assert caught.value.returncode == 3
    assert str(caught.value).endswith("the reason")
    assert len(caught.value.stderr) < 20000


def test_missing_tool_is_its_own_error(tmp_path: Path) -> None:
    with pytest.raises(ToolNotFound, match="cannot start"):
        run_tool(["/nonexistent/tool"], cwd=tmp_path, environ={}, timeout=1, stage="probe")


@pytest.mark.parametrize("stream", [1, 2])
def test_a_tool_that_never_ends_writing_is_killed(tmp_path: Path, stream: int) -> None:
    code = f"import os\nwhile True: os.write({stream}, b'x' * 65536)"
    with pytest.raises(ToolOutputTooLarge, match=r"probe: python.* wrote more than 67108864 bytes"):
        run_tool(_python(code), cwd=tmp_path, environ={}, timeout=600, stage="probe")


@pytest.mark.conforms("cache.71")
def test_time_limit_kills_the_helpers_too(tmp_path: Path) -> None:
    mark = tmp_path / "helper"
    helper_code = (
        f"import os, time; open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    )
    code = (
        "import subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-I', '-S', '-c', {helper_code!r}])\n"
        "time.sleep(60)\n"
    )
    with pytest.raises(ToolTimeout, match=r"link o\.so"):
        run_tool(_python(code), cwd=tmp_path, environ={}, timeout=1.5, stage="link o.so")
    helper = int(mark.read_text())
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            os.kill(helper, 0)
        except ProcessLookupError:
            return
        if Path(f"/proc/{helper}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return
        time.sleep(0.01)
    pytest.fail("the helper outlived its driver")


def test_a_tool_that_nobody_waits_for_is_killed(tmp_path: Path) -> None:
    cancelled = threading.Event()
    mark = tmp_path / "tool"
    code = f"import os, time; open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    threading.Timer(0.5, cancelled.set).start()
    begin = time.monotonic()
    with pytest.raises(ToolCancelled, match="probe"):
        run_tool(
            _python(code), cwd=tmp_path, environ={}, timeout=50, stage="probe", cancelled=cancelled
        )
    assert time.monotonic() - begin < 30
    if mark.exists() and mark.read_text():
        with pytest.raises(ProcessLookupError):
            os.kill(int(mark.read_text()), 0)


def test_a_tool_that_may_be_cancelled_keeps_output_and_limit(tmp_path: Path) -> None:
    never = threading.Event()
    code = "import sys, time; print('a' * 200000); time.sleep(0.3); print('end')"
    result = run_tool(
        _python(code), cwd=tmp_path, environ={}, timeout=30, stage="probe", cancelled=never
    )
    assert result.stdout == "a" * 200000 + "\nend\n"
    with pytest.raises(ToolTimeout, match="probe"):
        run_tool(
            _python("import time; time.sleep(60)"),
            cwd=tmp_path,
            environ={},
            timeout=0.3,
            stage="probe",
            cancelled=never,
        )


def test_default_limit() -> None:
    assert compiler_timeout({}) == 900.0
    assert compiler_timeout({"PYPTO_COMPILER_TIMEOUT": "0.5"}) == 0.5


@pytest.mark.parametrize("text", ["0", "-1", "inf", "nan", "", "ten"])
def test_malformed_limit_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match="PYPTO_COMPILER_TIMEOUT"):
        compiler_timeout({"PYPTO_COMPILER_TIMEOUT": text})
