"""A REAPI server that keeps all in memory, and is in the mood that a test gives it."""

from __future__ import annotations

from pypto_store.remote.reapi_protocol import (
    BATCH_READ,
    BATCH_UPDATE,
    CAPABILITIES,
    FIND_MISSING,
    GET_ENTRY,
    READ,
    UPDATE_ENTRY,
    WRITE,
)
from scripted_reapi import ScriptedReapi, grpc, message

READS = (GET_ENTRY, BATCH_READ, READ)
WRITES = (FIND_MISSING, BATCH_UPDATE, WRITE, UPDATE_ENTRY)


class MemoryReapi(ScriptedReapi):
    """`held`: blobs by SHA-256; `entries`: ActionResults by the SHA-256 of their actions."""

    def __init__(self, credentials=None):
        super().__init__(credentials)
        self.capabilities.cache_capabilities.max_batch_total_size_bytes = 0
        self.held = {}
        self.entries = {}
        self.well()

    def well(self):
        """Answer as a cache does."""
        self.answer(CAPABILITIES, lambda request, context: self.capabilities)
        self.answer(FIND_MISSING, self._find_missing)
        self.answer(BATCH_READ, self._batch_read)
        self.answer(BATCH_UPDATE, self._batch_update)
        self.answer(GET_ENTRY, self._get_entry)
        self.answer(UPDATE_ENTRY, self._update_entry)
        self.answer(READ, self._read)
        self.answer(WRITE, self._write)

    def fail(self, methods, status):
        """Answer these methods with a status of gRPC, named."""

        def unary(request, context):
            context.abort(grpc.StatusCode[status], "as the test wants it")

        def stream(request, context):
            context.abort(grpc.StatusCode[status], "as the test wants it")
            yield

        for method in methods:
            self.answer(method, stream if method.server_streams else unary)

    def _find_missing(self, request, context):
        missing = [d for d in request.blob_digests if d.hash not in self.held]
        return message(FIND_MISSING.response, missing_blob_digests=missing)

    def _batch_read(self, request, context):
        answer = message(BATCH_READ.response)
        for digest in request.digests:
            row = answer.responses.add(digest=digest)
            if digest.hash in self.held:
                row.data = self.held[digest.hash]
            else:
                row.status.code = 5
        return answer

    def _batch_update(self, request, context):
        answer = message(BATCH_UPDATE.response)
        for row in request.requests:
            self.held[row.digest.hash] = row.data
            answer.responses.add(digest=row.digest)
        return answer

    def _get_entry(self, request, context):
        entry = self.entries.get(request.action_digest.hash)
        if entry is None:
            context.abort(grpc.StatusCode.NOT_FOUND, "")
        return entry

    def _update_entry(self, request, context):
        self.entries[request.action_digest.hash] = request.action_result.SerializeToString()
        return request.action_result

    def _read(self, request, context):
        data = self.held.get(request.resource_name.split("/")[-2])
        if data is None:
            context.abort(grpc.StatusCode.NOT_FOUND, "")
        yield message(
            READ.response, data=data[request.read_offset : request.read_offset + (1 << 20)]
        )
        for start in range(request.read_offset + (1 << 20), len(data), 1 << 20):
            yield message(READ.response, data=data[start : start + (1 << 20)])

    def _write(self, requests, context):
        name, data = "", b""
        for request in requests:
            name = name or request.resource_name
            data += request.data
        self.held[name.split("/")[-2]] = data
        return message(WRITE.response, committed_size=len(data))
