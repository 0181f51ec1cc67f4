from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from pypto.backend import RuntimeKind
from pypto.ir.nodes import Direction
from pypto.runtime.binary_build import MANIFEST_NAME, BinaryManifest
from pypto.runtime.kernel_config import KernelConfig, KernelEntry, OrchestrationEntry
from pypto.runtime.storage import PayloadBuilder, PendingPayload, Publication

CONFIG = KernelConfig(
    platform="a2a3sim",
    runtime=RuntimeKind.HOST_BUILD_GRAPH,
    aicpu_thread_num=0,
    orchestration=OrchestrationEntry("orchestration/p.cpp", "entry", (Direction.In,)),
    kernels=(KernelEntry(0, "k", "kernels/k.cpp", "aiv", (Direction.In,)),),
)


@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_a_child_does_not_wait_for_its_parents_publication(tmp_path: Path) -> None:
    manifest = BinaryManifest(
        CONFIG.platform, CONFIG.runtime, "x86-64", "o.bin", ((0, "aiv", "k.bin"),)
    )
    inside, go = threading.Event(), threading.Event()

    def publish(_: PayloadBuilder) -> Publication:
        inside.set()
        assert go.wait(30)
        published = tmp_path / str(os.getpid())
        published.mkdir()
        (published / MANIFEST_NAME).write_bytes(manifest.to_json())
        return Publication(published, shared=True)

    def no_compiler(*_: object) -> Any:
        return None

    storage = PendingPayload(
        tmp_path, directory=tmp_path, config=CONFIG, compilers=no_compiler, publish=publish
    )
    thread = threading.Thread(target=storage.complete)
    thread.start()
    assert inside.wait(30)
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        go.set()
        with storage.binaries(CONFIG.platform) as paths:
            os._exit(0 if paths.orchestration.parent.name == str(os.getpid()) else 1)
    try:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        go.set()
        thread.join()
    with storage.binaries(CONFIG.platform) as paths:
        assert paths.orchestration.parent.name == str(os.getpid())
