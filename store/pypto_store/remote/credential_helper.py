"""Headers from a program, by the protocol of Bazel's credential helpers.

    HELPER get
    stdin     {"uri": "https://cache.example/path"}
    stdout    {"headers": {"Authorization": ["Bearer ..."]}, "expires": "2030-01-02T03:04:05Z"}

Anything else in the answer is for later versions of the protocol. Its headers take the place of
configured ones of the same name, and go with every request until `expires`, or for half an hour
without one. The URI is that of the remote, not that of a blob; a grpc(s):// remote is named as
http(s)://, because that is what helpers are written for. A helper has the process's environment and
working directory, no terminal, and ten seconds (less where RemoteConfig.timeout is less), which are
not taken from the time of the request that waits for it.

What it says is a secret: RemoteConfig has it sent over encrypted connections only, or to this
machine itself, and no message shows it. What it writes to stderr when it fails is shown, since that
is what stderr is for.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import signal
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import IO, TYPE_CHECKING, cast
from urllib.parse import urlsplit

from pypto_store.outcomes import reason_of
from pypto_store.remote.blob_store import RemoteFault, RemoteRefused, RemoteUnavailable
from pypto_store.remote.credentials import FixedCredentials, Headers

if TYPE_CHECKING:
    from collections.abc import Callable

    from pypto_store.remote_config import RemoteConfig

LONGEST = 10.0  # seconds
_KEPT = 1800.0  # seconds that an answer without an end is used for
_ANSWER_LIMIT = 1 << 16  # bytes; servers take less
_TAIL = 300  # bytes of stderr that are shown
_READ = 1 << 14
_GLANCE = 0.05  # seconds; how soon it is seen that a helper ended and left its output open
_RFC3339 = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII
)


class HelperCredentials:
    """What a program says, kept for as long as it says.

    clock: the time, in seconds since 1970. longest: seconds that the program may take.
    """

    def __init__(
        self,
        config: RemoteConfig,
        *,
        clock: Callable[[], float] = time.time,
        longest: float = LONGEST,
    ) -> None:
        assert config.credential_helper is not None
        parts = urlsplit(config.shown_url)
        encrypted = parts.scheme in ("https", "grpcs")
        self._uri = parts._replace(scheme="https" if encrypted else "http").geturl()
        self._config = config
        self._program = os.fspath(config.credential_helper)
        self._seconds = min(longest, config.timeout)
        self._clock = clock
        self._headers: Headers | None = None
        self._expires = 0.0
        self._asked = 0  # times
        self._fault_now: RemoteFault | None = None  # of the last time
        self._asking = threading.Lock()
        self._process = os.getpid()

    def headers(self) -> Headers:
        """What the helper said last, or says now; one thread asks it for all that wait.

        RemoteRefused when it does not say what it should, RemoteUnavailable when it takes too long.
        """
        asked_before = self._asked
        if self._process != os.getpid():
            # A thread of the parent's may have been asking: nobody would ever release its lock.
            self._asking, self._process = threading.Lock(), os.getpid()
        with self._asking:
            if self._headers is not None and self._clock() < self._expires:
                return self._headers
            if self._fault_now is not None and self._asked != asked_before:
                raise self._fault_now  # it was asked while this thread waited
            self._fault_now = None
            try:
                self._headers, self._expires = self._read(self._ask())
            except RemoteFault as fault:
                self._fault_now = fault
                raise
            finally:
                self._asked += 1
            return self._headers

    def renew(self, refused: Headers) -> bool:
        """Forget what was refused, if it is what there is now: the helper may know better."""
        if self._headers is refused:
            self._headers = None
        return True

    def _ask(self) -> bytes:
        """What the helper writes, of a helper that ends well and in time."""
        try:
            child = subprocess.Popen(
                [self._program, "get"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            reason = f"{self._program} cannot be started: {reason_of(error)}"
            raise self._refused(reason, "see that it is there and executable") from error
        exchange = _Exchange(child, json.dumps({"uri": self._uri}).encode())
        try:
            exchange.finish(self._seconds)
        except TimeoutError:
            reason = f"{self._program} did not end in {self._seconds:g} s{exchange.said}"
            remedy = "see what it waits for: nobody can answer its questions"
            raise self._fault(RemoteUnavailable, reason, remedy) from None
        except _TooMuch:
            reason = f"{self._program} wrote more than {_ANSWER_LIMIT} bytes"
            raise self._refused(reason) from None
        if child.returncode:
            ending = (
                f"was ended by signal {-child.returncode}"
                if child.returncode < 0
                else f"exited with status {child.returncode}"
            )
            remedy = "do what it asks for, or run it by hand"
            raise self._refused(f"{self._program} {ending}{exchange.said}", remedy)
        return bytes(exchange.answer)

    def _read(self, answer: bytes) -> tuple[Headers, float]:
        """Headers and when they expire, of an answer that has the right shape."""
        try:
            said = json.loads(answer)
        except (ValueError, RecursionError):  # the error's text could have a part of the answer
            raise self._refused("its answer is not JSON") from None
        if not isinstance(said, dict):
            raise self._refused("its answer is no JSON object")
        given = said.get("headers", {})
        if not isinstance(given, dict) or not all(map(_are_texts, given.values())):
            raise self._refused("its headers are no object of lists of strings")
        pairs = tuple((name, value) for name, values in given.items() for value in values)
        names = {name.lower() for name in given}
        others = tuple(pair for pair in self._config.headers if pair[0].lower() not in names)
        try:
            headers = FixedCredentials(replace(self._config, headers=others + pairs)).headers()
        except ValueError as error:  # which shows no value
            raise self._refused(f"its headers cannot be sent: {error}") from None
        return headers, self._end(said.get("expires"))

    def _end(self, expires: object) -> float:
        if expires is None:
            return self._clock() + _KEPT
        match = _RFC3339.fullmatch(expires) if isinstance(expires, str) else None
        try:
            if match is not None:
                return _seconds_since_1970(match)
        except (ValueError, OverflowError):
            pass
        raise self._refused("its `expires` is no time of RFC 3339")

    def _refused(
        self, reason: str, remedy: str = "run it by hand and compare with Bazel's protocol"
    ) -> RemoteFault:
        return self._fault(RemoteRefused, reason, remedy)

    def _fault(self, kind: type[RemoteFault], reason: str, remedy: str) -> RemoteFault:
        return kind(
            url=self._config.shown_url,
            operation="get credentials from RemoteConfig.credential_helper",
            reason=reason,
            remedy=remedy,
        )


class _TooMuch(Exception):
    """A helper wrote more than there can be to say."""


class _Exchange:
    """A helper that runs: it is told something, and heard until it ends."""

    def __init__(self, child: subprocess.Popen[bytes], question: bytes) -> None:
        self._child = child
        self._question = question
        self.answer = bytearray()
        self._complaint = bytearray()

    @property
    def said(self) -> str:
        """The end of what it wrote to stderr, as a part of a sentence."""
        text = self._complaint.decode("utf-8", "replace")
        plain = "".join(letter if letter.isprintable() else " " for letter in text)
        return f" ({' '.join(plain.split())})" if plain.strip() else ""

    def finish(self, seconds: float) -> None:
        """Wait for its end, which is brought about if it does not come in time, or by a fault."""
        try:
            self._converse(time.monotonic() + seconds)
        except BaseException:
            # The group outlives its leader, whose number nobody else has before it is reaped.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()
            raise
        finally:
            for pipe in (self._child.stdin, self._child.stdout, self._child.stderr):
                with suppress(OSError):
                    cast("IO[bytes]", pipe).close()

    def _converse(self, end: float) -> None:
        stdin = cast("IO[bytes]", self._child.stdin)
        with suppress(BrokenPipeError):  # it need not listen
            stdin.write(self._question)
            stdin.close()
        with selectors.DefaultSelector() as selector:
            for pipe in (self._child.stdout, self._child.stderr):
                os.set_blocking(cast("IO[bytes]", pipe).fileno(), False)
                selector.register(cast("IO[bytes]", pipe), selectors.EVENT_READ)
            while selector.get_map():
                ended = self._child.poll() is not None
                left = end - time.monotonic()
                ready = selector.select(0 if ended else max(0.0, min(left, _GLANCE)))
                for key, _ in ready:
                    if not self._hear(cast("IO[bytes]", key.fileobj)):
                        selector.unregister(key.fileobj)
                if ended and not ready:
                    return  # a process that it left behind may hold its output open for ever
                if left <= 0:
                    raise TimeoutError
        try:
            self._child.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise TimeoutError from None

    def _hear(self, pipe: IO[bytes]) -> bool:
        """Take what there is; False at the end."""
        piece = os.read(pipe.fileno(), _READ)
        if pipe is self._child.stdout:
            self.answer += piece
            if len(self.answer) > _ANSWER_LIMIT:
                raise _TooMuch
        else:
            self._complaint = (self._complaint + piece)[-_TAIL:]
        return bool(piece)


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _seconds_since_1970(match: re.Match[str]) -> float:
    day, hour, sign, hours, minutes = match.groups()
    moment = datetime.fromisoformat(f"{day}T{hour}").replace(tzinfo=UTC)
    if sign is not None:
        ahead = timedelta(hours=int(hours), minutes=int(minutes))
        moment -= ahead if sign == "+" else -ahead
    return moment.timestamp()
