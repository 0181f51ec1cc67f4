"""The sources of a compiled program; paths are relative to this file."""

RUNTIME_CONFIG = {"runtime": "tensormap_and_ringbuffer", "aicpu_thread_num": 0}

ORCHESTRATION = {
    "source": "orchestration/paged_attention.cpp",
    "function_name": "aicpu_orchestration_entry",
    "signature": ["In", "In", "In", "In", "In", "Out"],
}

KERNELS = [
    {
        "func_id": 0,
        "name": "score_page",
        "source": "kernels/aic/score_page.cpp",
        "core_type": "aic",
        "signature": ["In", "In", "Out", "InOut"],
    },
    {
        "func_id": 1,
        "name": "weigh_page",
        "source": "kernels/aiv/weigh_page.cpp",
        "core_type": "aiv",
        "signature": ["In", "Out", "Out", "Out"],
    },
    {
        "func_id": 2,
        "name": "sum_page",
        "source": "kernels/aic/sum_page.cpp",
        "core_type": "aic",
        "signature": ["In", "In", "Out"],
    },
    {
        "func_id": 3,
        "name": "merge_page",
        "source": "kernels/aiv/merge_page.cpp",
        "core_type": "aiv",
        "signature": ["In", "In", "In", "InOut", "InOut", "InOut", "Out"],
    },
]
