"""The ``config=`` of a request or of a call."""

from __future__ import annotations

from pypto.runtime.run_config import RunConfig


class NotARunConfig(TypeError, AttributeError):
    """Something else was passed as ``config=``.

    An AttributeError too: it lacks what a RunConfig is asked for, and callers may know it as that.
    """


def run_config(config: object) -> RunConfig:
    """``config`` itself; NotARunConfig if it is none."""
    if not isinstance(config, RunConfig):
        raise NotARunConfig(
            f"config must be a pypto.runtime.RunConfig, got {type(config).__name__}"
        )
    return config
