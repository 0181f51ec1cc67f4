"""A REAPI server in this process that answers what a test tells it to, byte for byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from pypto_store.remote import reapi_protocol
from pypto_store.remote.reapi_protocol import CAPABILITIES, Method, load_protocol

_METHODS = [value for value in vars(reapi_protocol).values() if isinstance(value, Method)]
PROTOCOL = load_protocol()


def message(full_name: str, **fields: Any) -> Any:
    """A new message."""
    return PROTOCOL.message(full_name)(**fields)


class ScriptedReapi(grpc.GenericRpcHandler):
    """Answers each method by a function of the test's: (request or requests, context) -> answer.

    With `credentials` of grpcio it is encrypted. Capabilities are those of a small server unless
    the test gives others. `calls` are the paths of the calls that came, in their order, and
    `metadata` what came with the last one.
    """

    def __init__(self, credentials: Any = None) -> None:
        self.answers: dict[str, Callable[..., Any]] = {}
        self.calls: list[str] = []
        self.metadata: dict[str, str | bytes] = {}
        self.wants_certificate = False
        self.capabilities = message(
            CAPABILITIES.response or "",
            cache_capabilities={"digest_functions": [1], "max_batch_total_size_bytes": 1000},
            low_api_version={"major": 2},
            high_api_version={"major": 2, "minor": 3},
        )
        self.answer(CAPABILITIES, lambda request, context: self.capabilities)
        self._server = grpc.server(ThreadPoolExecutor(4), handlers=[self])
        port = (
            self._server.add_insecure_port("127.0.0.1:0")
            if credentials is None
            else self._server.add_secure_port("127.0.0.1:0", credentials)
        )
        self.address = f"127.0.0.1:{port}"
        self._server.start()

    def answer(self, method: Method, function: Callable[..., Any]) -> None:
        """Have calls of `method` answered by `function`."""
        self.answers[method.path] = function

    def stop(self) -> None:
        """Cancel what is under way and stop serving."""
        self._server.stop(None).wait()

    def service(self, details: Any) -> Any:
        function = self.answers.get(details.method)
        self.calls.append(details.method)
        self.metadata = dict(details.invocation_metadata)
        if function is None:
            return None
        (method,) = (value for value in _METHODS if value.path == details.method)
        kind = (
            f"{'stream' if method.client_streams else 'unary'}_"
            f"{'stream' if method.server_streams else 'unary'}_rpc_method_handler"
        )
        return getattr(grpc, kind)(
            function,
            request_deserializer=PROTOCOL.message(method.request).FromString,
            response_serializer=_encoded,
        )


def _encoded(answer: Any) -> bytes:
    return answer if isinstance(answer, bytes) else answer.SerializeToString()


def failing(code: grpc.StatusCode, times: int, then: Callable[..., Any]) -> Callable[..., Any]:
    """Fails with `code` so many times, and then answers as `then` does."""
    left: Iterator[int] = iter(range(times))

    def function(request: Any, context: Any) -> Any:
        if next(left, None) is not None:
            context.abort(code, "as the test wants it")
        return then(request, context)

    return function
