"""grpcio, protobuf and the messages of REAPI v2, loaded when the first grpc:// remote is opened.

The message classes come from descriptors.bin, a FileDescriptorSet of the protocol's own
definitions, in a pool of their own: generated modules would clash with those that other packages
bring along, and would bind us to one version of protobuf. What the definitions import from protobuf
itself is taken from the protobuf that is installed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

_DESCRIPTORS = os.path.join(os.path.dirname(__file__), "descriptors.bin")
_OF_PROTOBUF = ("descriptor", "any", "duration", "empty", "timestamp", "wrappers")

_REAPI = "build.bazel.remote.execution.v2"
_STREAM = "google.bytestream"


@dataclass(frozen=True, slots=True)
class Method:
    """One method of a service: its path, whether the client or the server streams, its messages.

    `response` None means that the answer's bytes are wanted as they are.
    """

    path: str
    request: str
    response: str | None
    client_streams: bool = False
    server_streams: bool = False


CAPABILITIES = Method(
    f"/{_REAPI}.Capabilities/GetCapabilities",
    f"{_REAPI}.GetCapabilitiesRequest",
    f"{_REAPI}.ServerCapabilities",
)
FIND_MISSING = Method(
    f"/{_REAPI}.ContentAddressableStorage/FindMissingBlobs",
    f"{_REAPI}.FindMissingBlobsRequest",
    f"{_REAPI}.FindMissingBlobsResponse",
)
BATCH_UPDATE = Method(
    f"/{_REAPI}.ContentAddressableStorage/BatchUpdateBlobs",
    f"{_REAPI}.BatchUpdateBlobsRequest",
    f"{_REAPI}.BatchUpdateBlobsResponse",
)
BATCH_READ = Method(
    f"/{_REAPI}.ContentAddressableStorage/BatchReadBlobs",
    f"{_REAPI}.BatchReadBlobsRequest",
    f"{_REAPI}.BatchReadBlobsResponse",
)
GET_ENTRY = Method(
    f"/{_REAPI}.ActionCache/GetActionResult", f"{_REAPI}.GetActionResultRequest", None
)
UPDATE_ENTRY = Method(
    f"/{_REAPI}.ActionCache/UpdateActionResult", f"{_REAPI}.UpdateActionResultRequest", None
)
READ = Method(
    f"/{_STREAM}.ByteStream/Read",
    f"{_STREAM}.ReadRequest",
    f"{_STREAM}.ReadResponse",
    server_streams=True,
)
WRITE = Method(
    f"/{_STREAM}.ByteStream/Write",
    f"{_STREAM}.WriteRequest",
    f"{_STREAM}.WriteResponse",
    client_streams=True,
)


class Protocol:
    """The loaded packages. The rest of the client sees protobuf and grpcio only through this.

    Both packages are untyped here on purpose: they are an extra, and checkers need not have them.
    """

    def __init__(self) -> None:
        self.grpc: Any = import_module("grpc")
        pool: Any = import_module("google.protobuf.descriptor_pool").DescriptorPool()
        self._factory: Any = import_module("google.protobuf.message_factory")
        self._pool = pool
        # Protobuf itself keeps none: a class that nobody refers to is garbage, and a thread that is
        # given it while a collection clears it ends the process (SIGSEGV, seen with protobuf 7.36).
        self._classes: dict[str, Any] = {}
        for name in _OF_PROTOBUF:
            pool.AddSerializedFile(
                import_module(f"google.protobuf.{name}_pb2").DESCRIPTOR.serialized_pb
            )
        files: Any = import_module("google.protobuf.descriptor_pb2").FileDescriptorSet()
        with open(_DESCRIPTORS, "rb") as stream:
            files.ParseFromString(stream.read())
        for file in files.file:  # what is imported stands before what imports it
            pool.AddSerializedFile(file.SerializeToString())
        self.undecodable: type[Exception] = import_module("google.protobuf.message").DecodeError

    def message(self, name: str) -> Any:
        """The class of the message with the full name `name`, always the same."""
        if name not in self._classes:
            # At one moment: who finds a class here finds those of its fields, too.
            self._classes.update(self._classes_from(self._pool.FindMessageTypeByName(name)))
        return self._classes[name]

    def _classes_from(self, descriptor: Any) -> dict[str, Any]:
        """The class of a message and those of all messages that it may have within."""
        found: dict[str, Any] = {}
        left = [descriptor]
        while left:
            one = left.pop()
            if one is not None and one.full_name not in found:
                found[one.full_name] = self._factory.GetMessageClass(one)
                left += [field.message_type for field in one.fields]
        return found

    def callable(self, channel: Any, method: Method) -> Any:
        """What calls `method` over `channel`; it returns answers as bytes."""
        kind = (
            f"{'stream' if method.client_streams else 'unary'}_"
            f"{'stream' if method.server_streams else 'unary'}"
        )
        return getattr(channel, kind)(
            method.path,
            request_serializer=self.message(method.request).SerializeToString,
        )


@cache
def load_protocol() -> Protocol:
    """The packages, loaded once per process; ImportError where one is missing or too old."""
    return Protocol()
