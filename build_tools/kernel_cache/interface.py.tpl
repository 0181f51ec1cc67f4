"""The kernel cache %{label}, for the programs that use it. Generated."""

import os

import pypto_kernel_cache


def use() -> bool:
    """As `pypto_kernel_cache.use`, with this cache."""
    return pypto_kernel_cache.use(
        os.path.dirname(os.path.abspath(__file__)),
        values=%{values},
        paths=%{paths},
        environ=os.environ,
    )
