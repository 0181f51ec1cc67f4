"""A headless browser, driven through its DevTools protocol over a pipe."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

# The tests of this folder share a module that is no test.
sys.path.insert(0, str(Path(__file__).parent))

VARIABLE = "PYPTO_TEST_BROWSER"
_PATIENCE = 60.0  # seconds for one answer, on a machine that is busy with other tests


class Browser:
    """One browser process. Messages are JSON, each ended by a NUL, on descriptors 3 and 4."""

    def __init__(self, program: str, profile: Path) -> None:
        self._log = profile.parent / "browser.log"
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        # Above whatever the child may have open: no duplicate overwrites another's source.
        inputs, outputs = (
            fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 100) for end in (to_read, to_write)
        )
        self.pid = os.posix_spawn(
            program,
            [program, f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"],
            {"HOME": str(profile), "PATH": "/usr/bin:/bin"},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, inputs, 3),
                (os.POSIX_SPAWN_DUP2, outputs, 4),
                (os.POSIX_SPAWN_OPEN, 2, str(self._log), os.O_WRONLY | os.O_CREAT, 0o600),
            ],
        )
        for end in (to_read, to_write, inputs, outputs):
            os.close(end)
        self._received = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Ask for something and wait for the answer; events that come first are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self.events.append(answer)

    def receive(self) -> dict[str, Any]:
        """The next message."""
        deadline = time.monotonic() + _PATIENCE
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._read], [], [], max(0, deadline - time.monotonic()))
            part = os.read(self._read, 1 << 20) if ready else b""
            assert part, f"the browser says nothing any more: {self._log.read_text()[-3000:]}"
            self._received += part
        message, _, self._received = self._received.partition(b"\0")
        return json.loads(message)

    def close(self) -> None:
        """End it, whatever it is doing."""
        os.close(self._write)
        os.close(self._read)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


class Page:
    """One tab."""

    def __init__(self, browser: Browser, width: int, height: int) -> None:
        self._browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask this tab for something."""
        return self._browser.call(method, self._session, **parameters)

    def events(self, *methods: str) -> list[dict[str, Any]]:
        """What has been told of this tab."""
        return [
            event["params"]
            for event in self._browser.events
            if event.get("sessionId") == self._session and event["method"] in methods
        ]

    def open(self, path: Path) -> None:
        """Load a file and wait until it is complete."""
        answer = self.call("Page.navigate", url=path.as_uri())
        assert "errorText" not in answer, answer
        while not self.events("Page.loadEventFired"):
            self._browser.events.append(self._browser.receive())

    def value(self, expression: str) -> Any:
        """What an expression comes to in the page; an exception fails the test."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def complaints(self) -> list[dict[str, Any]]:
        """Whatever a developer would see in red or yellow, and every request beyond the file."""
        told = self.events("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        asked = [event["request"]["url"] for event in self.events("Network.requestWillBeSent")]
        return told + [{"request": url} for url in asked[1:]]

    def screenshot(self) -> bytes:
        """The viewport as a PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot")["data"])


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """The browser that the set-up provides; without one these tests fail."""
    program = os.environ.get(VARIABLE)
    if not program:
        pytest.fail(f"{VARIABLE} names no browser: run ./bazelw test //tests/browser/...")
    directory = tmp_path_factory.mktemp("browser")
    started = Browser(os.path.abspath(program), directory / "profile")
    yield started
    started.close()
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def page(browser):
    """Open a file in a tab of a size, as a person who prefers some things."""

    def show(path, width=1280, height=900, *, scripts=True, media=()):
        tab = Page(browser, width, height)
        if not scripts:
            tab.call("Emulation.setScriptExecutionDisabled", value=True)
        tab.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": name, "value": value} for name, value in dict(media).items()],
        )
        tab.open(path)
        return tab

    return show
