"""The state of parsing one function, and how it reports and emits."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from pypto.ir.errors import IrTypeError
from pypto.ir.nodes import (
    AttrValue,
    DynDim,
    Function,
    FunctionKind,
    Op,
    Operand,
    Param,
    Stmt,
    TensorType,
    TileType,
    Type,
    Var,
)
from pypto.ir.ops import infer_result
from pypto.language.parser.diagnostics.exceptions import (
    InvalidOperationError,
    ParserError,
    ScopeIsolationError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)
from pypto.language.parser.values import Unbound, Value
from pypto.language.source import CapturedAttributes, FunctionSource

if TYPE_CHECKING:
    from pypto.language.parser.tasks import TaskRequest

# The assembler accepts 64 blocks inside each other, the function's own among them.
MAX_NESTING = 60


@dataclass(slots=True)
class Builder:
    """The program under construction.

    ``call`` and ``block`` are the parts of the parser that others need back: a call expression
    and a sequence of statements. They are passed in so that modules import each other one way
    only.
    """

    call: Callable[[Frame, ast.Call, str], Value]
    block: Callable[[Frame, Sequence[ast.stmt]], None]
    # Attributes of the user's objects as they were captured; all frames share them.
    attributes: CapturedAttributes
    functions: dict[str, Function] = field(default_factory=dict)
    specializations: dict[object, str] = field(default_factory=dict)
    # Sources whose parsing has begun and not ended, to find recursion.
    active: list[FunctionSource] = field(default_factory=list)
    # Lines of pl.static_print, held back because a loop's body may be parsed more than once.
    prints: list[str] = field(default_factory=list)
    # For each defined function, the parameters that its call evaluates to.
    results: dict[str, tuple[int, ...]] = field(default_factory=dict)

    # For each loop, names that turned out to stay what they are. The loop around it may need more
    # attempts; without this each of them would double the attempts here, at every level.
    unchanged: dict[ast.For, frozenset[str]] = field(default_factory=dict)
    # Loops and run-time branches that are open.
    nesting: int = 0
    # How often the statement being translated is written out, by the unrolled loops around it.
    copies: int = 1
    # Where each unit that was parsed stands in the user's files.
    sources: dict[str, tuple[str, int]] = field(default_factory=dict)

    def parse_body(self, frame: Frame) -> None:
        """Translates the whole body of a frame's function."""
        self.sources[frame.source.unit] = (frame.source.file, frame.source.first_line)
        self.active.append(frame.source)
        try:
            self.block(frame, frame.source.tree.body)
        finally:  # a loop around the call may try again
            self.active.pop()


@dataclass(frozen=True, slots=True)
class _Name:
    """Another name of ``parent``; ``depth`` names lie between it and the ``root`` of both."""

    parent: Var
    root: Var
    depth: int


@dataclass(slots=True)
class Values:
    """What is known of the variables of one IR function.

    ``memory`` holds the tensors that exist in global memory by themselves: parameters and created
    tensors. ``owners`` says in which ``pl.at`` block a variable was bound. ``symbols`` gives the
    run-time extents their dimension. ``written`` are names of memory that is written.
    """

    memory: set[Var] = field(default_factory=set)
    owners: dict[Var, int] = field(default_factory=dict)
    symbols: dict[Var, DynDim] = field(default_factory=dict)
    written: set[Var] = field(default_factory=set)
    params: list[Param] = field(default_factory=list)
    scopes: int = 0
    # Those of the scopes that run in blocks.
    block_scopes: set[int] = field(default_factory=set)
    # Memory that later tasks show where arguments are dumped.
    dump_tags: set[Var] = field(default_factory=set)
    # Results of matrix products, whose fp32 may be narrowed when it is written.
    products: set[Var] = field(default_factory=set)
    # For each part of a tensor, what it was taken from.
    wholes: dict[Var, Var] = field(default_factory=dict)

    # For parts that are valid in part, the extents that they were asked for with.
    declared: dict[Var, tuple[int, ...]] = field(default_factory=dict)

    # How scalars were computed.
    definitions: dict[Var, Op] = field(default_factory=dict)
    # Never changed once it is there, so that each name can know its root.
    _names: dict[Var, _Name] = field(default_factory=dict)

    def record_name(self, name: Var, tensor: Var) -> None:
        """From here on ``name``, a new variable, names the memory or the value of ``tensor``."""
        self._names[name] = _Name(tensor, self.root(tensor), self._depth(tensor) + 1)

    def record_write(self, result: Var, tensor: Var) -> None:
        """``tensor`` is written, and ``result`` names its memory afterwards."""
        self.record_name(result, tensor)
        self.written.add(tensor)

    def named_by(self, var: Var) -> Var | None:
        """What ``var`` was recorded as another name of, if it was."""
        name = self._names.get(var)
        return None if name is None else name.parent

    def root(self, var: Var) -> Var:
        """The variable that stands for the same memory, or the same value, as ``var``."""
        name = self._names.get(var)
        return var if name is None else name.root

    def whole(self, var: Var) -> Var:
        """The parameter or created tensor in whose memory ``var`` lies."""
        root = self.root(var)
        while root in self.wholes:
            root = self.root(self.wholes[root])
        return root

    def meeting(self, left: Var, right: Var) -> Var:
        """The nearest variable whose memory two variables of one root both name."""
        while left is not right:
            if self._depth(left) < self._depth(right):
                left, right = right, left
            left = self._names[left].parent
        return left

    def _depth(self, var: Var) -> int:
        name = self._names.get(var)
        return 0 if name is None else name.depth


@dataclass(slots=True)
class Frame:
    """One function body being translated; an inlined function has a frame of its own."""

    builder: Builder
    source: FunctionSource
    kind: FunctionKind
    values: Values
    env: dict[str, Value]
    live_after: Mapping[ast.stmt, frozenset[str]]
    body: list[Stmt]
    scope: int | None = None
    # The statements of the ``pl.at`` block that is open here.
    block: Sequence[ast.stmt] | None = None
    inline: bool = False
    returned: Value = None
    has_returned: bool = False
    # A call and the schedule of the task that it submits.
    scheduled: tuple[ast.Call, TaskRequest] | None = None

    @property
    def region(self) -> Sequence[ast.stmt]:
        """The block of code that runs on one core: of a ``pl.at``, or the function's own."""
        return self.source.tree.body if self.block is None else self.block

    # --- reporting -------------------------------------------------------------------------

    def error(self, kind: type[ParserError], node: ast.AST, message: str) -> ParserError:
        """An error at a node, to be raised by the caller."""
        line, column = self.source.user_position(node)
        return kind(
            message,
            span=self.source.span(node),
            file=self.source.file,
            line=line,
            column=column,
            source_line=self.source.source_line(node),
        )

    def lookup(self, node: ast.Name) -> Value:
        """The value of a name: parameters and locals, then the function's namespace."""
        name = node.id
        if name in self.env:
            value = self.env[name]
            if isinstance(value, Unbound):
                kind = ScopeIsolationError if value.departed else UndefinedVariableError
                raise self.error(kind, node, f"{name!r} {value.reason}")
            return value
        if name in self.source.namespace:
            return self.source.namespace[name]
        hint = did_you_mean(name, [*self.env, *self.source.namespace])
        raise self.error(
            UndefinedVariableError, node, f"name {name!r} is not defined{hint or _DEFINE}"
        )

    def leave_scope(self, scope: int, staying: Container[Var]) -> None:
        """Makes names of what a ``pl.at`` block owns say so.

        Tensors outlive the block, and so do the scalars of ``staying``.
        """
        for name, value in self.env.items():
            departed = self._departed(value, scope, staying)
            if departed is not None:
                self.env[name] = departed

    def _departed(self, value: Value, scope: int, staying: Container[Var]) -> Unbound | None:
        if isinstance(value, tuple | list):
            found = [self._departed(item, scope, staying) for item in value]
            return next((item for item in found if item is not None), None)
        if not isinstance(value, Var) or self.values.owners.get(value) != scope:
            return None
        if isinstance(value.type, TensorType) or value in staying:
            return None
        if isinstance(value.type, TileType):
            remedy = "store it into a tensor inside that block"
        else:
            remedy = (
                "only a scalar that is computed from scalars outside a loop or a branch of the "
                "block is known after it; compute it before that block, or write it into a tensor "
                "with pl.write and read that"
            )
        return Unbound(f"belongs to a pl.at block that has ended; {remedy}", True)

    @contextmanager
    def nested(self, node: ast.stmt) -> Iterator[None]:
        """While a block of a loop or of a run-time branch is being translated."""
        self.builder.nesting += 1
        try:
            if self.builder.nesting > MAX_NESTING:
                raise self.error(
                    UnsupportedFeatureError,
                    node,
                    f"loops and branches are nested deeper than {MAX_NESTING}; an elif is inside "
                    "the else of the if before it",
                )
            yield
        finally:
            self.builder.nesting -= 1

    # --- emission --------------------------------------------------------------------------

    @property
    def on_core(self) -> bool:
        """Whether statements here run on a core: in an incore function or a ``pl.at`` block."""
        return self.kind is FunctionKind.INCORE or self.scope is not None

    @property
    def runs_blocks(self) -> bool:
        """Whether statements here are a block of ``pl.spmd``."""
        return self.scope in self.values.block_scopes

    def emit(
        self,
        op: str,
        operands: Sequence[Operand],
        node: ast.AST,
        *,
        hint: str = "",
        attrs: Mapping[str, AttrValue] | None = None,
    ) -> Var:
        """Adds an operation; its operands are checked, an error points at ``node``."""
        attributes = {} if attrs is None else dict(attrs)
        try:
            type_ = infer_result(op, operands, attributes)
        except IrTypeError as error:
            raise self.error(InvalidOperationError, node, str(error)) from None
        result = self.new_var(hint or op.split(".")[1], type_)
        made = Op(op, tuple(operands), result, self.source.span(node), freeze(attributes))
        if op.startswith("scalar."):
            self.values.definitions[result] = made
        self.body.append(made)
        return result

    def new_var(self, name: str, type_: Type) -> Var:
        """A variable bound here."""
        var = Var(name, type_)
        if self.scope is not None:
            self.values.owners[var] = self.scope
        return var


_DEFINE = "; define it before this line, or pass it as an argument"


def freeze(attrs: Mapping[str, AttrValue]) -> Mapping[str, AttrValue]:
    """A read-only copy with its keys in order, so that equal attributes print alike."""
    return MappingProxyType(dict(sorted(attrs.items())))


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """``"; did you mean 'x'?"``, or nothing."""
    near = difflib.get_close_matches(name, sorted(set(candidates)), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""
