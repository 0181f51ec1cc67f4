"""Builds every sample kernel for both simulated targets, in the process that tests start.

    build_samples.py ROOT [--serial]

Prints the key of each as JSON. ``--serial`` leaves one processor, so one compiler at a time.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def main() -> None:
    """Build all of it."""
    if "--serial" in sys.argv:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    os.umask(int(os.environ["SAMPLES_UMASK"], 8))
    sys.path.insert(0, str(Path(__file__).parent))

    import pypto
    import sample_kernels
    from pypto.backend import BackendType
    from pypto.runtime import RunConfig

    pypto.configure_cache(pypto.CacheConfig(enabled=True, root=Path(sys.argv[1])))
    keys = {}
    for architecture in (BackendType.Ascend910B, BackendType.Ascend950):
        config = RunConfig(backend_type=architecture)
        for kernel in sample_kernels.ALL:
            compiled = kernel.warmup(config=config)
            reason = pypto.cache_stats().last_bypass_reason
            assert compiled.artifact_key is not None, reason
            keys[f"{kernel.__name__}@{config.platform}"] = compiled.artifact_key
    print(json.dumps(keys))


if __name__ == "__main__":
    main()
