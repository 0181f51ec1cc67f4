"""Calls of one REAPI v2 server: deadlines, retries, and every error made a fault of the remote.

Only UNAVAILABLE is tried again, a few times and never beyond the deadline of the whole call: a
server that is being restarted costs a second, one that is gone no more than `timeout`. And after
UNAUTHENTICATED a credential helper is asked once more, if there is one. Answers are
asked for as bytes and decoded here, since grpcio writes to the log what it cannot decode.

No proxy of the environment is used, and a channel is not carried over a fork.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from urllib.parse import urlsplit

from pypto_store.remote.blob_store import (
    ENTRY_LIMIT,
    SLOWEST,
    CorruptBlob,
    RemoteFault,
    RemoteProtocolError,
    RemoteRefused,
    RemoteUnavailable,
)
from pypto_store.remote.credentials import Headers, credentials_of
from pypto_store.remote.reapi_credentials import channel_credentials
from pypto_store.remote.reapi_protocol import CAPABILITIES, Method, load_protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pypto_store.remote_config import RemoteConfig

_T = TypeVar("_T")

Metadata: TypeAlias = "tuple[tuple[str, str | bytes], ...]"

OK, CANCELLED, DEADLINE_EXCEEDED, NOT_FOUND = 0, 1, 4, 5
PERMISSION_DENIED, RESOURCE_EXHAUSTED, ABORTED, UNAVAILABLE, UNAUTHENTICATED = 7, 8, 10, 14, 16
_SHA256 = 1  # DigestFunction.Value

_PASSING = frozenset({CANCELLED, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, ABORTED, UNAVAILABLE})
_REFUSED = frozenset({PERMISSION_DENIED, UNAUTHENTICATED})
_PAUSES = (0.1, 0.3, 1.0)  # seconds before another attempt, at most
_MESSAGE_LIMIT = 4 << 20  # bytes; what gRPC takes unless told otherwise
_OTHER_REMEDY = (
    "see whether it is a cache of REAPI v2 and RemoteConfig.instance a name that it knows"
)
# What gRPC says of servers that are up and cannot be spoken to, and where to look then. It calls
# all of them unavailable.
_SPOKEN_PAST = (
    (
        "handshake failed",
        "check that the server's certificate is one that RemoteConfig.tls believes, and that the "
        "server is one of grpcs://",
    ),
    ("http1.x server", "see whether RemoteConfig.url must begin with http:// or https://"),
)
_SHOWN = 300  # characters of what a server says that are repeated in a message


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a server says of itself.

    batch_limit: bytes that the blobs of one batch may have. compressors: those that may be used by
    streams and for reading batches; update_compressors: for writing batches. takes_entries: it does
    not say that it stores none.
    """

    batch_limit: int
    compressors: frozenset[int]
    update_compressors: frozenset[int]
    takes_entries: bool


class ReapiServer:
    """One server; used by any number of threads.

    RemoteUnavailable without grpcio or protobuf; ValueError for files of encryption that cannot be
    used. Nothing is connected to before the first call.
    """

    def __init__(self, config: RemoteConfig) -> None:
        self._url = config.shown_url
        self._timeout = config.timeout
        self.instance = config.instance
        try:
            self.protocol = load_protocol()
        except (ImportError, AttributeError) as error:
            raise RemoteUnavailable(
                url=self._url,
                operation="load grpcio and protobuf",
                reason=str(error),
                remedy="pip install 'pypto[remote]'",
            ) from error
        self._credentials = credentials_of(config)
        self._channel = _channel(self.protocol.grpc, config)
        self._capabilities: Capabilities | None = None

    def close(self) -> None:
        """Close the connection; calls that are under way are cancelled."""
        self._channel.close()

    def deadline(self, size: int = 0) -> float:
        """When a call that carries `size` bytes and begins now has taken too long."""
        return time.monotonic() + self._timeout + size / SLOWEST

    def capabilities(self) -> Capabilities:
        """What the server says of itself, asked until it was answered once."""
        # Without a lock: to ask twice is harmless, to wait for one who waits for a server is not.
        if self._capabilities is None:
            self._capabilities = self._ask_capabilities()
        return self._capabilities

    def _ask_capabilities(self) -> Capabilities:
        operation = "get capabilities"
        request = self.message(CAPABILITIES.request, instance_name=self.instance)
        answer = self.call(CAPABILITIES, request, operation)
        cache = answer.cache_capabilities
        if _SHA256 not in cache.digest_functions:
            raise self.nonsense(operation, "it has no cache that goes by SHA-256")
        if not answer.low_api_version.major <= 2 <= answer.high_api_version.major:
            raise self.nonsense(operation, "it does not speak version 2 of the API")
        # Also where a server takes more: what is in memory at once stays small, and answers have
        # to fit into a message.
        limit = cache.max_batch_total_size_bytes
        return Capabilities(
            min(limit, ENTRY_LIMIT) if limit > 0 else ENTRY_LIMIT,
            frozenset(cache.supported_compressors),
            frozenset(cache.supported_batch_update_compressors),
            cache.action_cache_update_capabilities.update_enabled
            or not cache.HasField("action_cache_update_capabilities"),
        )

    def message(self, full_name: str, **fields: Any) -> Any:
        """A new message."""
        return self.protocol.message(full_name)(**fields)

    def call(self, method: Method, request: Any, operation: str, size: int = 0) -> Any:
        """The answer to one request; `size` bytes are carried there or back."""
        answer = self.find(method, request, operation, size)
        if answer is None:
            raise self.nonsense(operation, "NOT_FOUND")
        return answer

    def find(self, method: Method, request: Any, operation: str, size: int = 0) -> Any:
        """As `call`, but None where the answer is NOT_FOUND."""
        caller = self.protocol.callable(self._channel, method)

        def attempt(left: float, metadata: Metadata) -> Any:
            return caller(request, timeout=left, metadata=metadata)

        answer: bytes | None = self.attempts(attempt, operation, self.deadline(size))
        return None if answer is None else self._decoded(method, answer, operation)

    def send(
        self, method: Method, requests: Callable[[Callable[[], None]], Iterable[Any]],
        operation: str, size: int,
    ) -> Any:  # fmt: skip
        """The answer to a stream of requests.

        `requests` begins anew for every attempt; it is given what cancels the attempt, for when it
        cannot go on, and it is iterated in another thread.
        """
        caller = self.protocol.callable(self._channel, method)

        def attempt(left: float, metadata: Metadata) -> Any:
            started = threading.Event()
            calls: list[Any] = []

            def cancel() -> None:
                started.wait()
                for call in calls:
                    call.cancel()

            try:
                calls.append(caller.future(iter(requests(cancel)), timeout=left, metadata=metadata))
            finally:
                started.set()
            (call,) = calls
            try:
                return call.result()
            except self.protocol.grpc.FutureCancelledError:
                raise self.fault(CANCELLED, "the call was cancelled", operation) from None

        answer = self.attempts(attempt, operation, self.deadline(size))
        if answer is None:
            raise self.nonsense(operation, "NOT_FOUND")
        return self._decoded(method, answer, operation)

    def receive(
        self, method: Method, request: Any, operation: str, deadline: float
    ) -> tuple[Any, Iterator[Any]] | None:
        """A stream of answers that has begun: what cancels it, and the answers.

        None where there is nothing. Iterating raises faults, StreamBroken for UNAVAILABLE.
        """
        caller = self.protocol.callable(self._channel, method)

        def attempt(left: float, metadata: Metadata) -> tuple[Any, list[bytes]]:
            call = caller(request, timeout=left, metadata=metadata)
            first = next(call, None)
            return call, [] if first is None else [first]

        begun = self.attempts(attempt, operation, deadline)
        if begun is None:
            return None
        call, first = begun
        return call, self._answers(method, call, first, operation)

    def _answers(
        self, method: Method, call: Any, first: list[bytes], operation: str
    ) -> Iterator[Any]:
        for answer in first:
            yield self._decoded(method, answer, operation)
        while True:
            try:
                following = next(call, None)
            except self.protocol.grpc.RpcError as error:
                fault = self._fault_of_call(error, operation)
                if error.code().value[0] == UNAVAILABLE:
                    raise StreamBroken(fault) from error
                raise fault from error
            if following is None:
                return
            yield self._decoded(method, following, operation)

    def attempts(
        self, attempt: Callable[[float, Metadata], _T], operation: str, deadline: float
    ) -> _T | None:
        """What `attempt(seconds left, metadata)` returns; None where the server says NOT_FOUND."""
        pauses = iter(_PAUSES)
        renewed = False
        while True:
            headers = self._credentials.headers()
            try:
                return attempt(max(deadline - time.monotonic(), 0.001), _metadata(headers))
            except self.protocol.grpc.RpcError as error:
                code = error.code().value[0]
                if code == NOT_FOUND:
                    return None
                if code == UNAUTHENTICATED and not renewed and self._credentials.renew(headers):
                    renewed = True
                    continue
                pause = next(pauses, None)
                over = pause is None or time.monotonic() + pause > deadline
                if code != UNAVAILABLE or pause is None or over:
                    raise self._fault_of_call(error, operation) from error
            import random  # only here: it takes as long to import as a fetch

            # Not all clients of a server that was away come back at the same moment.
            time.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 - no secret

    def _decoded(self, method: Method, answer: bytes, operation: str) -> Any:
        if method.response is None:
            return answer
        try:
            return self.protocol.message(method.response).FromString(answer)
        except self.protocol.undecodable as error:
            raise self.nonsense(operation, f"its answer is no {method.response}") from error

    def _fault_of_call(self, error: Any, operation: str) -> RemoteFault:
        status = error.code()
        return self.fault(status.value[0], f"{status.name}: {error.details() or ''}", operation)

    def fault(self, code: int, reason: str, operation: str) -> RemoteFault:
        """The fault that a status of gRPC is."""
        kind: type[RemoteFault] = RemoteProtocolError
        remedy = _OTHER_REMEDY
        if code in _PASSING:
            kind = RemoteUnavailable
            said = (told for sign, told in _SPOKEN_PAST if sign in reason.lower())
            remedy = next(said, "see whether the server is up, reachable and not full")
        elif code in _REFUSED:
            kind = RemoteRefused
            remedy = "give credentials that may do it, or set RemoteConfig.readonly"
        shown = " ".join(reason.split())[:_SHOWN]
        return kind(url=self._url, operation=operation, reason=shown, remedy=remedy)

    def nonsense(self, operation: str, reason: str) -> RemoteProtocolError:
        """The server answered what its protocol does not have."""
        return RemoteProtocolError(
            url=self._url,
            operation=operation,
            reason=reason,
            remedy=_OTHER_REMEDY,
        )

    def corrupt(self, operation: str, reason: str) -> CorruptBlob:
        """The server sent other bytes than those of a blob."""
        return CorruptBlob(
            url=self._url,
            operation=operation,
            reason=reason,
            remedy="the blob is not used; have it removed there if this lasts",
        )


class StreamBroken(Exception):
    """A stream ended with UNAVAILABLE; `fault` is what it is where it cannot be resumed."""

    def __init__(self, fault: RemoteFault) -> None:
        super().__init__(str(fault))
        self.fault = fault


def _metadata(headers: Headers) -> Metadata:
    """What goes with a call. gRPC wants names in small letters, and bytes for -bin."""
    return tuple(
        (name.lower(), value.encode() if name.lower().endswith("-bin") else value)
        for name, value in headers
    )


def _channel(grpc: Any, config: RemoteConfig) -> Any:
    target = urlsplit(config.url).netloc.rpartition("@")[2]
    options = (
        ("grpc.max_receive_message_length", _MESSAGE_LIMIT),
        ("grpc.enable_http_proxy", 0),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 1000),
        ("grpc.enable_retries", 0),  # retrying is done here
        ("grpc.use_local_subchannel_pool", 1),  # another client's back-off is not this one's
    )
    if config.scheme == "grpc":
        return grpc.insecure_channel(target, options)
    return grpc.secure_channel(target, channel_credentials(grpc, config.tls), options)
