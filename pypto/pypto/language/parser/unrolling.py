"""``pl.unroll``: the body of a loop, once for each value of its variable."""

from __future__ import annotations

from pypto.language.parser.diagnostics.exceptions import UnsupportedFeatureError
from pypto.language.parser.frame import Frame
from pypto.language.parser.loop_headers import UnrolledHeader
from pypto.language.parser.values import Unbound

# Copies of one statement, counting every unrolled loop around it. More would take minutes to
# compile, where a loop over pl.range takes none.
MAX_COPIES = 4096


def unroll(frame: Frame, header: UnrolledHeader) -> None:
    """Translates the body once for each value; names keep what the last of them bound."""
    builder, around = frame.builder, frame.builder.copies
    builder.copies = around * max(1, len(header.values))
    if builder.copies > MAX_COPIES:
        inside = f", inside loops that are unrolled {around} times," if around > 1 else ""
        builder.copies = around
        raise frame.error(
            UnsupportedFeatureError,
            header.node,
            f"pl.unroll: {len(header.values)} iterations{inside} would write out more than "
            f"{MAX_COPIES} copies of the body; use pl.range",
        )
    try:
        with frame.nested(header.node):
            for value in header.values:
                frame.env[header.var] = value
                builder.block(frame, header.node.body)
    finally:
        builder.copies = around
    line = frame.source.user_position(header.node)[0]
    frame.env[header.var] = Unbound(f"is the variable of the loop on line {line}, which has ended")
